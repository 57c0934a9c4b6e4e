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

/// The status of the daemon.
package struct DaemonStatus: Codable, Hashable, Sendable {
    package var version: String
    package var pid: Int64
    /// When it started.
    package var since: Int64
    /// The state of the network, in words.
    package var network: String
    package var networkReachable: Bool
    package var pipelines: PipelineCounts
    /// How many hooks have failed and are pending; nil: no hooks.
    package var failingHooks: Int64?
    /// Bytes of all content in the cache.
    package var cacheBytes: Int64?
    /// The disk quota of the cache in bytes; nil: no quota.
    package var cacheLimit: Int64?
    /// Bytes of the memory budget that are reserved for responses and the programs that process them.
    package var memoryBytes: Int64?
    /// The memory budget in bytes.
    package var memoryLimit: Int64?
    /// When the active configuration was read; nil: the daemon is older than this field.
    package var configurationSince: Int64?
    /// The last reload, if it was refused; nil: no reload since the daemon started, or the last reload succeeded.
    package var refusedReload: RefusedReload?
    /// The jobs of the event loop that used much processor time, by name; nil: no such jobs.
    package var slowJobs: [SlowJobStatus]?
    /// The hooks of several pipelines that do not run, because their files have errors; nil: there are none.
    package var invalidHooks: [InvalidHook]?

    package init(
        version: String, pid: Int64, since: Int64, network: String, networkReachable: Bool, pipelines: PipelineCounts,
        failingHooks: Int64? = nil, cacheBytes: Int64? = nil, cacheLimit: Int64? = nil,
        memoryBytes: Int64? = nil, memoryLimit: Int64? = nil,
        configurationSince: Int64? = nil, refusedReload: RefusedReload? = nil,
        slowJobs: [SlowJobStatus]? = nil, invalidHooks: [InvalidHook]? = nil
    ) {
        self.invalidHooks = invalidHooks
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

/// A hook of several pipelines that does not run, because its file has an error.
package struct InvalidHook: Codable, Hashable, Sendable {
    package var name: String
    /// The first error, with its location, without text from the file.
    package var message: String

    package init(name: String, message: String) {
        self.name = name
        self.message = message
    }
}

/// Jobs with the same name that used the event loop for 20 ms of processor time or more.
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

/// A reload that was refused: the previous configuration stays active.
package struct RefusedReload: Codable, Hashable, Sendable {
    package var at: Int64
    /// The number of errors, without warnings.
    package var errors: Int64
    /// The first error, without the excerpt of the file.
    package var first: ConfigurationDiagnostic

    package init(at: Int64, errors: Int64, first: ConfigurationDiagnostic) {
        self.at = at
        self.errors = errors
        self.first = first
    }
}

/// A source of signals, and the fact whose changes it signals.
package struct SignalStatus: Codable, Hashable, Sendable {
    package var name: String
    /// The present state, such as `reachable via enp3s0 from 192.0.2.7`.
    package var fact: String
    /// What the source needs and this machine does not have; nil: nothing is missing.
    package var unavailable: String?
    /// How often it fired since the daemon observes it: since the start, or since the reload that configured it.
    package var fired: Int64
    /// How many events the source ignored because they change nothing; nil: the source does not count them.
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
