/// Computes how long a failed run waits for its next attempt.
enum Backoff {
    /// The longest wait after an answer such as 404 if there is no `every`.
    static let longestAfterRejection: Duration = .seconds(3600)
    /// The least wait after such an answer, and after a check that rejected the content: content of a deployment, a
    /// captive portal or a maintenance page is gone within minutes, or stays.
    static let leastAfterRejection: Duration = .seconds(60)
    /// The longest `Retry-After` that is honoured. A longer one is a mistake, or would stop the pipeline for good.
    static let longestRetryAfter: Duration = .seconds(7 * 24 * 3600)

    /// The wait after the given number of consecutive failures, the last of this kind.
    ///
    /// | kind | wait |
    /// | --- | --- |
    /// | refused | a minute, twice that after each further failure, up to `every`, and a ``spread(over:after:policy:_:)`` |
    /// | other | at random from 0 to min(`to`, `from` · 2ⁿ⁻¹) after the n-th failure: full jitter |
    ///
    /// - - Parameter isPartial: branches of the run failed, and the rest was published. The branches that the origin
    ///   refused wait for the next check.
    static func delay(
        after failures: Int, _ kind: RunFailure.Kind, isPartial: Bool = false, policy: RefreshPolicy,
        jitter: inout Jitter
    ) -> Duration {
        switch kind {
        case .refused where isPartial:
            spread(
                over: max(policy.every ?? .zero, longestAfterRejection), after: failures, policy: policy.retry, &jitter)
        case .refused:
            spread(
                over: afterRejection(
                    failures, policy: policy.retry,
                    planned: max(policy.every ?? longestAfterRejection, leastAfterRejection)),
                after: failures, policy: policy.retry, &jitter)
        case .connection, .transient, .certificateDate, .content, .local, .absent, .budget, .deadline:
            jitter.duration(upTo: ceiling(after: failures, policy: policy.retry))
        }
    }

    /// A wait that many clients got at the same moment, plus a random part, so that the clients do not return together.
    /// The part is at most a quarter of the wait, or the backoff's own wait if that is longer, and never more than
    /// `to`.
    static func spread(
        over wait: Duration, after failures: Int, policy: RetryPolicy, _ jitter: inout Jitter
    ) -> Duration {
        wait + jitter.duration(upTo: min(max(wait / 4, ceiling(after: failures, policy: policy)), policy.to))
    }

    /// The wait after an answer such as 404, or after a check that rejected the content: `from`, but at least a minute,
    /// doubled with each wait. Only `planned` limits it, so that a lasting rejection is soon checked no more often
    /// than good content.
    ///
    /// - Parameters:
    ///   - waits: the number of this wait, from 1 on.
    ///   - planned: the wait after a successful check, which is never exceeded.
    static func afterRejection(_ waits: Int, policy: RetryPolicy, planned: Duration) -> Duration {
        var wait = max(policy.from, leastAfterRejection)
        var doublings = waits - 1
        // Ends early: a doubled minute exceeds any `every` after a few steps.
        while doublings > 0, wait < planned {
            wait *= 2
            doublings -= 1
        }
        return min(wait, planned)
    }

    /// The upper bound of the wait after this number of consecutive failures.
    static func ceiling(after failures: Int, policy: RetryPolicy) -> Duration {
        var ceiling = min(policy.from, policy.to)
        var doublings = failures - 1
        // Ends early: a duration above zero exceeds `to` after a few steps, and zero stays zero.
        while doublings > 0, ceiling > .zero, policy.to > ceiling {
            ceiling = min(ceiling * 2, policy.to)
            doublings -= 1
        }
        return ceiling
    }
}
