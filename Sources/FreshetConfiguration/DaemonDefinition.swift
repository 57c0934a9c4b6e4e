package import FreshetPipelines

/// What `freshet.yaml` and its drop-ins say about the daemon as a whole.
package struct DaemonDefinition: Hashable, Sendable {
    /// Up to this much `start` and `network` are delayed, the same on each occasion for one host: so that a fleet that
    /// boots together does not ask together. Zero unless configured.
    package var splay: Duration
    /// How many runs may be under way at once, over all pipelines; at least 1.
    package var concurrency: Int
    /// How many of them may be under way at once at one origin: scheme, host and port; at least 1.
    package var originConcurrency: Int
    /// The IPv4 or IPv6 address, as written, whose path says whether the network is there, for pipelines that name
    /// none; nil: the documentation addresses that stand for "elsewhere".
    package var networkTarget: String?
    /// The proof of the network for pipelines that need it by their source and say nothing of it; nil: none.
    package var networkProbe: NetworkProbe?
    /// How many bytes of memory answers and the programs that work on them may take together.
    package var memoryLimit: UInt64 = DaemonDefinition.defaultMemoryLimit
    /// How many bytes all content of the cache may have; nil: any number.
    package var cacheLimit: UInt64? = DaemonDefinition.defaultCacheLimit
    /// What the cache leaves free on its file system.
    package var minFree = FreeSpaceRule.standard

    /// 512 MiB: a program that changes little of 60 MB needs 370 MiB of that.
    package static let defaultMemoryLimit: UInt64 = 512 << 20
    /// 1 GiB.
    package static let defaultCacheLimit: UInt64 = 1 << 30
    /// Enough to hide latency, few enough for a home router's table of connections.
    package static let defaultConcurrency = 64
    /// What browsers have allowed themselves at one host for as long as HTTP/1.1 has had connections that are kept: any
    /// origin is made for that much from one client.
    package static let defaultOriginConcurrency = 6

    package init(
        splay: Duration = .zero, concurrency: Int = DaemonDefinition.defaultConcurrency,
        originConcurrency: Int = DaemonDefinition.defaultOriginConcurrency, networkTarget: String? = nil,
        networkProbe: NetworkProbe? = nil
    ) {
        self.splay = splay
        self.concurrency = concurrency
        self.originConcurrency = originConcurrency
        self.networkTarget = networkTarget
        self.networkProbe = networkProbe
    }

    /// The two limits on requests that go on at once.
    package var requestLimits: RequestLimiter.Limits {
        RequestLimiter.Limits(total: concurrency, perOrigin: originConcurrency)
    }

    /// The pipeline with what holds for all that say nothing else.
    func completing(_ definition: PipelineDefinition) -> PipelineDefinition {
        guard let networkProbe, definition.refresh.needsNetwork == .bySource, definition.needsNetwork else {
            return definition
        }
        var definition = definition
        definition.refresh.needsNetwork = .probe(networkProbe)
        return definition
    }
}
