import FreshetModel

/// The findings and repairs of a start, for the journal.
package struct RecoveryReport: Hashable, Sendable {
    package enum Index: Hashable, Sendable {
        /// There was no index.
        case made
        case opened
        /// The index had an older format.
        case migrated(from: Int64)
        /// The index was damaged, or was the database of another program: it was moved aside and made again from the
        /// files. Validators, times of checks and runs are lost, content is not.
        case rebuilt(movedTo: String, reason: String)
    }

    package var index: Index
    /// Values of the index that were out of range and were dropped or reset.
    package var indexRepairs: [IndexRepair]
    /// The number of temporary names that interrupted commits had left in `current/`. If there are many, some are
    /// removed later: see ``LeftoverFiles/remove(atMost:)``.
    package var temporaries: Int
    /// The pipelines that were repaired, or could not be repaired.
    package var pipelines: [PipelineRecovery]
    /// Foreign objects in the place of Freshet's files in the state directory, which were moved aside; without the
    /// index itself.
    package var strays: [StateStray] = []

    package init(
        index: Index, indexRepairs: [IndexRepair] = [], temporaries: Int = 0, pipelines: [PipelineRecovery] = []
    ) {
        self.index = index
        self.indexRepairs = indexRepairs
        self.temporaries = temporaries
        self.pipelines = pipelines
    }
}

/// The repairs of one pipeline.
package struct PipelineRecovery: Hashable, Sendable {
    package enum Repair: Hashable, Sendable, CustomStringConvertible {
        /// The index follows the generation that readers see.
        case followed(Int64)
        /// The published file is not the one that was committed, but has the same content.
        case verified(Int64)
        /// The published file was missing or damaged, and was restored.
        case restored(Int64)
        /// There is no undamaged content: everything is fetched again.
        case lost
        /// The pinned or withdrawn generation is missing, and no other content takes its place.
        case withheld
        /// The copy is withdrawn, and a file in its place was removed.
        case hidden
        /// Older content that was missing in the index was added again.
        case adopted(Int64)
        /// Older content is missing.
        case forgotten(Int64)
        /// Content that no reader saw was removed.
        case removedUnpublished(Int64)
        /// Candidates of an earlier process were removed.
        case removedCandidates(Int)
        /// The directory of several files, or the link to it, was missing or wrong, and was made again.
        case shown(Int64)
        /// The pipeline could not be repaired now; each access retries it.
        case failed(CacheError)

        package var description: String {
            switch self {
            case .followed(let number): "the index follows generation \(number), which readers see"
            case .verified(let number): "the file was changed, but it still has the content of generation \(number)"
            case .restored(let number): "the file was missing or damaged and was restored from generation \(number)"
            case .lost: "the content is missing or damaged and will be fetched again"
            case .withheld:
                "the pinned or withdrawn content is missing or damaged; it is replaced once it is unpinned or fetched"
            case .hidden: "the copy is withdrawn; a file in its place was removed"
            case .adopted(let number): "generation \(number) was added to the index again"
            case .forgotten(let number): "the content of generation \(number) is missing"
            case .removedUnpublished(let number): "unfinished generation \(number) was removed"
            case .removedCandidates(let count): "\(count) unfinished candidates were removed"
            case .shown(let number): "the directory of generation \(number), or the link to it, was repaired"
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

    /// Whether the index follows a generation that readers saw before.
    var hasFollowed: Bool {
        repairs.contains { if case .followed = $0 { true } else { false } }
    }
}
