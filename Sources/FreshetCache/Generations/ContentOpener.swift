import FreshetModel

/// Opens content of the cache for users who may read it.
struct ContentOpener: Sendable {
    let context: CacheContext
    let published: PublishedFiles

    /// Opens content of the cache for a user who may read it, after verifying its digest.
    ///
    /// - Throws: ``CacheError/unreadable`` if the content is missing or changed.
    func open(
        _ path: String, _ digest: ContentDigest, publishedAt file: String?, for reader: FileReader
    ) throws(CacheError) -> StoredGeneration? {
        let stored: StoredGeneration
        do throws(SystemCallError) {
            // A link or a directory in its place does not belong to the cache.
            guard let status = try context.fileSystem.status(path), status.isRegularFile else {
                throw SystemCallError(call: "lstat", path: path, errno: SystemCallError.missing)
            }
            guard try mayRead(reader, status, publishedAt: file) else { return nil }
            stored = StoredGeneration(
                descriptor: try context.fileSystem.openFile(path), path: path, fileSystem: context.fileSystem)
        } catch {
            throw error.isMissing ? .unreadable : .fileSystem(error)
        }
        guard try context.fileSystem.digest(of: path) == digest else { throw .unreadable }
        return stored
    }

    private func mayRead(
        _ reader: FileReader, _ content: FileStatus, publishedAt file: String?
    ) throws(SystemCallError) -> Bool {
        guard reader.has(4, on: content) else { return false }
        // Without a copy it is not known who may read it now: only users who may read the whole cache.
        let copy = file.map { withdrawnCopy(at: $0) ?? context.layout.reader($0) }
        guard let copy, let published = try context.fileSystem.status(copy), published.isRegularFile else {
            return reader.user == 0 || reader.user == content.owner
        }
        guard reader.has(4, on: published) else { return false }
        // The path without symbolic links has all directories that lead there.
        var directory = try context.fileSystem.resolve(context.layout.current)
        while true {
            guard let status = try context.fileSystem.status(directory.isEmpty ? "/" : directory),
                reader.has(1, on: status)
            else { return false }
            guard let slash = directory.lastIndex(of: "/") else { return true }
            directory = String(directory[..<slash])
        }
    }

    /// The path of the content of a copy that was withdrawn from this name: its mode shows who could read the copy.
    private func withdrawnCopy(at file: String) -> String? {
        // Without the index this is not known, so no user gets additional access.
        let known = try? context.withIndex { (index) throws(SQLiteError) in
            try index.pipelines.owner(of: file).flatMap { (owner) throws(SQLiteError) in
                try index.publication(of: owner)
            }
        }
        return known.flatMap { $0.isWithdrawn ? published.path(of: $0) : nil }
    }
}
