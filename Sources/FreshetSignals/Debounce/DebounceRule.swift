/// Calm and storm: in calm an element may pass; in a storm the last one is held until it has been quiet for a while, or
/// until the first one has been held for long enough.
struct DebounceRule<Instant: InstantProtocol>: PaceRule where Instant.Duration == Duration {
    private let quiet: Duration
    private let atMost: Duration?
    private let leading: Bool

    /// Nil in the calm at the start.
    private var last: Instant?
    /// When the first of those arrived for which the held element stands.
    private var firstHeld: Instant?

    init(quiet: Duration, atMost: Duration?, leading: Bool) {
        self.quiet = quiet.asPace
        self.atMost = atMost?.asPace
        self.leading = leading
    }

    var endsAtOnce: Bool { true }

    mutating func arrival(at now: Instant, isHolding: Bool) -> PaceDecision<Instant> {
        // Elements come before timers: at the instant at which the quiet ends it is still a storm.
        let isCalm = last.map { $0.advanced(by: quiet) < now } ?? true
        last = now
        let first = isHolding && !isCalm ? firstHeld ?? now : now
        firstHeld = first
        // A wait of no length is none.
        if quiet == .zero || atMost == .zero || isCalm && leading { return .pass }
        let afterQuiet = now.advanced(by: quiet)
        guard let atMost else { return .hold(until: afterQuiet) }
        return .hold(until: min(afterQuiet, first.advanced(by: atMost)))
    }

    mutating func delivered(at now: Instant) {
        firstHeld = nil
        // The timer has come, so this instant's elements are over.
        if let end = last?.advanced(by: quiet), end <= now { last = nil }
    }
}
