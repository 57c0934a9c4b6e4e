/// How long a failed run waits for its next attempt.
enum Backoff {
    /// The longest wait after an answer such as 404 if there is no `every`.
    static let longestAfterRefusal: Duration = .seconds(3600)
    /// The least wait after such an answer, and after a check that found what is refused: what a deployment, a portal or a
    /// maintenance page shows is gone within minutes, or stays.
    static let leastAfterRefusal: Duration = .seconds(60)
    /// The longest that a `Retry-After` is heeded. One that is longer is a mistake, or silences the pipeline for good.
    static let longestRetryAfter: Duration = .seconds(7 * 24 * 3600)

    /// The wait after the given number of failures in a row, the last of this kind.
    ///
    /// | kind | wait |
    /// | --- | --- |
    /// | refused | a minute, twice that after each further failure, up to `every`, and a ``spread(over:after:policy:_:)`` |
    /// | other | at random from 0 to min(`to`, `from` · 2ⁿ⁻¹) after the n-th failure: full jitter |
    /// - Parameter isPartial: branches of the run failed, and the rest was published. What the origin refused of it waits
    ///   for the next check.
    static func delay(
        after failures: Int, _ kind: RunFailure.Kind, isPartial: Bool = false, policy: RefreshPolicy,
        jitter: inout Jitter
    ) -> Duration {
        switch kind {
        case .refused where isPartial:
            spread(
                over: max(policy.every ?? .zero, longestAfterRefusal), after: failures, policy: policy.retry, &jitter)
        case .refused:
            spread(
                over: afterRefusal(
                    failures, policy: policy.retry,
                    planned: max(policy.every ?? longestAfterRefusal, leastAfterRefusal)),
                after: failures, policy: policy.retry, &jitter)
        case .connection, .transient, .certificateDate, .content, .local, .absent, .budget, .deadline:
            jitter.duration(upTo: ceiling(after: failures, policy: policy.retry))
        }
    }

    /// A wait that many clients were given at one moment, and a part of it at random on top: what was sent away together
    /// shall not come back together. The part is at most a quarter of the wait, or the back-off's own wait if that is
    /// longer, and never more than `to`.
    static func spread(
        over wait: Duration, after failures: Int, policy: RetryPolicy, _ jitter: inout Jitter
    ) -> Duration {
        wait + jitter.duration(upTo: min(max(wait / 4, ceiling(after: failures, policy: policy)), policy.to))
    }

    /// How long to wait after an answer such as 404, or after a check that found what is refused: `from`, but a minute at least, and twice that with each
    /// wait. It has no limit of its own, so that what stays is soon asked for no more often than what is well.
    ///
    /// - Parameters:
    ///   - waits: which wait it is, from 1 on.
    ///   - planned: the wait after a check that succeeded, which is never exceeded.
    static func afterRefusal(_ waits: Int, policy: RetryPolicy, planned: Duration) -> Duration {
        var wait = max(policy.from, leastAfterRefusal)
        var doublings = waits - 1
        // Ends early: a minute passes any `every` after a few steps.
        while doublings > 0, wait < planned {
            wait *= 2
            doublings -= 1
        }
        return min(wait, planned)
    }

    /// The longest wait after so many failures in a row.
    static func ceiling(after failures: Int, policy: RetryPolicy) -> Duration {
        var ceiling = min(policy.from, policy.to)
        var doublings = failures - 1
        // Ends early: a duration above zero passes `to` after a few steps, and zero stays zero.
        while doublings > 0, ceiling > .zero, policy.to > ceiling {
            ceiling = min(ceiling * 2, policy.to)
            doublings -= 1
        }
        return ceiling
    }
}

/// What is left to do for a run that failed.
struct Retry: Hashable, Sendable {
    /// The causes of the run that failed.
    var wanted: Wanted
    var kind: RunFailure.Kind
    var due: ContinuousClock.Instant
    /// The failure fell into the grace after `network` or `resume` and was none.
    var inGrace: Bool
    /// A signal took back the wait.
    var isCut = false
    /// The network came back during a storm: the attempt is held with what the storm holds.
    var isHeld = false
}
