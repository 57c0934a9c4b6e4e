package import FreshetModel

/// The state of the network for one pipeline: whether its target is reachable, and by which path.
///
/// The network source asks the kernel and notifies each pipeline; the signal `network` may come before or after the new
/// state.
package struct NetworkState: Hashable, Sendable {
    /// Whether the kernel has a usable route to the target.
    package var reachable: Bool
    /// Grows with each `network` and `resume`; a run only uses connections of its epoch.
    package var epoch: UInt64
    /// When this state began.
    package var changedAt: BootInstant
    /// The path as text, such as `enp3s0 via 192.0.2.1 from 192.0.2.7`. Equal texts mean the same path.
    package var path: String

    package init(reachable: Bool, epoch: UInt64, changedAt: BootInstant, path: String = "") {
        self.reachable = reachable
        self.epoch = epoch
        self.changedAt = changedAt
        self.path = path
    }
}
