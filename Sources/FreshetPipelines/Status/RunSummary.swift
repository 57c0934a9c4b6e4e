/// What a run came to.
package enum RunOutcome: String, Hashable, Sendable {
    /// A new generation was committed.
    case changed
    /// The copy at hand is the present one.
    case unchanged
    case failed
    /// It was ended because another one takes its place.
    case superseded
    case cancelled
}

/// Why a run starts when it does.
package enum RunReason: Hashable, Sendable {
    /// Signals asked for it.
    case signals
    /// The run before failed; this is the attempt after so many failures in a row.
    case retry(failures: Int)
    /// The network has just come back and could not carry the run before yet.
    case networkSettling
    /// The check is overdue, and is attempted although routing says that the target cannot be reached.
    case routingSaysNo
    /// The operator forced it.
    case forced
    /// Somebody wants one further page, at this place. It is no check: all else is as it was.
    case loadMore([String])

    /// It asks for one further page, and for nothing else.
    package var isLoadMore: Bool { if case .loadMore = self { true } else { false } }
}

/// What a run is made with.
package struct RunOrder: Hashable, Sendable {
    package var run: UInt64
    package var reason: RunReason
    /// Each signal's share, in the order of their first firing.
    package var causes: [RunCause]
    package var started: ContinuousClock.Instant
    /// The network epoch whose connections it may use.
    package var epoch: UInt64
    /// One consistent set.
    package var parameters = ParameterValues()
    /// How many requests it may make, at least one; nil: any number.
    package var allowance: Int?
    /// It sends no validators, so that each source delivers all that it has.
    package var isUnconditional = false

    /// What the operator's cause says of a run without conditions.
    package static let unconditional = "unconditional"
}

/// A run that ended.
package struct RunSummary: Hashable, Sendable {
    package var run: UInt64
    package var reason: RunReason
    package var causes: [RunCause]
    package var started: ContinuousClock.Instant
    package var ended: ContinuousClock.Instant
    package var outcome: RunOutcome
    /// Why it failed, or what ended it before its time; of one that succeeded, why not all of the copy is new.
    package var failure: RunFailure?
    /// Whether the failure counts: one to connect does not while the network is away or settles.
    package var counts: Bool
    /// The generation that it left as the current one.
    package var generation: UInt64?

    package var duration: Duration { started.duration(to: ended) }
}

extension RunSummary {
    /// A run from before a restart of the daemon, for people to look at: of its causes the signals are known and how often
    /// they fired, and of a failure the sentence.
    init?(remembered record: RunRecord, now: ContinuousClock.Instant, wallNow: Int64) {
        guard let outcome = RunOutcome(rawValue: record.outcome) else { return nil }
        // What lies in the future was before the clock was set back.
        let age = max(.zero, StoredRefreshState.span(from: record.started, to: wallNow))
        let started = now.advanced(by: .zero - age)
        self.init(
            run: record.run, reason: .signals, causes: [RunCause](summary: record.causes, at: started),
            started: started,
            ended: started.advanced(by: max(.zero, StoredRefreshState.span(from: record.started, to: record.ended))),
            outcome: outcome, failure: record.error.map { RunFailure(.local, $0) }, counts: false,
            generation: record.generation)
    }
}

/// What a run's body reports to the machine.
package enum RunResult: Hashable, Sendable {
    /// The source was asked and the copy is the present one, whether a new generation came of it or not.
    ///
    /// - `at`: when that was, if it is told later; what fired since is not answered by it.
    /// - `flaw`: why not all of the copy is new: branches failed, and show what they showed before. The run is tried
    ///   again like one that failed.
    /// - `expires`: when the data stops being fresh by its origin's word, if that is known and asked for.
    case succeeded(
        changed: Bool, generation: UInt64?, at: ContinuousClock.Instant? = nil, flaw: RunFailure? = nil,
        expires: ContinuousClock.Instant? = nil)
    case failed(RunFailure)
    case cancelled
}
