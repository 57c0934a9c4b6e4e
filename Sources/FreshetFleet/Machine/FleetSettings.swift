import Glibc

/// The settings of a member of a fleet for one pipeline.
package struct FleetSettings: Hashable, Sendable {
    /// The behaviour of a member while the engine does not answer.
    package struct Fallback: Hashable, Sendable {
        /// How long the engine must be silent before members request the content from the origin.
        package var after: Duration
        /// The mean number of requests per second of all members together.
        package var rate: Double

        package init(after: Duration = .seconds(900), rate: Double = 5) {
            self.after = after
            self.rate = rate
        }
    }

    /// The name of this member in records and claims.
    package var machine: String
    /// Whether this member may claim runs, and request content from the origin for the others.
    package var fetches: Bool
    /// The longest time between two planned checks of one machine; nil: no check is planned.
    package var checkPeriod: Duration?
    /// For how long after a check signals of the environment need no other one.
    package var freshFor: Duration
    /// How long the other members wait for a check after the last fetcher should have made it.
    package var grace: Duration
    /// The time over which members spread the transfer of new content.
    package var spread: Duration
    /// Nil: without the engine, the origin is never requested.
    package var fallback: Fallback?
    /// How new content goes to the fleet, if this member publishes it; nil: to all members together.
    package var rollOut: RollOutPlan?
    /// The place of this member among all for this pipeline, from 0 to 1, always the same.
    package var share: Double
    /// Whether heads and contents can be read without a connection to the engine, from a mirror at the member's site.
    package var hasMirror: Bool

    /// How long a claim is valid without being renewed: long enough for two lost renewals.
    package static let claimLifetime: Duration = .seconds(30)
    /// The time between two renewals of a claim.
    package static let renewal: Duration = .seconds(10)
    /// The largest backoff before a claim.
    package static let longestClaimBackoff: Duration = .seconds(5)
    /// How long a run waits for a connection to the engine before it fails.
    package static let patience: Duration = .seconds(30)

    package init(
        machine: String, fetches: Bool = true, checkPeriod: Duration? = nil, freshFor: Duration = .seconds(60),
        grace: Duration = .seconds(30), spread: Duration = .seconds(5), fallback: Fallback? = Fallback(),
        rollOut: RollOutPlan? = nil, share: Double = 0, hasMirror: Bool = false
    ) {
        self.machine = machine
        self.fetches = fetches
        self.checkPeriod = checkPeriod
        self.freshFor = freshFor
        self.grace = grace
        self.spread = spread
        self.fallback = fallback
        self.rollOut = rollOut
        self.share = share
        self.hasMirror = hasMirror
    }

    /// The least lifetime of a check for signals of the environment: after a power cut, members reconnect over a minute.
    static let leastAnswerLifetime: Duration = .seconds(60)

    /// The age at which a check of any member does not answer a signal of the environment any more.
    var answerLifetime: Duration { checkPeriod ?? max(freshFor, Self.leastAnswerLifetime) }

    /// The age of the last check of the fleet at which this member regards it as overdue.
    ///
    /// - Parameter isLastFetcher: whether this member made that check.
    func overdueAge(isLastFetcher: Bool) -> Duration? {
        checkPeriod.map { isLastFetcher ? $0 : $0 + grace + spread * share }
    }
}

/// The backoff before a claim. With many contenders, few of them try early, so that the others receive the claim of the
/// first before they try (RFC 5401, 3.2.1: exponential backoff for a group of known size).
enum ClaimBackoff {
    /// - Parameters:
    ///   - longest: the largest backoff.
    ///   - members: the number of contenders, if all members contend.
    ///   - fraction: a random number from 0 to 1.
    static func duration(longest: Duration, members: UInt32, fraction: Double) -> Duration {
        let lambda = log1p(Double(max(1, members)) - 1) + 1
        let place = log1p(max(0, min(1, fraction)) * expm1(lambda)) / lambda
        return longest * max(0, min(1, place))
    }
}
