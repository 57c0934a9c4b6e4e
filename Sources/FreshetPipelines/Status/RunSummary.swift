package import FreshetModel

/// Why a run starts.
package enum RunReason: Hashable, Sendable {
    /// Signals requested it.
    case signals
    /// The previous run failed; the number of consecutive failures before this attempt.
    case retry(failures: Int)
    /// The network has just come back, and the previous run could not connect yet.
    case networkSettling
    /// The check is overdue, and is attempted although there is no route to the target.
    case noRoute
    /// The operator forced it.
    case forced
    /// One further page was requested, at this place. The run is not a check: all other parts stay.
    case loadMore([String])

    /// Whether the run only loads one further page.
    package var isLoadMore: Bool { if case .loadMore = self { true } else { false } }
}

/// The inputs of a run.
package struct RunOrder: Hashable, Sendable {
    package var run: UInt64
    package var reason: RunReason
    /// The causes, in the order in which they first fired.
    package var causes: [RunCause]
    package var started: BootInstant
    /// The network epoch whose connections it may use.
    package var epoch: UInt64
    /// One consistent set of values.
    package var parameters = ParameterValues()
    /// The most requests that the run may make, at least one; nil: any number.
    package var allowance: Int?
    /// Whether the run sends no validators, so that each source sends its whole content.
    package var isUnconditional = false

    /// The detail of the operator's cause for an unconditional run.
    package static let unconditional = "unconditional"
}

/// A run that ended.
package struct RunSummary: Hashable, Sendable {
    package var run: UInt64
    package var reason: RunReason
    package var causes: [RunCause]
    package var started: BootInstant
    package var ended: BootInstant
    package var outcome: RunOutcome
    /// Why the run failed or was ended early; for a run that succeeded, why a part of the copy is not new.
    @Boxed package var failure: RunFailure?
    /// Whether the failure counts: a failure to connect does not while the network is lost or settles.
    package var counts: Bool
    /// The current generation after the run.
    package var generation: UInt64?
    /// The number of signals that were ignored during the run.
    package var ignored = 0
    /// The mirror that was asked last, without its query; nil: there are no mirrors.
    package var mirror: String?

    package var duration: Duration { started.duration(to: ended) }
}

extension RunSummary {
    /// Restores a run from before a restart of the daemon, for people. The record has the signals of its causes with
    /// their counts and times, and the message of a failure.
    init(remembered record: RunRecord, now: BootInstant, wallNow: WallTime) {
        // A start in the future was before the clock was set back.
        let age = max(.zero, record.started.duration(to: wallNow))
        let started = now.advanced(by: .zero - age)
        var causes = [RunCause](summary: record.causes, at: started)
        // The text of the causes may have been cut.
        if causes.count == record.causeTimes.count {
            for (index, times) in record.causeTimes.enumerated() {
                causes[index].first = started.advanced(by: record.started.duration(to: times.first))
                causes[index].last = started.advanced(by: record.started.duration(to: times.last))
            }
        }
        self.init(
            run: record.number, reason: .signals, causes: causes,
            started: started,
            ended: started.advanced(by: max(.zero, record.started.duration(to: record.ended))),
            outcome: record.outcome, failure: record.error.map { RunFailure(.local, $0) }, counts: false,
            generation: record.generation, mirror: record.mirror)
    }
}

/// The result of a run for the machine.
package enum RunResult: Hashable, Sendable {
    /// The check succeeded and the copy is current, with or without a new generation.
    ///
    /// - `at`: when that was, if the event comes later; signals that fired since then are not answered.
    /// - - `flaw`: why a part of the copy is not new: branches failed and show their earlier values. The run is retried
    ///   like a failed one.
    /// - `expires`: when the data stops being fresh, as its origin states, if known and configured.
    case succeeded(
        changed: Bool, generation: UInt64?, at: BootInstant? = nil, flaw: RunFailure? = nil,
        expires: BootInstant? = nil)
    case failed(RunFailure)
    case cancelled
}
