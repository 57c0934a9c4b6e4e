/// What the engine tells of a pipeline, for the journal and for those who follow it.
package enum EngineEvent: Hashable, Sendable {
    /// A signal was heard: its occurrences since the last time as one cause.
    case heard(RunCause)
    /// Signals of the surroundings fetch nothing, because the last successful check is younger than `fresh-for`.
    case suppressed([RunCause], freshUntil: ContinuousClock.Instant)
    case waitingBegan(Wait)
    case waitingEnded(Wait.Reason)
    case runStarted(RunOrder)
    /// - Parameter next: when the next run is planned, if nothing is heard before.
    case runEnded(RunSummary, next: PlannedRun?)
    /// The content of the run under way has its publisher's signature, with these words in it.
    case signed(comment: String)
    /// A failed run is tried again.
    case retryPlanned(at: ContinuousClock.Instant, failures: Int, after: RunFailure)
    case stateChanged(PipelineActivity)
    /// What was set of these parameters does not hold with the configuration; they have their defaults.
    case parametersDropped([String])
    /// The copy that is offered is older than its `max-age`.
    ///
    /// - Parameter checked: the last check that confirmed it.
    case expired(checked: ContinuousClock.Instant)
    /// A copy that was too old is not any more: it was checked, or may be older now.
    case expiredNoMore
    /// The copy has passed the time at which its content expires by what the content itself states.
    case contentExpired
    /// The copy is no longer past that time: it is another one, or states a later time.
    case contentExpiredNoMore
    /// Readers do not find the copy any more, since it is older than its `max-age`.
    ///
    /// - Parameter checked: the last check that confirmed it; nil: not known.
    case withdrawn(checked: ContinuousClock.Instant?)
    /// Readers do not find the copy any more, since it is older than its `max-age`; and since it was not whole, it is not
    /// kept either.
    ///
    /// - Parameter checked: the last check that confirmed it; nil: not known.
    case withdrawnDamaged(CurrentGeneration, checked: ContinuousClock.Instant?)
    /// Readers find a copy again.
    ///
    /// - Parameters:
    ///   - isSame: it is the generation that was withdrawn.
    ///   - causes: those of the run that has checked it; nil: it may be older now, or somebody chose it.
    case returned(isSame: Bool, causes: [RunCause]?)
}

/// What came of a request to refresh.
package enum RefreshAnswer: Hashable, Sendable {
    /// The first run that started after the request ended, or the one that superseded it.
    case ended(RunSummary)
    case refused(RefreshRefusal)
    /// The pipeline was stopped before such a run ended.
    case stopped
}

/// Why a request to refresh is not followed.
package enum RefreshRefusal: Error, Hashable, Sendable, CustomStringConvertible {
    /// The origin asked to be left alone; only force passes that.
    case retryAfter(until: ContinuousClock.Instant)
    /// Its budget of requests is spent; only force passes that.
    case budget(until: ContinuousClock.Instant)
    case held
    /// There is no way to the origin; a sentence says what there is instead. Nothing waits for it: a further page is
    /// wanted now or not at all.
    case network(String?)
    /// Further pages of so many sets are wanted already.
    case crowded(limit: Int)

    package var description: String {
        switch self {
        case .network(let reason): "the network is not there" + (reason.map { ": \($0)" } ?? "")
        case .crowded(let limit): "further pages at \(limit) places are wanted already"
        case .retryAfter: "the origin asked to be left alone for a while (Retry-After)"
        case .budget: "its budget of requests is spent"
        case .held: "it is held until somebody releases it"
        }
    }
}
