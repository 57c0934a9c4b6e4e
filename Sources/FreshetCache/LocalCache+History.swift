extension LocalCache {
    /// The newest generations of a pipeline, newest first: those whose content is kept, and earlier ones up to
    /// ``CacheLimits/historyPerPipeline``.
    package func history(_ pipeline: String, limit: Int = .max) throws(CacheError) -> [PastGeneration] {
        try withIndex { (index) throws(SQLiteError) in
            guard let row = try index.pipeline(pipeline) else { return [] }
            return try index.history(of: row.id, limit: max(0, limit))
        }
    }

    /// Opens the content of a kept generation. The content can be read to its end even if commits remove the generation
    /// meanwhile. It is read once to verify its digest.
    ///
    /// - Parameter reader: the user who reads the content.
    /// - Returns: nil if the user may not read it: the modes of its file and of the published file, and those of the
    ///   directories above that, would not allow the user to read the copy if this were the copy.
    /// - Throws: ``CacheError/notKept(_:kept:)``; ``CacheError/damaged(_:)`` if its digest is wrong.
    package func open(
        _ number: Int64, of pipeline: String, for reader: FileReader
    ) throws(CacheError) -> StoredGeneration? {
        try CacheName.check(pipeline)
        let (row, content) = try kept(number, of: pipeline)
        do throws(CacheError) {
            return try open(content, of: row, for: reader)
        } catch .damaged {
            // A commit may have removed it since; that is not damage.
            _ = try kept(number, of: pipeline)
            throw .damaged(number)
        }
    }

    /// The kept generation with this number.
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
                layout.generation(content, of: row.name), content.digest, publishedAt: row.file, for: reader)
        } catch .unreadable {
            throw .damaged(content.number)
        }
    }

    /// Opens content of the cache for a user who may read it, after verifying its digest.
    ///
    /// - Throws: ``CacheError/unreadable`` if the content is missing or changed.
    func open(
        _ path: String, _ digest: ContentDigest, publishedAt file: String?, for reader: FileReader
    ) throws(CacheError) -> StoredGeneration? {
        let stored: StoredGeneration
        do throws(SystemCallError) {
            // A link or a directory in its place does not belong to the cache.
            guard let status = try fileSystem.status(path), status.isRegularFile else {
                throw SystemCallError(call: "lstat", path: path, errno: SystemCallError.missing)
            }
            guard try mayRead(reader, status, publishedAt: file) else { return nil }
            stored = StoredGeneration(
                descriptor: try fileSystem.openFile(path), path: path, fileSystem: fileSystem)
        } catch {
            throw error.isMissing ? .unreadable : .fileSystem(error)
        }
        guard try fileSystem.digest(of: path) == digest else { throw .unreadable }
        return stored
    }

    private func mayRead(
        _ reader: FileReader, _ content: FileStatus, publishedAt file: String?
    ) throws(SystemCallError) -> Bool {
        guard reader.has(4, on: content) else { return false }
        // Without a copy it is not known who may read it now: only users who may read the whole cache.
        let copy = file.map { withdrawnCopy(at: $0) ?? layout.reader($0) }
        guard let copy, let published = try fileSystem.status(copy), published.isRegularFile else {
            return reader.user == 0 || reader.user == content.owner
        }
        guard reader.has(4, on: published) else { return false }
        // The path without symbolic links has all directories that lead there.
        var directory = try fileSystem.resolve(layout.current)
        while true {
            guard let status = try fileSystem.status(directory.isEmpty ? "/" : directory), reader.has(1, on: status)
            else { return false }
            guard let slash = directory.lastIndex(of: "/") else { return true }
            directory = String(directory[..<slash])
        }
    }

    /// The path of the content of a copy that was withdrawn from this name: its mode shows who could read the copy.
    private func withdrawnCopy(at file: String) -> String? {
        // Without the index this is not known, so no user gets additional access.
        let known = try? withIndex { (index) throws(SQLiteError) in
            try index.owner(of: file).flatMap { (owner) throws(SQLiteError) in try index.publication(of: owner) }
        }
        return known.flatMap { $0.isWithdrawn ? place(of: $0) : nil }
    }
}
