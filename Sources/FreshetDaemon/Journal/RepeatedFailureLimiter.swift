import FreshetModel

/// Limits the messages about a repeated failure. The first failure is logged, then one per hour with the number of
/// suppressed ones.
struct RepeatedFailureLimiter: Hashable, Sendable {
    static let interval: Duration = .seconds(3_600)

    enum Decision: Hashable, Sendable {
        /// Log the failure, with the number of failures that were suppressed since the last message.
        case log(suppressed: Int)
        case suppress
    }

    private var lastLogged: BootInstant?
    private var suppressed = 0

    /// Whether a failure was logged and no success followed.
    var isFailing: Bool { lastLogged != nil }

    mutating func failed(at now: BootInstant) -> Decision {
        if let lastLogged, now < lastLogged + Self.interval {
            suppressed += 1
            return .suppress
        }
        lastLogged = now
        defer { suppressed = 0 }
        return .log(suppressed: suppressed)
    }

    /// Returns true if a failure was logged before, so that its end has to be logged.
    mutating func succeeded() -> Bool {
        defer { self = RepeatedFailureLimiter() }
        return isFailing
    }
}
