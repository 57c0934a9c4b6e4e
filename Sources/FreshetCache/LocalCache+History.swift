extension LocalCache {
    /// The newest generations of a pipeline, newest first: those that are kept, and those that were, up to
    /// ``CacheLimits/historyPerPipeline``.
    package func history(_ pipeline: String, limit: Int = .max) throws(CacheError) -> [PastGeneration] {
        try withIndex { (index) throws(SQLiteError) in
            guard let row = try index.pipeline(pipeline) else { return [] }
            return try index.history(of: row.id, limit: max(0, limit))
        }
    }

    /// Opens the content of a generation that is kept, to be read to its end whatever is committed meanwhile. It is read
    /// once, for its digest.
    ///
    /// - Parameter reader: for whom.
    /// - Returns: nil if they may not have it: the modes of its file and of the copy that is offered, and those of the
    ///   directories above that, would not let them read the copy if this were it.
    /// - Throws: ``CacheError/notKept(_:kept:)``; ``CacheError/damaged(_:)`` if its digest is not that of its content.
    package func open(
        _ number: Int64, of pipeline: String, for reader: FileReader
    ) throws(CacheError) -> StoredGeneration? {
        try CacheName.check(pipeline)
        let (row, content) = try kept(number, of: pipeline)
        do throws(CacheError) {
            return try open(content, of: row, for: reader)
        } catch .damaged {
            // Or a commit has made it one too many since, and it is no damage.
            _ = try kept(number, of: pipeline)
            throw .damaged(number)
        }
    }

    /// What is kept under this number.
    private func kept(
        _ number: Int64, of pipeline: String
    ) throws(CacheError) -> (row: IndexedPipeline, content: StoredContent) {
        let (row, kept) = try withIndex {
            (index) throws(SQLiteError) -> (IndexedPipeline?, [IndexedGeneration]) in
            guard let row = try index.pipeline(pipeline) else { return (nil, []) }
            return (row, try index.generations(of: row.id))
        }
        guard let row, let generation = kept.first(where: { $0.content.number == number }) else {
            throw .notKept(number, kept: kept.map(\.content.number))
        }
        return (row, generation.content)
    }

    private func open(
        _ content: StoredContent, of row: IndexedPipeline, for reader: FileReader
    ) throws(CacheError) -> StoredGeneration? {
        do throws(CacheError) {
            return try open(
                layout.generation(content, of: row.name), content.digest, offeredAt: row.file, for: reader)
        } catch .unreadable {
            throw .damaged(content.number)
        }
    }

    /// Opens content of the cache for somebody, as they may read it, after its digest was found right.
    ///
    /// - Throws: ``CacheError/unreadable`` if it is not there any more as it was.
    func open(
        _ path: String, _ digest: ContentDigest, offeredAt file: String?, for reader: FileReader
    ) throws(CacheError) -> StoredGeneration? {
        let stored: StoredGeneration
        do throws(SystemCallError) {
            // A link or a directory in its place is nothing of ours.
            guard let status = try fileSystem.status(path), status.isRegularFile else {
                throw SystemCallError(call: "lstat", path: path, errno: SystemCallError.missing)
            }
            guard try mayRead(reader, status, offeredAt: file) else { return nil }
            stored = StoredGeneration(
                descriptor: try fileSystem.openFile(path), path: path, fileSystem: fileSystem)
        } catch {
            throw error.isMissing ? .unreadable : .fileSystem(error)
        }
        guard try fileSystem.digest(of: path) == digest else { throw .unreadable }
        return stored
    }

    private func mayRead(
        _ reader: FileReader, _ content: FileStatus, offeredAt file: String?
    ) throws(SystemCallError) -> Bool {
        guard reader.has(4, on: content) else { return false }
        // Without a copy nothing says who may read it now: nobody but those who may read all of the cache.
        let copy = file.map { withdrawnCopy(at: $0) ?? layout.reader($0) }
        guard let copy, let offered = try fileSystem.status(copy), offered.isRegularFile else {
            return reader.user == 0 || reader.user == content.owner
        }
        guard reader.has(4, on: offered) else { return false }
        // Without its links the path has all directories that lead there.
        var directory = try fileSystem.resolve(layout.current)
        while true {
            guard let status = try fileSystem.status(directory.isEmpty ? "/" : directory), reader.has(1, on: status)
            else { return false }
            guard let slash = directory.lastIndex(of: "/") else { return true }
            directory = String(directory[..<slash])
        }
    }

    /// The content of a copy that is withdrawn from this name: its modes say who might read it there.
    private func withdrawnCopy(at file: String) -> String? {
        // Without the index nothing can be said: nobody gets more than they may.
        let known = try? withIndex { (index) throws(SQLiteError) in
            try index.owner(of: file).flatMap { (owner) throws(SQLiteError) in try index.offer(of: owner) }
        }
        return known.flatMap { $0.isWithdrawn ? place(of: $0) : nil }
    }
}
