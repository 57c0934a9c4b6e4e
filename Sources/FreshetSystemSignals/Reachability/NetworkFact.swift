/// The present state of one target: a fact that can be asked for at any time.
public struct NetworkFact: Hashable, Sendable, CustomStringConvertible {
    public let target: NetworkTarget
    /// Whether packets to the target have a way out of this machine. Whether the other end answers is not known.
    public internal(set) var isReachable: Bool
    /// The ways there, one for each protocol that has one; empty if there is none, or if nobody knows.
    public internal(set) var paths: [NetworkPath]
    /// Why it is not reachable; nil if it is.
    public internal(set) var obstacle: UnreachableReason?
    /// Nobody knows, because netlink is missing (``NetworkMonitor/availability``): reachability is taken for granted.
    public internal(set) var isAssumed: Bool
    /// Why nobody knows, and what helps: a sentence for people. Nil unless ``isAssumed``.
    public internal(set) var unknownBecause: String?
    /// Since when ``isReachable`` has had its value.
    public internal(set) var since: ContinuousClock.Instant
    /// When reachability or the path changed last, or an epoch began for all (``NetworkMonitor/beginEpoch()``): what
    /// grace after a change is counted from. At first, the instant at which the target was first looked at.
    public internal(set) var changedAt: ContinuousClock.Instant
    /// The epoch of the network that the last change began. Connections from earlier ones may hang.
    public internal(set) var epoch: UInt64

    /// Makes a fact by hand: for tests of what reads facts.
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

    /// - Parameter reason: why nobody knows; nil: the snapshot is what is known.
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
        if isAssumed { return "not known, taken for reachable" }
        if let obstacle { return obstacle.description }
        return paths.map(\.description).joined(separator: ", ")
    }
}
