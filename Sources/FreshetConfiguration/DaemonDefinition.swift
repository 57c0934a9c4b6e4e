package import FreshetPipelines

/// The settings of the daemon as a whole, from `freshet.yaml` and its drop-ins.
package struct DaemonDefinition: Hashable, Sendable {
    /// The longest delay of `start` and `network`. Each host has its own constant delay, so that a fleet that boots
    /// together does not send its requests together. Zero unless configured.
    package var splay = Duration.zero
    /// How many runs of all pipelines may be in progress at the same time; at least 1.
    package var concurrency = DaemonDefinition.defaultConcurrency
    /// How many of these runs may use one origin (scheme, host and port) at the same time; at least 1.
    package var originConcurrency = DaemonDefinition.defaultOriginConcurrency
    /// The IPv4 or IPv6 address, as written, whose route decides whether the network is reachable, for pipelines
    /// without an address; nil: the documentation addresses, which stand for any remote host.
    package var networkTarget: String?
    /// The probe of the network for pipelines whose source needs the network and that do not configure
    /// `needs-network`; nil: no probe.
    package var networkProbe: NetworkProbe?
    /// The memory budget, in bytes, of answers and the jq programs that transform them.
    package var memoryLimit: UInt64 = DaemonDefinition.defaultMemoryLimit
    /// The disk quota, in bytes, of all content of the cache; nil: no quota.
    package var cacheLimit: UInt64? = DaemonDefinition.defaultCacheLimit
    /// The free space that the cache leaves on its file system.
    package var minFree = FreeSpaceRule.standard

    /// What `==` of the other properties does not see.
    package var exactTexts = ExactTexts()
    /// The fleet that this machine is a member of; nil: none.
    package var fleet: FleetDefinition?

    /// 512 MiB: a jq program that changes little of a 60 MB answer needs 370 MiB.
    package static let defaultMemoryLimit: UInt64 = 512 << 20
    /// 1 GiB.
    package static let defaultCacheLimit: UInt64 = 1 << 30
    /// Enough to hide latency, few enough for a home router's table of connections.
    package static let defaultConcurrency = 64
    /// The limit of connections to one host that browsers use for HTTP/1.1: every origin can serve that many to a
    /// client.
    package static let defaultOriginConcurrency = 6

    /// The two limits on concurrent requests.
    package var requestLimits: RequestLimiter.Limits {
        RequestLimiter.Limits(total: concurrency, perOrigin: originConcurrency)
    }

    /// The pipeline with the daemon's defaults for settings that the pipeline does not have.
    func applyingDefaults(to definition: PipelineDefinition) -> PipelineDefinition {
        guard let networkProbe, definition.refresh.needsNetwork == .bySource, definition.needsNetwork else {
            return definition
        }
        var definition = definition
        definition.refresh.needsNetwork = .probe(networkProbe)
        // The pipeline's own file does not have this text.
        if !networkProbe.url.utf8.allSatisfy({ $0 < 0x80 }) {
            definition.exactTexts.others += [0xFF] + Array(networkProbe.url.utf8)
        }
        return definition
    }
}
