import Synchronization

/// Removes files that a killed process has left: candidates and other unfinished files.
///
/// A start that finds many of them removes the rest in the background, so that it is as fast as a start that finds
/// none. Safe to call from any thread; other operations can run at the same time.
package final class LeftoverFiles: Sendable {
    /// The number of files that the start removes immediately, which is more than commits in progress leave. Further
    /// files wait.
    static let atStart = 64

    private let context: CacheContext
    private let state = Mutex(Leftovers())

    init(_ context: CacheContext) { self.context = context }

    /// Removes some of the leftovers. Call it on a worker repeatedly; other operations can run at the same time.
    ///
    /// - Returns: whether there are more leftovers.
    package func remove(atMost count: Int = 256) -> Bool {
        let (some, isMore) = state.withLock { leftovers in
            let some = Array(leftovers.waiting.suffix(count))
            leftovers.waiting.removeLast(some.count)
            return (some, !leftovers.waiting.isEmpty)
        }
        // If a file cannot be removed, the next start finds it.
        for item in some { try? removeNow(item) }
        return isMore
    }

    /// Removes a leftover that the start has found, now or later.
    func remove(leftover name: String, in directory: String, of pipeline: String?) throws(CacheError) {
        let item = Leftovers.Item(name: name, directory: directory, pipeline: pipeline)
        let isNow = state.withLock { leftovers in
            leftovers.removedAtStart += 1
            if leftovers.removedAtStart <= Self.atStart { return true }
            leftovers.waiting.append(item)
            return false
        }
        if isNow { return try removeNow(item) }
        if let token = CacheLayout.token(of: name) { context.names.skip(token) }
    }

    private func removeNow(_ item: Leftovers.Item) throws(CacheError) {
        let path = item.directory + "/" + item.name
        guard let pipeline = item.pipeline, let digest = CacheLayout.rejectedDigest(item.name) else {
            return try context.onFiles { (files) throws(SystemCallError) in
                if item.directory.hasPrefix(context.layout.sets + "/") { return try context.removeSet(path, files) }
                try files.unlink(path)
            }
        }
        // The same content may have been rejected and kept since.
        try context.entry(pipeline).holding { _ throws(CacheError) in
            let kept = try context.withIndex { (index) throws(SQLiteError) in
                try index.pipelines.row(pipeline).flatMap { (row) throws(SQLiteError) in
                    try index.rejected.row(of: row.id)
                }
            }
            guard kept?.digest != digest else { return }
            try context.onFiles { (files) throws(SystemCallError) in try files.unlink(path) }
        }
    }
}

/// The files that still have to be removed.
private struct Leftovers: Sendable {
    struct Item: Hashable, Sendable {
        var name: String
        var directory: String
        /// The pipeline among whose generations the file is; nil if it is in another directory.
        var pipeline: String?
    }

    var removedAtStart = 0
    var waiting: [Item] = []
}
