/// An origin that is known by name may be on a network that this machine is connected to, which no route to elsewhere tells.
/// The name has to be resolved, and the kernel judges the route to the address: a run does both. So after each change of these
/// networks one run starts, and what becomes of it counts until the next change.
struct DirectNetworks: Hashable, Sendable {
    /// The least time between two attempts, however often the networks change.
    static let attemptGap: Duration = .seconds(5)

    /// Another number for other networks; nil: there are none, or the origin is not one that is known by name.
    var revision: UInt64?
    /// The networks of the last attempt.
    private var attempted: UInt64?
    private var lastAttempt: ContinuousClock.Instant?
    /// The networks on which the origin was found.
    private var found: UInt64?

    /// The origin was found on the present networks.
    var isOriginThere: Bool { revision != nil && found == revision }

    /// When the next attempt may start; nil: not before the networks change.
    ///
    /// - Parameter since: since when there is no route to elsewhere.
    func nextAttempt(since: ContinuousClock.Instant) -> ContinuousClock.Instant? {
        guard let revision, attempted != revision else { return nil }
        return max(since, lastAttempt?.advanced(by: Self.attemptGap) ?? since)
    }

    mutating func runStarts(at now: ContinuousClock.Instant) -> UInt64? {
        guard let revision else { return nil }
        attempted = revision
        lastAttempt = now
        return revision
    }

    mutating func runEnded(_ revision: UInt64, isThere: Bool) {
        if isThere { found = revision }
    }
}
