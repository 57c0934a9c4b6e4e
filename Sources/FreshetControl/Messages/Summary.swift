/// A pipeline in short, as a line of a list has it. A type of few members, all of them plain: it is what prompts, status
/// bars and monitoring ask for, and lists of thousands.
package struct PipelineSummary: Codable, Hashable, Sendable {
    package var name: String
    package var state: PipelineState
    package var waitingFor: WaitingReason?
    package var freshness: Freshness?
    /// The number of the copy that readers find; nil: there is none, or it is withdrawn.
    package var generation: Int64?
    /// Its bytes.
    package var size: Int64?
    /// True if the source had more pages than its limit allows.
    package var truncated: Bool?
    /// True if the source is known to have other content, which does not replace this.
    package var behind: Bool?
    package var pinned: Bool?
    /// The number of a copy that readers would find if it were not too old.
    package var withdrawn: Int64?
    package var lastCheck: Int64?
    package var nextRun: Int64?
    /// The signals of the last run.
    package var causes: [String]
    /// True if a hook is owed whose last attempt failed.
    package var hookFails: Bool?

    package init(
        name: String, state: PipelineState, waitingFor: WaitingReason? = nil, freshness: Freshness? = nil,
        generation: GenerationStatus? = nil, withdrawn: WithdrawnCopy? = nil, lastCheck: Int64? = nil,
        nextRun: Int64? = nil, causes: [String] = [], hookFails: Bool = false
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
    }

    /// The same of a whole status.
    package init(_ status: PipelineStatus) {
        self.init(
            name: status.name, state: status.state, waitingFor: status.waitingFor, freshness: status.freshness,
            generation: status.generation, withdrawn: status.withdrawn, lastCheck: status.lastCheck,
            nextRun: status.nextRun?.at, causes: status.lastCauses.map(\.signal),
            hookFails: status.hooks?.contains { $0.since != nil } ?? false)
    }
}
