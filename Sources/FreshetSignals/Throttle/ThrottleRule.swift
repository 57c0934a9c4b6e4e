/// One element an interval, and the first at once. An interval begins with a delivery.
struct ThrottleRule<Instant: InstantProtocol>: PaceRule where Instant.Duration == Duration {
    private let interval: Duration
    private let latest: Bool

    private var lastDelivery: Instant?

    init(interval: Duration, latest: Bool) {
        self.interval = interval.asPace
        self.latest = latest
    }

    var endsAtOnce: Bool { false }

    mutating func arrival(at now: Instant, isHolding: Bool) -> PaceDecision<Instant> {
        if isHolding, !latest { return .drop }
        // A wait of no length is none.
        guard interval > .zero, let end = lastDelivery?.advanced(by: interval) else { return .pass }
        // Elements come before timers: at the instant at which an interval ends it still lasts.
        return end < now ? .pass : .hold(until: end)
    }

    mutating func delivered(at now: Instant) {
        lastDelivery = now
    }
}
