import FreshetModel

/// Finds an origin, known by its host name, on a directly connected network. The route to the internet does not show
/// whether it is there: its name has to be resolved, and the kernel must have a route to the address. A run does both.
/// So after each change of these networks one run starts, and its result holds until the next change.
struct DirectNetworks: Hashable, Sendable {
    /// The least time between two attempts, however often the networks change.
    static let attemptGap: Duration = .seconds(5)

    /// A number that changes with the networks; nil: there are none, or the origin is not known by a host name.
    var revision: UInt64?
    /// The networks of the last attempt.
    private var attempted: UInt64?
    private var lastAttempt: BootInstant?
    /// The networks on which the origin was found.
    private var found: UInt64?

    /// The origin was found on the current networks.
    var isOriginFound: Bool { revision != nil && found == revision }

    /// When the next attempt may start; nil: not before the networks change.
    ///
    /// - Parameter since: since when there is no route to the internet.
    func nextAttempt(since: BootInstant) -> BootInstant? {
        guard let revision, attempted != revision else { return nil }
        return max(since, lastAttempt?.advanced(by: Self.attemptGap) ?? since)
    }

    mutating func runStarts(at now: BootInstant) -> UInt64? {
        guard let revision else { return nil }
        attempted = revision
        lastAttempt = now
        return revision
    }

    mutating func runEnded(_ revision: UInt64, isFound: Bool) {
        if isFound { found = revision }
    }
}
