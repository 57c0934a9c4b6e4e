/// Delivers the first element immediately, then one element for each interval. An interval begins with a delivery.
struct ThrottleRule<Instant: InstantProtocol>: PaceRule where Instant.Duration == Duration {
    private let interval: Duration
    private let latest: Bool

    private var lastDelivery: Instant?

    init(interval: Duration, latest: Bool) {
        self.interval = interval.asPace
        self.latest = latest
    }

    var flushesAtEnd: Bool { false }

    mutating func arrival(at now: Instant, isHolding: Bool) -> PaceDecision<Instant> {
        if isHolding, !latest { return .drop }
        // An interval of zero means no delay.
        guard interval > .zero, let end = lastDelivery?.advanced(by: interval) else { return .pass }
        // Elements come before timers: at its last instant an interval has not ended yet.
        return end < now ? .pass : .hold(until: end)
    }

    mutating func delivered(at now: Instant) {
        lastDelivery = now
    }
}
