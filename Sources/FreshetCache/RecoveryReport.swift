/// What the start found and mended, for the journal.
package struct RecoveryReport: Hashable, Sendable {
    package enum Index: Hashable, Sendable {
        /// There was none.
        case made
        case opened
        /// It had an older format.
        case migrated(from: Int64)
        /// It was damaged or another program's: it was moved aside and made anew from the files. Validators, times of
        /// checks and runs are lost, content is not.
        case rebuilt(movedTo: String, reason: String)
    }

    package var index: Index
    /// What of it was out of range, and was dropped or reset.
    package var indexRepairs: [IndexRepair]
    /// Names that a commit in progress had left in `current/`. Many of them are removed later: see
    /// ``LocalCache/removeLeftovers(atMost:)``.
    package var temporaries: Int
    /// The pipelines where something was mended, or could not be.
    package var pipelines: [PipelineRecovery]

    package init(
        index: Index, indexRepairs: [IndexRepair] = [], temporaries: Int = 0, pipelines: [PipelineRecovery] = []
    ) {
        self.index = index
        self.indexRepairs = indexRepairs
        self.temporaries = temporaries
        self.pipelines = pipelines
    }
}

/// What was mended of one pipeline.
package struct PipelineRecovery: Hashable, Sendable {
    package enum Repair: Hashable, Sendable, CustomStringConvertible {
        /// The index follows the generation that readers see.
        case followed(Int64)
        /// The reader's file is another than the one that was committed, but has the same content.
        case verified(Int64)
        /// The reader's file was gone or damaged and was made anew.
        case restored(Int64)
        /// No whole content is left: everything is fetched again.
        case lost
        /// The pinned generation is gone, or the withdrawn one, and nothing else takes its place.
        case withheld
        /// The copy is withdrawn, and what stood in its place was taken away.
        case hidden
        /// Older content that the index did not know is known again.
        case adopted(Int64)
        /// Older content is gone.
        case forgotten(Int64)
        /// Content that no reader saw was removed.
        case removedUnpublished(Int64)
        /// Candidates of an earlier process were removed.
        case removedCandidates(Int)
        /// The directory of several files, or the link to it, was gone or another one, and was made anew.
        case shown(Int64)
        /// It could not be mended now; each use tries again.
        case failed(CacheError)

        package var description: String {
            switch self {
            case .followed(let number): "the index follows generation \(number), which readers see"
            case .verified(let number): "the file changed outside, but still holds generation \(number)"
            case .restored(let number): "the file was gone or damaged and was put back from generation \(number)"
            case .lost: "the content is gone or damaged and will be fetched again"
            case .withheld:
                "the pinned or withdrawn content is gone or damaged; nothing takes its place until it is unpinned or fetched"
            case .hidden: "the copy is withdrawn, and what stood in its place was taken away"
            case .adopted(let number): "generation \(number) is known again"
            case .forgotten(let number): "the content of generation \(number) is gone"
            case .removedUnpublished(let number): "unfinished generation \(number) was removed"
            case .removedCandidates(let count): "\(count) unfinished candidates were removed"
            case .shown(let number): "readers of several files are led to those of generation \(number) again"
            case .failed(let error): "could not be compared with the index: \(error)"
            }
        }
    }

    package var pipeline: String
    package var repairs: [Repair]

    package init(pipeline: String, repairs: [Repair]) {
        self.pipeline = pipeline
        self.repairs = repairs
    }
}
