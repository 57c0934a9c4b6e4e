import FreshetModel
internal import FreshetSignals

/// The run in progress, and what all runs have left.
struct RunHistory: Sendable {
    /// Happens to end the run in progress; nil: there is none.
    private(set) var interruption: OneTimeEvent?
    /// The progress of the run in progress; nil: there is none.
    private(set) var progress: RunProgress?
    /// The permits of that run.
    private(set) var permits: RunPermits?
    private(set) var counters = RunCounters()
    /// Nil: no branch fails.
    @Boxed private var branchTable: BranchStatusTable?
    /// The sets of pages that may be continued after the last run.
    private(set) var pages: [PagesState]
    /// The pages of sets whose load was interrupted; nil before the first run of a pipeline with pages.
    private(set) var interruptedSets: InterruptedSets?
    /// What is known about the mirrors; nil before the first run of a pipeline with mirrors.
    private(set) var mirrors: MirrorRecords?
    /// The mirror that the last run asked last, for people.
    private(set) var lastMirror: String?

    /// - Parameter lastMirror: the mirror of the last run before a restart.
    init(pages: [PagesState], lastMirror: String?) { (self.pages, self.lastMirror) = (pages, lastMirror) }

    /// The failing branches; nil: there are none.
    var branches: BranchReport? { branchTable?.report }

    /// A run begins.
    mutating func began(
        _ progress: RunProgress, _ permits: RunPermits, _ interruption: OneTimeEvent,
        of definition: PipelineDefinition
    ) {
        if mirrors == nil, definition.mirrors != nil { mirrors = MirrorRecords() }
        if interruptedSets == nil, definition.stage.all.contains(where: { $0.pages != nil }) {
            interruptedSets = InterruptedSets()
        }
        self.progress = progress
        self.permits = permits
        self.interruption = interruption
    }

    /// What the run in progress has used so far; nil: there is none.
    var usage: RunUsage? {
        progress.map { RunUsage(requests: $0.requests, bytes: $0.loaded.bytes) }
    }

    /// The run has ended, as the machine reports.
    ///
    /// - Returns: the copy, if the run has committed it and readers find it.
    mutating func ended(_ summary: RunSummary, _ copy: CurrentGeneration?) -> CurrentGeneration? {
        counters.record(summary, progress)
        if summary.failure?.kind == .deadline { mirrors?.ranLate(at: summary.ended) }
        lastMirror = summary.mirror ?? lastMirror
        let committed = progress?.committed
        (progress, permits, interruption) = (nil, nil, nil)
        guard let committed, let copy, copy.number == committed, copy.withdrawnSince == nil
        else { return nil }
        return copy
    }

    /// A run has succeeded with these sets of pages.
    mutating func loaded(_ pages: [PagesState]) { self.pages = pages }

    /// Records the branches of a check.
    ///
    /// - Returns: why a part of the copy is not new; nil: all of it is.
    mutating func record(
        _ failures: [BranchFailure], of count: Int, at now: BootInstant
    ) -> RunFailure? {
        guard !failures.isEmpty else {
            branchTable = nil
            return nil
        }
        var table = branchTable ?? BranchStatusTable()
        table.record(failures, of: count, at: now)
        branchTable = table
        return table.flaw
    }
}
