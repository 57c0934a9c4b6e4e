/// The outcome of a run.
package enum RunOutcome: String, Hashable, Sendable, CaseIterable {
    /// A new generation was committed.
    case changed
    /// The copy is still current.
    case unchanged
    case failed
    /// The run was ended, and another run replaces it.
    case superseded
    case cancelled
}

/// When a cause of a run was received first and last.
package struct CauseTimes: Hashable, Sendable {
    package var first: WallTime
    package var last: WallTime

    package init(first: WallTime, last: WallTime) {
        self.first = first
        self.last = last
    }
}

/// The record of one run in a pipeline's history.
package struct RunRecord: Hashable, Sendable {
    package var pipeline: String
    /// Numbered per pipeline from 1.
    package var number: UInt64
    /// The causes as text for people, such as `network (2), timer`.
    package var causes: String
    /// The times of the causes, in their order; empty: not known.
    package var causeTimes: [CauseTimes]
    package var started: WallTime
    package var ended: WallTime
    package var outcome: RunOutcome
    /// One sentence, for a run that failed.
    package var error: String?
    /// The generation that was current when the run ended.
    package var generation: UInt64?
    /// The mirror that was asked last, without user information and query; nil: there are no mirrors, or not known.
    package var mirror: String?

    package init(
        pipeline: String, number: UInt64, causes: String, causeTimes: [CauseTimes] = [], started: WallTime,
        ended: WallTime, outcome: RunOutcome, error: String? = nil, generation: UInt64? = nil,
        mirror: String? = nil
    ) {
        self.causeTimes = causeTimes
        self.pipeline = pipeline
        self.number = number
        self.causes = causes
        self.started = started
        self.ended = ended
        self.outcome = outcome
        self.error = error
        self.generation = generation
        self.mirror = mirror
    }
}
