import Synchronization

/// Finds the pipelines whose rows and files agree in the usual way: one published file, which is the one that was
/// committed, and the content of all rows and no other. Only the others have to be reconciled.
///
/// It reads files and no index, so that several threads can compare at the same time.
final class StartComparison: Sendable {
    private struct State {
        var next = 0
        /// The indexes of the rows that agree with their files.
        var agreeing: [Int] = []
    }

    private let layout: CacheLayout
    private let fileSystem: any FileSystem
    private let rows: [IndexedPipeline]
    private let generations: [Int64: [IndexedGeneration]]
    private let state = Mutex(State())

    /// The rows of one piece: enough that the lock does not matter, and few enough that the threads end together.
    private static let pieceCount = 64

    init(
        _ rows: [IndexedPipeline], _ generations: [Int64: [IndexedGeneration]], _ layout: CacheLayout,
        _ fileSystem: any FileSystem
    ) {
        self.rows = rows
        self.generations = generations
        self.layout = layout
        self.fileSystem = fileSystem
    }

    /// Compares the next few rows. Blocks.
    ///
    /// - Returns: false if no rows are left for this thread.
    func continueWork() -> Bool {
        let begin = state.withLock { state -> Int? in
            guard state.next < rows.count else { return nil }
            defer { state.next += Self.pieceCount }
            return state.next
        }
        guard let begin else { return false }
        let found = (begin..<min(begin + Self.pieceCount, rows.count)).filter { agrees(rows[$0]) }
        state.withLock { $0.agreeing += found }
        return true
    }

    /// The indexes of the rows that agree with their files, when all threads have got false from ``continueWork()``.
    var agreeing: [Int] { state.withLock(\.agreeing) }

    /// Whether ``Reconciliation`` would find nothing to do. If a file cannot be read, that is not known.
    private func agrees(_ row: IndexedPipeline) -> Bool {
        guard let file = row.file, !row.isSet, row.withdrawnAt == nil, let known = generations[row.id],
            let current = known.first(where: { $0.content.number == row.current })
        else { return false }
        guard let entries = try? fileSystem.list(layout.generations(of: row.name)), entries.count == known.count,
            known.count <= Self.mostGenerations
        else { return false }
        // The names in a directory differ, and so do the numbers of rows.
        for entry in entries {
            guard let content = StoredContent(name: entry.name), known.contains(where: { $0.content == content }) else {
                return false
            }
        }
        guard let reader = try? fileSystem.status(layout.reader(file)) else { return false }
        return reader.isRegularFile && reader.identity == current.identity
    }

    /// The most generations that are compared with each other.
    private static let mostGenerations = 16
}

/// Lets other threads take part in work of the start.
package struct StartHelpers: Sendable {
    /// Performs pieces of work until none is left: calls the closure until it returns false. Other threads may call it
    /// at the same time; when this returns, no thread does any more.
    let perform: @Sendable (_ work: @escaping @Sendable () -> Bool) -> Void

    package init(perform: @escaping @Sendable (_ work: @escaping @Sendable () -> Bool) -> Void) {
        self.perform = perform
    }

    /// The calling thread does all work.
    package static let none = StartHelpers { work in while work() {} }
}

/// The pipelines whose published file the start has compared with the index.
struct ComparedCopies: Sendable {
    /// The rows of these pipelines.
    let pipelines: Set<Int64>
    /// See ``SQLiteDatabase/totalChanges``: with another number, the rows may be others.
    let changes: Int64
    /// The ``SharedIndex/epoch`` in which the rows were read.
    let epoch: Int

    /// Whether the index was neither changed nor replaced since.
    func areOf(_ context: CacheContext) throws(CacheError) -> Bool {
        let now = try context.withIndex { (index) throws(SQLiteError) in index.database.totalChanges }
        // A new index may have had as many changes.
        return now == changes && context.index.epoch == epoch
    }
}
