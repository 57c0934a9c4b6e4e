import FreshetModel

/// What a run's result means, together with the interruption that ended the run, if any.
///
/// | interruption | it succeeded | it failed | it was cancelled |
/// | --- | --- | --- | --- |
/// | none | `succeeded` | `failed` | `cancelled` |
/// | `deadline` | `succeeded` | `late` | `late` |
/// | `restart`, `networkLost`, `pathChanged` | `succeeded` | `superseded` | `superseded` |
/// | `configuration`, `parameters` | `superseded` | `superseded` | `superseded` |
/// | `stopped` | `stopped` | `stopped` | `stopped` |
///
/// A run that was ended early succeeds if it had committed before.
enum RunEnd: Hashable, Sendable {
    case succeeded(RunSuccess)
    case failed(RunFailure)
    /// The run exceeded its deadline.
    case late
    /// Another run replaces it.
    case superseded(by: Interruption)
    /// The whole service is being cancelled.
    case cancelled
    /// The pipeline is stopped.
    case stopped

    init(_ result: RunResult, _ interruption: Interruption?) {
        switch (result, interruption) {
        case (_, .stopped?): self = .stopped
        // Even a success belongs to the old configuration or the old values.
        case (_, .configuration?), (_, .parameters?): self = .superseded(by: .configuration)
        case (.succeeded(let changed, let generation, let at, let flaw, let expires), _):
            self = .succeeded(
                RunSuccess(changed: changed, generation: generation, at: at, flaw: flaw, expires: expires))
        case (_, .deadline?): self = .late
        case (_, let interruption?): self = .superseded(by: interruption)
        case (.failed(let failure), nil): self = .failed(failure)
        case (.cancelled, nil): self = .cancelled
        }
    }
}

/// The values of ``RunResult/succeeded(changed:generation:at:flaw:expires:)``.
struct RunSuccess: Hashable, Sendable {
    var changed: Bool
    var generation: UInt64?
    var at: BootInstant?
    var flaw: RunFailure?
    var expires: BootInstant?

    var outcome: RunOutcome { changed ? .changed : .unchanged }
}

/// How a run that has ended is reported, and what becomes of the requests that wait for its end.
struct RunConclusion: Hashable, Sendable {
    enum Requests: Hashable, Sendable {
        /// They are answered with the result.
        case answered
        case stopped
        case refused(RefreshRefusal)
        /// They wait for another run.
        case kept
    }

    var outcome: RunOutcome
    /// The current generation after the run, if it succeeded.
    var generation: UInt64?
    /// Why the run failed, also in part.
    var failure: RunFailure?
    /// Whether the failure counts.
    var counts: Bool
    var requests: Requests

    init(
        _ outcome: RunOutcome, generation: UInt64? = nil, failure: RunFailure? = nil, counts: Bool = true,
        _ requests: Requests
    ) {
        self.outcome = outcome
        self.generation = generation
        self.failure = failure
        self.counts = counts
        self.requests = requests
    }
}
