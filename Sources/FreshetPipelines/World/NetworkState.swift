/// What is known of the network for one pipeline: whether its target can be reached, and by which path.
///
/// The source of network signals asks the kernel and tells each pipeline; the signal `network` may be heard before or
/// after the fact.
package struct NetworkState: Hashable, Sendable {
    /// The kernel has a usable route to the target.
    package var reachable: Bool
    /// Begins anew with each `network` and `resume`; a run uses only connections of its own epoch.
    package var epoch: UInt64
    /// When this state began.
    package var changedAt: ContinuousClock.Instant
    /// The path in words, such as `enp3s0 via 192.0.2.1 from 192.0.2.7`. Two equal texts are one path.
    package var path: String

    package init(reachable: Bool, epoch: UInt64, changedAt: ContinuousClock.Instant, path: String = "") {
        self.reachable = reachable
        self.epoch = epoch
        self.changedAt = changedAt
        self.path = path
    }
}
