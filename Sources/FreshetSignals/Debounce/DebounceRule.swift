/// Delivers an element when a quiet period has passed since the last one, or when the first element of a burst has been
/// held for long enough. With `leading`, the first element of a burst passes immediately.
struct DebounceRule<Instant: InstantProtocol>: PaceRule where Instant.Duration == Duration {
    private var debouncer: Debouncer<Instant>
    private let leading: Bool

    init(quiet: Duration, atMost: Duration?, leading: Bool) {
        debouncer = Debouncer(quiet: quiet.asPace, atMost: (atMost ?? .longestPace).asPace)
        self.leading = leading
    }

    var flushesAtEnd: Bool { true }

    mutating func arrival(at now: Instant, isHolding: Bool) -> PaceDecision<Instant> {
        let isBurst = debouncer.isBurst(at: now)
        // The element replaces the held one, and is held since the first element that it replaces.
        if !isHolding || !isBurst { debouncer.nothingIsHeld() }
        debouncer.hold(at: now)
        // A duration of zero means no delay.
        let isImmediate = debouncer.quiet == .zero || debouncer.atMost == .zero || leading && !isBurst
        guard !isImmediate, let due = debouncer.deliversAt else { return .pass }
        return .hold(until: due)
    }

    mutating func delivered(at now: Instant) {
        debouncer.nothingIsHeld()
        // The timer has fired, so all elements of this instant have arrived.
        _ = debouncer.elapse(at: now)
    }
}
