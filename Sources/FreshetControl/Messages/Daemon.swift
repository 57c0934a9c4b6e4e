/// How many pipelines there are, by state.
package struct PipelineCounts: Codable, Hashable, Sendable {
    package var total: Int64 = 0
    package var idle: Int64 = 0
    package var waiting: Int64 = 0
    package var loading: Int64 = 0
    package var loaded: Int64 = 0
    package var failed: Int64 = 0
    package var held: Int64 = 0

    /// Counts pipelines of these states.
    package init(_ states: some Sequence<PipelineState> = []) {
        for state in states {
            total += 1
            switch state {
            case .idle: idle += 1
            case .waiting: waiting += 1
            case .loading: loading += 1
            case .loaded: loaded += 1
            case .failed: failed += 1
            case .held: held += 1
            case .unknown: break
            }
        }
    }
}

/// The daemon itself.
package struct DaemonStatus: Codable, Hashable, Sendable {
    package var version: String
    package var pid: Int64
    /// When it started.
    package var since: Int64
    /// How it sees the way to elsewhere, in words.
    package var network: String
    package var networkReachable: Bool
    package var pipelines: PipelineCounts
    /// How many hooks have failed and are owed; nil: none.
    package var failingHooks: Int64?
    /// Bytes of all content of the cache.
    package var cacheBytes: Int64?
    /// How many there may be; nil: any number.
    package var cacheLimit: Int64?
    /// Bytes that are reserved for answers and the programs that work on them.
    package var memoryBytes: Int64?
    /// How many there may be.
    package var memoryLimit: Int64?
    /// When the configuration in force was read; nil: the daemon is older than that.
    package var configurationSince: Int64?
    /// The last reload, if it was refused; nil: there was none since the daemon started, or it succeeded.
    package var refusedReload: RefusedReload?
    /// The jobs of the event loop that used much processor time, by name; nil: none.
    package var slowJobs: [SlowJobStatus]?

    package init(
        version: String, pid: Int64, since: Int64, network: String, networkReachable: Bool, pipelines: PipelineCounts,
        failingHooks: Int64? = nil, cacheBytes: Int64? = nil, cacheLimit: Int64? = nil,
        memoryBytes: Int64? = nil, memoryLimit: Int64? = nil,
        configurationSince: Int64? = nil, refusedReload: RefusedReload? = nil,
        slowJobs: [SlowJobStatus]? = nil
    ) {
        self.slowJobs = slowJobs
        self.configurationSince = configurationSince
        self.refusedReload = refusedReload
        self.cacheBytes = cacheBytes
        self.cacheLimit = cacheLimit
        self.memoryBytes = memoryBytes
        self.memoryLimit = memoryLimit
        self.failingHooks = failingHooks
        self.version = version
        self.pid = pid
        self.since = since
        self.network = network
        self.networkReachable = networkReachable
        self.pipelines = pipelines
    }
}

/// Jobs of one name that used the event loop for 20 ms of processor time or more.
package struct SlowJobStatus: Codable, Hashable, Sendable {
    package var job: String
    package var count: Int64
    package var longestUSec: Int64

    package init(job: String, count: Int64, longestUSec: Int64) {
        self.job = job
        self.count = count
        self.longestUSec = longestUSec
    }
}

/// A reload that was refused: the configuration from before it is in force.
package struct RefusedReload: Codable, Hashable, Sendable {
    package var at: Int64
    /// How many faults there were; warnings are none.
    package var faults: Int64
    /// The first of them, without what stands in the file.
    package var first: ConfigurationDiagnostic

    package init(at: Int64, faults: Int64, first: ConfigurationDiagnostic) {
        self.at = at
        self.faults = faults
        self.first = first
    }
}

/// A source of signals and the fact behind it.
package struct SignalStatus: Codable, Hashable, Sendable {
    package var name: String
    /// The present state, such as `reachable via enp3s0 from 192.0.2.7`.
    package var fact: String
    /// What is missing on this machine; nil: nothing.
    package var unavailable: String?
    /// How often it fired since the daemon follows it: since it started, or since a reload asked for it.
    package var fired: Int64
    /// How often something was heard that did not matter, and fired nothing; nil where there is no such thing.
    package var ignored: Int64?
    package var lastFired: Int64?
    package var lastDetail: String?

    package init(
        name: String, fact: String, unavailable: String? = nil, fired: Int64 = 0, ignored: Int64? = nil,
        lastFired: Int64? = nil, lastDetail: String? = nil
    ) {
        self.name = name
        self.fact = fact
        self.unavailable = unavailable
        self.fired = fired
        self.ignored = ignored
        self.lastFired = lastFired
        self.lastDetail = lastDetail
    }
}
