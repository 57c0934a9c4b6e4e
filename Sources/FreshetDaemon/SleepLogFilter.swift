import FreshetSystemSignals

/// What is news of logind: that it cannot be heard, once in the daemon's life, and that it was found after that.
struct SleepLogFilter: Hashable, Sendable {
    enum Decision: Hashable, Sendable {
        /// Only the clocks tell of a wake. The reason is a sentence for people.
        case missing(reason: String)
        case found
    }

    private enum Said: Hashable {
        case nothing, missing, all
    }

    private var said = Said.nothing
    /// The last wake that was told of.
    private var awakeSince: ContinuousClock.Instant?

    /// `resume` fired; returns whether the machine woke up. Raised by hand, it fires and the fact stays.
    mutating func woke(_ fact: SleepFact) -> Bool {
        defer { awakeSince = fact.awakeSince }
        return awakeSince != fact.awakeSince
    }

    /// What there is to say of this; nil: nothing, or it was said before.
    mutating func heard(_ logind: SleepFact.Availability) -> Decision? {
        switch (said, logind) {
        case (.nothing, .unavailable(let reason)):
            said = .missing
            return .missing(reason: reason)
        case (.missing, .available):
            said = .all
            return .found
        case (_, .pending), (.nothing, .available), (.missing, .unavailable), (.all, _):
            return nil
        }
    }
}

extension SleepFact {
    /// What `freshetctl signals` shows of `resume`, such as `awake since 3h 2min ago, last sleep 8h 1min`.
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

    /// What is missing to hear of all sleep and in time; nil: nothing.
    var missing: String? {
        guard case .unavailable(let reason) = logind else { return nil }
        return "no logind: \(reason); the clocks alone are watched"
    }
}
