/// The state of one target.
public struct NetworkFact: Hashable, Sendable, CustomStringConvertible {
    public let target: NetworkTarget
    /// Whether packets to the target can leave this machine. Whether the target answers is not known.
    public internal(set) var isReachable: Bool
    /// The paths to the target, one for each protocol that has one; empty if there are none, or if they are unknown.
    public internal(set) var paths: [NetworkPath]
    /// Why the target is not reachable; nil if it is.
    public internal(set) var obstacle: UnreachableReason?
    /// Whether reachability is only assumed, because netlink is not available (``NetworkMonitor/availability``).
    public internal(set) var isAssumed: Bool
    /// Why reachability is unknown, and how to repair it, as a sentence for people. Nil unless ``isAssumed``.
    public internal(set) var unknownBecause: String?
    /// When ``isReachable`` last changed.
    public internal(set) var since: ContinuousClock.Instant
    /// When reachability or the path last changed, or an epoch began for all targets (``NetworkMonitor/beginEpoch()``):
    /// the start of a grace period after a change. Initially, the instant of the first check.
    public internal(set) var changedAt: ContinuousClock.Instant
    /// The epoch of the last change. Connections from earlier epochs may hang.
    public internal(set) var epoch: UInt64

    /// Makes a fact, for tests.
    public init(
        _ target: NetworkTarget, isReachable: Bool, paths: [NetworkPath] = [], obstacle: UnreachableReason? = nil,
        changedAt: ContinuousClock.Instant, epoch: UInt64
    ) {
        self.target = target
        self.isReachable = isReachable
        self.paths = paths
        self.obstacle = obstacle
        isAssumed = false
        unknownBecause = nil
        since = changedAt
        self.changedAt = changedAt
        self.epoch = epoch
    }

    /// - Parameter reason: Why reachability is unknown; nil: the snapshot is known.
    init(
        _ target: NetworkTarget, _ snapshot: NetworkSnapshot, unknownBecause reason: String? = nil,
        at now: ContinuousClock.Instant, epoch: UInt64
    ) {
        self.target = target
        isAssumed = reason != nil
        unknownBecause = reason
        isReachable = isAssumed || snapshot.isReachable
        paths = snapshot.paths
        obstacle = isAssumed ? nil : snapshot.obstacle
        since = now
        changedAt = now
        self.epoch = epoch
    }

    /// For people, such as `via 192.0.2.1 on wan0 from 192.0.2.2`, or `no route`.
    public var description: String {
        if isAssumed { return "unknown, assumed reachable" }
        if let obstacle { return obstacle.description }
        if paths.count == 1, let path = paths.first { return path.description }
        return paths.map(\.description).joined(separator: ", ")
    }
}
