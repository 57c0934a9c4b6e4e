/// What `freshet.yaml` and its drop-ins say about the daemon as a whole.
package struct DaemonDefinition: Hashable, Sendable {
    /// Up to this much `start` and `network` are delayed, the same on each occasion for one host: so that a fleet that
    /// boots together does not ask together. Zero unless configured.
    package var splay: Duration
    /// How many runs may be under way at once, over all pipelines; at least 1.
    package var concurrency: Int
    /// The IPv4 or IPv6 address, as written, whose path says whether the network is there, for pipelines that name
    /// none; nil: the documentation addresses that stand for "elsewhere".
    package var networkTarget: String?

    /// Enough to hide latency, few enough for a home router's table of connections.
    package static let defaultConcurrency = 64

    package init(
        splay: Duration = .zero, concurrency: Int = DaemonDefinition.defaultConcurrency, networkTarget: String? = nil
    ) {
        self.splay = splay
        self.concurrency = concurrency
        self.networkTarget = networkTarget
    }
}
