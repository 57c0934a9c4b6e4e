/// Whether a run may start as far as the network goes, and how a failure to connect is to be taken.
struct NetworkGate: Hashable, Sendable {
    /// After `network` or `resume` the resolver, address configuration and a wireless link need some seconds more than
    /// the kernel's word: for so long a failure to connect is not a failure.
    static let grace: Duration = .seconds(30)
    /// The first wait after such a failure; each further one is twice as long.
    static let firstGraceDelay: Duration = .milliseconds(250)
    /// How often an overdue check is attempted although routing says that the target cannot be reached.
    static let attemptAnyway: Duration = .seconds(15 * 60)

    enum Change: Hashable, Sendable {
        case none, lost, regained
        /// Reachable before and now, by another path.
        case path
    }

    private(set) var state: NetworkState
    private var direct = DirectNetworks()
    private var unreachableSince: ContinuousClock.Instant?
    private var lastAttemptAnyway: ContinuousClock.Instant?
    private var graceUntil: ContinuousClock.Instant?
    private var graceFailures = 0

    init(_ state: NetworkState, now: ContinuousClock.Instant) {
        self.state = state
        if state.reachable {
            settle(from: state.changedAt)
        } else {
            unreachableSince = now
        }
    }

    mutating func update(_ new: NetworkState, now: ContinuousClock.Instant) -> Change {
        let old = state
        state = new
        switch (old.reachable, new.reachable) {
        case (true, false):
            unreachableSince = now
            return .lost
        case (false, true):
            unreachableSince = nil
            settle(from: new.changedAt)
            return .regained
        case (true, true):
            if new.epoch != old.epoch { settle(from: new.changedAt) }
            return new.path == old.path ? .none : .path
        case (false, false):
            return .none
        }
    }

    /// Whether runs may start: there is a route to elsewhere, or the origin was found on a directly connected network.
    var isUsable: Bool { state.reachable || direct.isOriginThere }

    /// The directly connected networks are others, or there are none (nil).
    mutating func directNetworks(_ revision: UInt64?) { direct.revision = revision }

    /// The revision of the networks on which a run that starts now looks for the origin; nil: it has a route to elsewhere.
    mutating func directRun(at now: ContinuousClock.Instant) -> UInt64? {
        state.reachable ? nil : direct.runStarts(at: now)
    }

    /// - Parameter isThere: whether the origin was reached, or there was a route to its address.
    mutating func directRunEnded(_ revision: UInt64, isThere: Bool) {
        direct.runEnded(revision, isThere: isThere)
    }

    /// When an origin that is known by name is looked for on directly connected networks; nil: not before these change.
    var looksForOrigin: ContinuousClock.Instant? {
        state.reachable ? nil : direct.nextAttempt(since: unreachableSince ?? state.changedAt)
    }

    /// `network` or `resume` happened: grace begins, with short waits again.
    mutating func settle(from instant: ContinuousClock.Instant) {
        let until = instant.advanced(by: Self.grace)
        guard graceUntil.map({ until > $0 }) ?? true else { return }
        graceUntil = until
        graceFailures = 0
    }

    func isGrace(at now: ContinuousClock.Instant) -> Bool {
        graceUntil.map { now < $0 } ?? false
    }

    /// A failure to connect within grace: the wait for the next attempt, 0.25 s, 0.5 s, 1 s, 2 s, …
    mutating func graceDelay() -> Duration {
        defer { graceFailures += 1 }
        // safe: within 30 s there are at most seven such failures; the limit only keeps the shift in bounds.
        return Self.firstGraceDelay * (1 << min(graceFailures, 16))
    }

    /// When a check that is due since the given instant is attempted although the target is not reachable.
    func attemptsAnyway(overdueSince due: ContinuousClock.Instant) -> ContinuousClock.Instant {
        var attempt = due
        if let unreachableSince { attempt = max(attempt, unreachableSince.advanced(by: Self.attemptAnyway)) }
        if let lastAttemptAnyway { attempt = max(attempt, lastAttemptAnyway.advanced(by: Self.attemptAnyway)) }
        return attempt
    }

    mutating func attemptedAnyway(at now: ContinuousClock.Instant) {
        lastAttemptAnyway = now
    }
}
