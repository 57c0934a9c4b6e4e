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
