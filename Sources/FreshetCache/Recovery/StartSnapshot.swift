import FreshetModel

/// The state of all pipelines at the start, so that it is not read for each pipeline.
struct StartSnapshot: Sendable {
    /// The entries of `current/`.
    let readers: [DirectoryEntry]
    private let readerNames: Set<String>
    /// The names below `generations/`, without those of pipelines that need not be reconciled.
    let directories: Set<String>
    private let rows: [String: IndexedPipeline]
    private let generations: [Int64: [IndexedGeneration]]
    /// The digests of rejected content.
    private let rejected: [Int64: ContentDigest]

    init(
        readers: [DirectoryEntry], directories: Set<String>, rows: [IndexedPipeline],
        generations: [Int64: [IndexedGeneration]], rejected: [(pipeline: Int64, rejection: IndexedRejection)]
    ) {
        self.rejected = Dictionary(rejected.map { ($0.pipeline, $0.rejection.digest) }) { first, _ in first }
        self.readers = readers
        readerNames = Set(readers.map(\.name))
        self.directories = directories
        self.rows = Dictionary(rows.map { ($0.name, $0) }) { first, _ in first }
        self.generations = generations
    }

    func row(_ pipeline: String) -> IndexedPipeline? { rows[pipeline] }
    func generations(of pipeline: Int64) -> [IndexedGeneration] { generations[pipeline] ?? [] }
    func hasReader(_ file: String) -> Bool { readerNames.contains(file) }

    /// Whether this is rejected content that the index does not keep.
    func isLeftOver(_ entry: DirectoryEntry, of pipeline: String) -> Bool {
        guard let digest = CacheLayout.rejectedDigest(entry.name) else { return false }
        return rows[pipeline].flatMap { rejected[$0.id] } != digest
    }

    /// Whether neither the index nor the disk has content of the pipeline: then there is nothing to reconcile.
    func hasNoContent(_ pipeline: String) -> Bool {
        guard !directories.contains(pipeline) else { return false }
        guard let row = rows[pipeline] else { return true }
        return row.current == nil && generations[row.id] == nil
    }
}
