import FreshetSystemSignals

/// Limits the messages about logind: the daemon logs once that logind is not available, and once that it became
/// available.
struct SleepLogFilter: Hashable, Sendable {
    enum Decision: Hashable, Sendable {
        /// logind is not available, so only the clocks show a wake. The reason is a sentence for people.
        case missing(reason: String)
        case found
    }

    private enum Logged: Hashable {
        case nothing, missing, all
    }

    private var logged = Logged.nothing
    /// The last wake that was logged.
    private var awakeSince: ContinuousClock.Instant?

    /// Returns whether the machine woke up when `resume` fired. If the signal is fired by hand, the fact stays the
    /// same.
    mutating func woke(_ fact: SleepFact) -> Bool {
        defer { awakeSince = fact.awakeSince }
        return awakeSince != fact.awakeSince
    }

    /// Returns the message to log for the availability of logind; nil: there is no new message.
    mutating func changed(_ logind: SleepFact.Availability) -> Decision? {
        switch (logged, logind) {
        case (.nothing, .unavailable(let reason)):
            logged = .missing
            return .missing(reason: reason)
        case (.missing, .available):
            logged = .all
            return .found
        case (_, .pending), (.nothing, .available), (.missing, .unavailable), (.all, _):
            return nil
        }
    }
}

extension SleepFact {
    /// The fact of `resume` in `freshetctl signals`, such as `awake since 3h 2min ago, last sleep 8h 1min`.
    func text(at now: ContinuousClock.Instant) -> String {
        var text = "awake since before the daemon started"
        if isGoingToSleep {
            text = "going to sleep"
        } else if let awakeSince {
            text = "awake since \((now - awakeSince).rounded) ago"
        }
        if let lastSleep { text += ", last sleep \(lastSleep.rounded)" }
        if let clockSteppedAt { text += ", clock stepped \((now - clockSteppedAt).rounded) ago" }
        return text
    }

    /// Why the daemon may miss a sleep or detect it late; nil: logind is available.
    var missing: String? {
        guard case .unavailable(let reason) = logind else { return nil }
        return "no logind: \(reason); detecting sleep by the clocks only"
    }
}
