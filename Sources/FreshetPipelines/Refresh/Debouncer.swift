/// Calm and storm: lets the first of many signals through at once and holds back the others.
///
/// | state | a signal comes | `quiet` passes without any | `at-most` passes since the first one held |
/// | --- | --- | --- | --- |
/// | calm | passes, storm | | |
/// | storm | is held | what is held passes, calm | what is held passes, still storm |
///
/// The gate only says what passes; who asks keeps what is held.
struct Debouncer: Hashable, Sendable {
    var quiet: Duration
    var atMost: Duration
    /// The last signal of the storm; nil: calm.
    private var last: ContinuousClock.Instant?
    /// The first signal that is held back.
    private var firstHeld: ContinuousClock.Instant?

    init(quiet: Duration, atMost: Duration) {
        self.quiet = quiet
        self.atMost = atMost
    }

    /// When it becomes calm, if nothing comes before; nil: it is calm.
    var calmAt: ContinuousClock.Instant? { last?.advanced(by: quiet) }

    /// When what is held passes, if nothing comes before; nil: nothing is held.
    var deliversAt: ContinuousClock.Instant? {
        guard let firstHeld, let calmAt else { return nil }
        return min(calmAt, firstHeld.advanced(by: atMost))
    }

    func isStorm(at now: ContinuousClock.Instant) -> Bool {
        guard let calmAt else { return false }
        return now < calmAt
    }

    /// A signal came: whether it passes. Call ``elapse(at:)`` before.
    mutating func hear(at now: ContinuousClock.Instant) -> Bool {
        let passes = !isStorm(at: now)
        last = now
        if !passes, firstHeld == nil { firstHeld = now }
        return passes
    }

    /// Something came that cannot run whatever the gate says: it prolongs a storm and begins none.
    mutating func touch(at now: ContinuousClock.Instant) {
        if isStorm(at: now) { last = now }
    }

    /// Time went by: whether what is held passes now.
    mutating func elapse(at now: ContinuousClock.Instant) -> Bool {
        let delivers = deliversAt.map { now >= $0 } ?? false
        if delivers { firstHeld = nil }
        if !isStorm(at: now) { last = nil }
        return delivers
    }

    /// What was held went another way (a run took it along, a success answered it).
    mutating func nothingIsHeld() {
        firstHeld = nil
    }
}
