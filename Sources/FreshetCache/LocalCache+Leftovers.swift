import Synchronization

/// What a process that was killed has left: candidates and what else it was writing.
struct Leftovers: Sendable {
    struct Item: Hashable, Sendable {
        var name: String
        var directory: String
        /// Among whose generations it is; nil: it is in another directory.
        var pipeline: String?
    }

    /// So many are removed at the start, which is more than commits in progress leave. More of them wait.
    static let atStart = 64
    var removedAtStart = 0
    var waiting: [Item] = []
}

/// Removing leftovers without anybody who waits for that: a start that finds many is as fast as one that finds none.
extension LocalCache {
    /// Removes some of what an earlier process has left. To be called on a worker, again and again, beside all else.
    ///
    /// - Returns: whether there is more.
    package func removeLeftovers(atMost count: Int = 256) -> Bool {
        let (some, isMore) = leftovers.withLock { leftovers in
            let some = Array(leftovers.waiting.suffix(count))
            leftovers.waiting.removeLast(some.count)
            return (some, !leftovers.waiting.isEmpty)
        }
        // What cannot be removed is found at the next start.
        for item in some { try? remove(item) }
        return isMore
    }

    /// Removes what the start has found, now or later.
    func remove(leftover name: String, in directory: String, of pipeline: String?) throws(CacheError) {
        let item = Leftovers.Item(name: name, directory: directory, pipeline: pipeline)
        let isNow = leftovers.withLock { leftovers in
            leftovers.removedAtStart += 1
            if leftovers.removedAtStart <= Leftovers.atStart { return true }
            leftovers.waiting.append(item)
            return false
        }
        if isNow { return try remove(item) }
        if let token = CacheLayout.token(of: name) { skip(token) }
    }

    private func remove(_ item: Leftovers.Item) throws(CacheError) {
        let path = item.directory + "/" + item.name
        guard let pipeline = item.pipeline, let digest = CacheLayout.refusedDigest(item.name) else {
            return try onFiles { (files) throws(SystemCallError) in
                if item.directory.hasPrefix(self.layout.sets + "/") { return try self.removeSet(path, files) }
                try files.unlink(path)
            }
        }
        // The same content may have been rejected, and kept, since.
        try entry(pipeline).state.withLock { _ throws(CacheError) in
            let kept = try withIndex { (index) throws(SQLiteError) in
                try index.pipeline(pipeline).flatMap { (row) throws(SQLiteError) in try index.refused(of: row.id) }
            }
            guard kept?.digest != digest else { return }
            try onFiles { (files) throws(SystemCallError) in try files.unlink(path) }
        }
    }
}
