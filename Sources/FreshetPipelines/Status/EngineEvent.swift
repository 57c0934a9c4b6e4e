package import FreshetModel

/// An event of a pipeline, with the copy at that moment.
package struct PipelineReport: Sendable {
    package var event: EngineEvent
    /// The current generation, published or withdrawn; nil: there is no copy.
    @Boxed package var copy: CurrentGeneration?
    /// For the end of a run: the generation that the run has committed and that is still published; nil: there is no
    /// such generation. A run that failed or was superseded may have committed before.
    @Boxed package var committed: CurrentGeneration?
    /// For the end of a run: what it used.
    package var usage: RunUsage?

    package init(
        _ event: EngineEvent, copy: CurrentGeneration? = nil, committed: CurrentGeneration? = nil,
        usage: RunUsage? = nil
    ) {
        self.event = event
        self.copy = copy
        self.committed = committed
        self.usage = usage
    }

    /// A report that shares the copy with its runner: each run makes several reports.
    init(_ event: EngineEvent, sharing copy: Boxed<CurrentGeneration>) {
        self.event = event
        _copy = copy
    }
}

/// What a run used.
package struct RunUsage: Hashable, Sendable {
    /// The number of requests that it made.
    package var requests: Int
    /// The number of body bytes that it received.
    package var bytes: UInt64

    package init(requests: Int, bytes: UInt64) {
        self.requests = requests
        self.bytes = bytes
    }
}

/// An event of a pipeline, for the journal and for subscribers.
package enum EngineEvent: Hashable, Sendable {
    /// A signal was received: one cause for all occurrences since the last event.
    case received(RunCause)
    /// Environment signals were skipped, since the last successful check is more recent than `fresh-for`.
    case skipped([RunCause], freshUntil: BootInstant)
    /// Signals were ignored, since they fired during this run and `when-running` is `ignore`.
    case ignored([RunCause], run: UInt64)
    /// A request of the operator gets the result of this run, since `when-running` is `ignore`.
    case joined(RunCause, run: UInt64)
    case waitingBegan(Wait)
    case waitingEnded(Wait.Reason)
    case runStarted(RunOrder)
    /// - Parameter next: the next planned run, if no signal comes before.
    case runEnded(RunSummary, next: PlannedRun?)
    /// The content of the run in progress has a verified signature with this trusted comment.
    case signed(comment: String)
    /// A failed run will be retried.
    case retryPlanned(at: BootInstant, failures: Int, after: RunFailure)
    case stateChanged(PipelineActivity)
    /// The set values of these parameters are not valid with the configuration; they have their defaults.
    case parametersDropped([String])
    /// The published copy is older than its `max-age`.
    ///
    /// - Parameter checked: the last check that confirmed it.
    case expired(checked: BootInstant)
    /// The copy is not expired any more: it was checked, or `max-age` was changed.
    case expiredNoMore
    /// The content of the copy has expired by its own statement.
    case contentExpired
    /// The content is not expired any more: there is another copy, or it states a later time.
    case contentExpiredNoMore
    /// The copy was withdrawn from readers, since it is older than its `max-age`.
    ///
    /// - Parameter checked: the last check that confirmed it; nil: not known.
    case withdrawn(checked: BootInstant?)
    /// The copy was withdrawn from readers, since it is older than its `max-age`; and since it was damaged, it is not
    /// kept.
    ///
    /// - Parameter checked: the last check that confirmed it; nil: not known.
    case withdrawnDamaged(CurrentGeneration, checked: BootInstant?)
    /// A copy is published again after a withdrawal.
    ///
    /// - Parameters:
    ///   - isSame: whether it is the generation that was withdrawn.
    ///   - causes: the causes of the run that checked it; nil: `max-age` was changed, or the operator chose the copy.
    case returned(isSame: Bool, causes: [RunCause]?)
}

/// The answer to a request for a run.
package enum RefreshAnswer: Hashable, Sendable {
    /// The first run that started after the request ended, or the one that superseded it.
    case ended(RunSummary)
    case refused(RefreshRefusal)
    /// The pipeline was stopped before such a run ended.
    case stopped
}

/// Why a request for a run is refused.
package enum RefreshRefusal: Error, Hashable, Sendable, CustomStringConvertible {
    /// The origin sent `Retry-After`; only a forced run ignores it.
    case retryAfter(until: BootInstant)
    /// The request budget is spent; only a forced run ignores it.
    case budget(until: BootInstant)
    case held
    /// The origin is not reachable; a sentence gives the reason. A request for a further page does not wait for the
    /// network.
    case network(String?)
    /// Further pages of this number of sets are requested already.
    case tooManyRequests(limit: Int)

    package var description: String {
        switch self {
        case .network(let reason): "the network is not reachable" + (reason.map { ": \($0)" } ?? "")
        case .tooManyRequests(let limit): "further pages are already requested at \(limit) places"
        case .retryAfter: "the origin asked for a pause (Retry-After)"
        case .budget: "its request budget is spent"
        case .held: "it is held until it is released"
        }
    }
}
