/// How often a failure that goes on is news: the first time, then once an hour with how often it happened since.
struct RepeatedFailureLimiter: Hashable, Sendable {
    static let interval: Duration = .seconds(3_600)

    enum Decision: Hashable, Sendable {
        /// Say it, and how many like it were passed over since the last time.
        case say(passedOver: Int)
        case passOver
    }

    private var lastSaid: ContinuousClock.Instant?
    private var passedOver = 0

    /// Whether the pipeline is failing, as far as was said.
    var isFailing: Bool { lastSaid != nil }

    mutating func failed(at now: ContinuousClock.Instant) -> Decision {
        if let lastSaid, now < lastSaid + Self.interval {
            passedOver += 1
            return .passOver
        }
        lastSaid = now
        defer { passedOver = 0 }
        return .say(passedOver: passedOver)
    }

    /// Returns true if a failure was said before, so that its end is news.
    mutating func succeeded() -> Bool {
        defer { self = RepeatedFailureLimiter() }
        return isFailing
    }
}
