/// The names below `current/`, by which readers find content. Callers hold the lock of the pipeline.
struct PublishedFiles: Sendable {
    let context: CacheContext

    /// The file with the content: the published file or, if the copy is withdrawn, the generation's own file.
    func path(of publication: IndexedPublication) -> String {
        publication.isWithdrawn
            ? context.layout.generation(publication.generation.content, of: publication.pipeline.name)
            : context.layout.reader(publication.file)
    }

    /// Makes a generation's file the published file. A directory in its place is foreign, and is moved aside.
    func link(
        _ stored: String, at reader: String, by token: UInt64, _ files: any FileSystem
    ) throws(SystemCallError) {
        let temporary = context.layout.readerTemporary(token)
        do throws(SystemCallError) {
            try files.replace(reader, withLinkTo: stored, by: temporary)
        } catch {
            guard error.isDirectory, (try? context.moveToStrays(reader, files)) != nil else { throw error }
            try files.replace(reader, withLinkTo: stored, by: temporary)
        }
    }

    /// Removes a published name of any kind: files of the cache, and all other objects that a commit would replace.
    func hide(_ file: String) throws(CacheError) {
        let path = context.layout.reader(file)
        try context.onFiles { (files) throws(SystemCallError) in
            guard let status = try files.status(path) else { return }
            if status.isDirectory { try context.moveToStrays(path, files) } else { try files.unlink(path) }
            try synchronize(files)
        }
    }

    /// When origins are not reachable, many copies expire at the same time: they share the flush, as commits do.
    func synchronize(_ files: any FileSystem) throws(SystemCallError) {
        try context.currentFlush.perform { () throws(SystemCallError) in
            try files.synchronizeDirectory(context.layout.current)
        }
    }
}
