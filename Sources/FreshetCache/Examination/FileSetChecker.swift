/// Examines the directories and links of pipelines with several files. Callers hold the lock of the pipeline.
struct FileSetChecker: Sendable {
    let context: CacheContext
    let sets: FileSetStore
    let writer: FileSetWriter

    /// Compares link and directory with the stamp, which is undamaged.
    func examine(_ row: IndexedPipeline, _ examination: inout CacheExamination) throws(CacheError) {
        guard let link = row.link else { return }
        let directory = context.layout.sets(of: row.name)
        // If this is not a directory, `strays()` reports it; a symbolic link to a directory is not followed.
        let isOwn = try context.isDirectory(directory)
        for entry in try context.onFiles({ (files) throws(SystemCallError) in try files.list(directory) }) {
            let path = directory + "/" + entry.name
            if CacheLayout.isTemporary(entry.name) {
                if !context.names.isInUse(entry.name) {
                    examination.add(CacheFinding(.unfinished, of: row.name, path: path))
                }
            } else if StoredContent(name: entry.name) == nil {
                examination.add(CacheFinding(.stray, of: row.name, path: path))
            }
        }
        let known = try context.withIndex { (index) throws(SQLiteError) in try index.publication(of: row.name) }
        guard let publication = known else { return }
        let content = publication.generation.content
        let set = try sets.name(of: content, in: row.name)
        var finding = CacheFinding(
            .setDamaged, of: row.name, generation: content.number, path: context.layout.reader(link))
        let shown = try context.onFiles { (_) throws(SystemCallError) in try sets.shown(of: row.name, at: link) }
        if publication.isWithdrawn {
            finding.detail = "the copy is withdrawn"
            if shown != nil { examination.add(finding) }
            return
        }
        // Until the next commit, readers see link and stamp under the former name.
        let stamp = context.layout.reader(publication.file)
        guard try context.onFiles({ (files) throws(SystemCallError) in try files.status(stamp) }) != nil else { return }
        if shown != set.name {
            finding.detail = "the link does not lead to the directory of this generation"
            examination.add(finding)
        }
        let (bundle, status): (FileBundle, FileStatus)
        do throws(CacheError) {
            (bundle, status) = try writer.bundle(at: stamp)
        } catch .noBundle(let error) {
            finding.detail = "the copy is not a bundle of files, and the next run writes it again: \(error)"
            return examination.add(finding)
        }
        finding.path = context.layout.set(set, of: row.name)
        guard isOwn, try context.isDirectory(finding.path) else {
            finding.detail = "the directory is missing"
            return examination.add(finding)
        }
        for (name, member) in try writer.errors(ofSet: finding.path, bundle, status) {
            var error = finding
            error.path += "/" + name
            error.detail = member == nil ? "it is not a file of the generation" : nil
            examination.add(error)
        }
    }
}
