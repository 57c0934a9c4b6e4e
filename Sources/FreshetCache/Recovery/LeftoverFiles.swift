import Synchronization

/// Files that a killed process has left: candidates and other unfinished files.
struct Leftovers: Sendable {
    struct Item: Hashable, Sendable {
        var name: String
        var directory: String
        /// The pipeline among whose generations the file is; nil if it is in another directory.
        var pipeline: String?
    }

    /// The number of files that the start removes immediately, which is more than commits in progress leave. Further
    /// files wait.
    static let atStart = 64
    var removedAtStart = 0
    var waiting: [Item] = []
}

/// Removes leftovers in the background: a start that finds many leftovers is as fast as a start that finds none.
extension LocalCache {
    /// Removes some of the leftovers. Call it on a worker repeatedly; other operations can run at the same time.
    ///
    /// - Returns: whether there are more leftovers.
    package func removeLeftovers(atMost count: Int = 256) -> Bool {
        let (some, isMore) = leftovers.withLock { leftovers in
            let some = Array(leftovers.waiting.suffix(count))
            leftovers.waiting.removeLast(some.count)
            return (some, !leftovers.waiting.isEmpty)
        }
        // If a file cannot be removed, the next start finds it.
        for item in some { try? remove(item) }
        return isMore
    }

    /// Removes a leftover that the start has found, now or later.
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
        guard let pipeline = item.pipeline, let digest = CacheLayout.rejectedDigest(item.name) else {
            return try onFiles { (files) throws(SystemCallError) in
                if item.directory.hasPrefix(self.layout.sets + "/") { return try self.removeSet(path, files) }
                try files.unlink(path)
            }
        }
        // The same content may have been rejected and kept since.
        try entry(pipeline).state.withLock { _ throws(CacheError) in
            let kept = try withIndex { (index) throws(SQLiteError) in
                try index.pipeline(pipeline).flatMap { (row) throws(SQLiteError) in try index.rejected(of: row.id) }
            }
            guard kept?.digest != digest else { return }
            try onFiles { (files) throws(SystemCallError) in try files.unlink(path) }
        }
    }
}
