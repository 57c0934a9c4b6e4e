/// Delivers an element when a quiet period has passed since the last one, or when the first element of a burst has been
/// held for long enough. With `leading`, the first element of a burst passes immediately.
struct DebounceRule<Instant: InstantProtocol>: PaceRule where Instant.Duration == Duration {
    private let quiet: Duration
    private let atMost: Duration?
    private let leading: Bool

    /// The last arrival; nil before the first element and after a quiet period.
    private var last: Instant?
    /// When the first of the elements arrived that the held element replaces.
    private var firstHeld: Instant?

    init(quiet: Duration, atMost: Duration?, leading: Bool) {
        self.quiet = quiet.asPace
        self.atMost = atMost?.asPace
        self.leading = leading
    }

    var flushesAtEnd: Bool { true }

    mutating func arrival(at now: Instant, isHolding: Bool) -> PaceDecision<Instant> {
        // Elements come before timers: at the instant at which the quiet period ends, the burst still continues.
        let isQuiet = last.map { $0.advanced(by: quiet) < now } ?? true
        last = now
        let first = isHolding && !isQuiet ? firstHeld ?? now : now
        firstHeld = first
        // A duration of zero means no delay.
        if quiet == .zero || atMost == .zero || isQuiet && leading { return .pass }
        let afterQuiet = now.advanced(by: quiet)
        guard let atMost else { return .hold(until: afterQuiet) }
        return .hold(until: min(afterQuiet, first.advanced(by: atMost)))
    }

    mutating func delivered(at now: Instant) {
        firstHeld = nil
        // The timer has fired, so all elements of this instant have arrived.
        if let end = last?.advanced(by: quiet), end <= now { last = nil }
    }
}
