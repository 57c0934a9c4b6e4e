/// Whether the engine answers, and when this member may request the origin alone if it does not.
struct EngineSilence: Hashable, Sendable {
    typealias Instant = ContinuousClock.Instant

    /// After so many claims in a row without an answer, the engine counts as silent: if its disk is full, it answers
    /// reads and no writes.
    static let mostUnansweredClaims = 2

    /// Nil: the engine answers.
    private var since: Instant?
    private var unansweredClaims = 0
    /// When this member may request the origin.
    private var planned: Instant?

    init(since now: Instant) { since = now }

    mutating func begins(at now: Instant) { since = since ?? now }

    mutating func ends() { self = EngineSilence() }

    private init() {}

    /// A read was answered, which does not show that writes are.
    mutating func readWasAnswered() {
        if unansweredClaims == 0 { since = nil }
    }

    /// Returns whether the engine counts as silent now.
    mutating func claimWasNotAnswered(at now: Instant) -> Bool {
        begins(at: now)
        unansweredClaims += 1
        return unansweredClaims >= Self.mostUnansweredClaims
    }

    /// When this member may request the origin; nil: never. Each member has its own place in the period, also if all of
    /// them have to check at the same time.
    ///
    /// - Parameter members: the number of members, as far as it is known.
    mutating func slot(_ settings: FleetSettings, members: UInt32, _ now: Instant) -> Instant? {
        guard let fallback = settings.fallback else { return nil }
        if let planned, now < planned + FleetSettings.patience { return planned }
        let period = max(
            settings.checkPeriod ?? settings.answerLifetime,
            .seconds(1) * (Double(members) / max(0.001, fallback.rate)))
        let first = (since ?? now) + fallback.after + period * settings.share
        let periods = max(0, ((now - first) / period).rounded(.up))
        let slot = first + period * periods
        planned = slot
        return slot
    }

    /// The member requests the origin; its next place is in the next period.
    mutating func slotIsUsed() { planned = nil }
}
