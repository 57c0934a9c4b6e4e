/// Debounces signals: lets the first signal of a burst through immediately and holds the others.
///
/// | state | a signal comes | `quiet` passes without any | `at-most` passes since the first one held |
/// | --- | --- | --- | --- |
/// | quiet | passes, burst | | |
/// | burst | is held | what is held passes, quiet | what is held passes, still burst |
///
/// The debouncer only decides what passes; the caller keeps the held signals.
struct Debouncer: Hashable, Sendable {
    var quiet: Duration
    var atMost: Duration
    /// The last signal of the burst; nil: there is no burst.
    private var last: ContinuousClock.Instant?
    /// The first signal that is held.
    private var firstHeld: ContinuousClock.Instant?

    init(quiet: Duration, atMost: Duration) {
        self.quiet = quiet
        self.atMost = atMost
    }

    /// When the burst ends, if no signal comes before; nil: there is no burst.
    var quietAt: ContinuousClock.Instant? { last?.advanced(by: quiet) }

    /// When the held signals pass, if no signal comes before; nil: nothing is held.
    var deliversAt: ContinuousClock.Instant? {
        guard let firstHeld, let quietAt else { return nil }
        return min(quietAt, firstHeld.advanced(by: atMost))
    }

    func isBurst(at now: ContinuousClock.Instant) -> Bool {
        guard let quietAt else { return false }
        return now < quietAt
    }

    /// Receives a signal and returns whether it passes. Call ``elapse(at:)`` before.
    mutating func receive(at now: ContinuousClock.Instant) -> Bool {
        let passes = !isBurst(at: now)
        last = now
        if !passes, firstHeld == nil { firstHeld = now }
        return passes
    }

    /// Receives a signal that cannot lead to a run now: it prolongs a burst and begins none.
    mutating func touch(at now: ContinuousClock.Instant) {
        if isBurst(at: now) { last = now }
    }

    /// Advances the time and returns whether the held signals pass now.
    mutating func elapse(at now: ContinuousClock.Instant) -> Bool {
        let delivers = deliversAt.map { now >= $0 } ?? false
        if delivers { firstHeld = nil }
        if !isBurst(at: now) { last = nil }
        return delivers
    }

    /// The held signals were taken otherwise (by a run, or answered by a success).
    mutating func nothingIsHeld() {
        firstHeld = nil
    }
}
