/// The summary of a pipeline, such as for one line of a list. It has few and simple members: prompts, status bars and
/// monitoring request it often, and lists have thousands of summaries.
package struct PipelineSummary: Codable, Hashable, Sendable {
    package var name: String
    package var state: PipelineState
    package var waitingFor: WaitingReason?
    package var freshness: Freshness?
    /// The number of the current generation; nil: there is no generation, or it is withdrawn.
    package var generation: Int64?
    /// The size of the generation in bytes.
    package var size: Int64?
    /// True if the source had more pages than its limit allows.
    package var truncated: Bool?
    /// True if the source has other content that does not replace this generation.
    package var behind: Bool?
    package var pinned: Bool?
    /// The number of the generation that readers do not see because it is past its maximum age.
    package var withdrawn: Int64?
    package var lastCheck: Int64?
    package var nextRun: Int64?
    /// The signals of the last run.
    package var causes: [String]
    /// True if the last attempt of a pending hook failed.
    package var hookFails: Bool?
    /// Why the pipeline fails, cut to ``failureCharacters``; nil: it does not fail.
    package var failure: String?

    /// Enough for a line of a list, and few enough for a list of thousands.
    static let failureCharacters = 200

    package init(
        name: String, state: PipelineState, waitingFor: WaitingReason? = nil, freshness: Freshness? = nil,
        generation: GenerationStatus? = nil, withdrawn: WithdrawnCopy? = nil, lastCheck: Int64? = nil,
        nextRun: Int64? = nil, causes: [String] = [], hookFails: Bool = false, failure: String? = nil
    ) {
        self.name = name
        self.state = state
        self.waitingFor = waitingFor
        self.freshness = freshness
        self.generation = generation?.number
        size = generation?.size
        truncated = generation?.truncated
        behind = generation?.behind
        pinned = generation?.pinnedSince.map { _ in true }
        self.withdrawn = withdrawn?.number
        self.lastCheck = lastCheck
        self.nextRun = nextRun
        self.causes = causes
        self.hookFails = hookFails ? true : nil
        self.failure = failure.map { String($0.prefix(Self.failureCharacters)) }
    }

    /// The summary of a status.
    package init(_ status: PipelineStatus) {
        self.init(
            name: status.name, state: status.state, waitingFor: status.waitingFor, freshness: status.freshness,
            generation: status.generation, withdrawn: status.withdrawn, lastCheck: status.lastCheck,
            nextRun: status.nextRun?.at, causes: status.lastCauses.map(\.signal),
            hookFails: status.hooks?.contains { $0.since != nil } ?? false, failure: status.failure?.message)
    }
}
