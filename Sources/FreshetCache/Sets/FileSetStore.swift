import FreshetModel

/// Pipelines that keep several files. The committed generation has all files as one JSON object; in addition, a
/// directory has the files separately, and a link leads readers to it.
///
/// A commit has two more steps for this: the directory with all its files is made and flushed before the generation,
/// and the link is renamed before the stamp. The state of `current/` and of the index depends only on the stamp, as for
/// any other file; the link follows it. The caller of each of these methods holds the pipeline's lock.
struct FileSetStore: Sendable {
    let context: CacheContext
    let writer: FileSetWriter
    let leftovers: LeftoverFiles

    /// Whether the generation to which a file of the cache belongs has a directory. False if the file does not belong
    /// to a generation.
    func has(_ path: String?, of pipeline: String) throws(CacheError) -> Bool {
        guard let last = path?.split(separator: "/").last, let content = StoredContent(name: String(last)) else {
            return false
        }
        return try context.isDirectory(context.layout.set(try name(of: content, in: pipeline), of: pipeline))
    }

    // MARK: The link

    /// Makes the link lead to a generation's directory. A directory in the place of the link is foreign, and is moved
    /// aside.
    ///
    /// - Parameter set: see ``FileSetStore/name(of:in:)``.
    /// - Returns: whether the link was changed.
    func show(
        _ set: StoredContent, of pipeline: String, at link: String, _ files: any FileSystem
    ) throws(SystemCallError) -> Bool {
        let path = context.layout.reader(link)
        let target = CacheLayout.target(set, of: pipeline)
        if try files.linkTarget(path) == target { return false }
        if try files.status(path)?.isDirectory == true { try context.moveToStrays(path, files) }
        let token = context.names.make()
        defer { context.names.release(token) }
        try files.replace(path, withSymbolicLinkTo: target, by: context.layout.readerTemporary(token))
        return true
    }

    /// The name of the directory that the link leads to; nil if it does not lead to a directory of this pipeline.
    func shown(of pipeline: String, at link: String) throws(SystemCallError) -> String? {
        let prefix = CacheLayout.targetPrefix(of: pipeline)
        guard let target = try context.fileSystem.linkTarget(context.layout.reader(link)), target.hasPrefix(prefix)
        else { return nil }
        return String(target.dropFirst(prefix.utf8.count))
    }

    /// Whether the link leads to the directory of the current generation; always true for one file.
    func isShown(_ publication: IndexedPublication) throws(CacheError) -> Bool {
        guard let link = publication.pipeline.link else { return true }
        let pipeline = publication.pipeline.name
        let set = try name(of: publication.generation.content, in: pipeline)
        return try context.onFiles { (files) throws(SystemCallError) in
            guard try shown(of: pipeline, at: link) == set.name else { return false }
            for path in [context.layout.sets(of: pipeline), context.layout.set(set, of: pipeline)] {
                guard try files.status(path)?.isDirectory == true else { return false }
            }
            return true
        }
    }

    /// Makes the directory of a generation, or repairs an existing directory.
    ///
    /// - Parameter path: a file with the generation's content, mode and group.
    func make(_ content: StoredContent, of pipeline: String, from path: String) throws(CacheError) {
        try writer.make(try name(of: content, in: pipeline), of: pipeline, from: path)
    }

    /// Makes directory and link agree with the stamp of the current generation. Does nothing for one file.
    ///
    /// - Parameter verifiesAll: check all files of the directory.
    /// - Returns: whether a change was necessary.
    @discardableResult
    func agree(with publication: IndexedPublication, verifiesAll: Bool = false) throws(CacheError) -> Bool {
        guard let link = publication.pipeline.link, !publication.isWithdrawn else { return false }
        let isShown = try isShown(publication)
        if isShown, !verifiesAll { return false }
        let (content, pipeline) = (publication.generation.content, publication.pipeline.name)
        let set = try name(of: content, in: pipeline)
        let stamp = context.layout.reader(publication.file)
        var isThere = try context.isDirectory(context.layout.sets(of: pipeline))
        if isThere { isThere = try context.isDirectory(context.layout.set(set, of: pipeline)) }
        if verifiesAll || !isThere { try make(content, of: pipeline, from: stamp) }
        return try context.onFiles { (files) throws(SystemCallError) in
            guard try show(set, of: pipeline, at: link, files) else { return !isThere }
            try files.synchronizeDirectory(context.layout.current)
            return true
        }
    }

    /// The same, after index and stamp were made to agree.
    ///
    /// - Returns: the generation whose directory or link was repaired, if any.
    func reconcile(of pipeline: String, verifiesAll: Bool) throws(CacheError) -> Int64? {
        let (row, publication) = try context.withIndex { (index) throws(SQLiteError) in
            (try index.pipelines.row(pipeline), try index.publication(of: pipeline))
        }
        guard let row, let link = row.link, let file = row.file else { return nil }
        if row.withdrawnAt != nil {
            try hide(of: pipeline, at: link)
            return nil
        }
        let status = try context.onFiles { (files) throws(SystemCallError) in
            try files.status(context.layout.reader(file))
        }
        guard let publication else {
            // The first commit was interrupted after the step of the link.
            if status == nil { try hide(of: pipeline, at: link) }
            return nil
        }
        guard status?.identity == publication.generation.identity else { return nil }
        do throws(CacheError) {
            return try agree(with: publication, verifiesAll: verifiesAll)
                ? publication.generation.content.number : nil
        } catch .noBundle {
            // The next commit replaces this content.
            return nil
        }
    }

    func hide(of pipeline: String, at link: String) throws(CacheError) {
        try context.onFiles { (files) throws(SystemCallError) in
            guard try shown(of: pipeline, at: link) != nil else { return }
            try files.unlink(context.layout.reader(link))
            try files.synchronizeDirectory(context.layout.current)
        }
    }

    // MARK: Removing

    /// Removes the directories of generations that are no longer kept.
    ///
    /// - Parameter previous: the name of the directory that readers saw before: readers may still use it.
    func sweep(of row: IndexedPipeline, previous: String?) {
        // Directories that stay now are removed after a later commit.
        guard
            let kept = try? context.withIndex({ (index) throws(SQLiteError) in try index.generations.all(of: row.id) }),
            let entries = try? context.fileSystem.list(context.layout.sets(of: row.name)),
            let sets = try? kept.map({ (generation) throws(CacheError) in
                try name(of: generation.content, in: row.name).name
            })
        else { return }
        let names = Set(sets + [previous].compactMap(\.self))
        for entry in entries where !names.contains(entry.name) {
            guard CacheLayout.isTemporary(entry.name) || StoredContent(name: entry.name) != nil else { continue }
            try? context.removeSet(context.layout.sets(of: row.name) + "/" + entry.name, context.fileSystem)
        }
    }

    /// Removes, at the start, the unfinished directories of an earlier process. A failure does no harm.
    func removeUnfinished() {
        for pipeline in (try? context.fileSystem.list(context.layout.sets)) ?? [] {
            let directory = context.layout.sets(of: pipeline.name)
            for entry in (try? context.fileSystem.list(directory)) ?? [] where CacheLayout.isTemporary(entry.name) {
                try? leftovers.remove(leftover: entry.name, in: directory, of: nil)
            }
        }
    }

    /// Removes the link of a pipeline before its content is removed.
    func removeLink(of row: IndexedPipeline) throws(CacheError) {
        guard let link = row.link else { return }
        try hide(of: row.name, at: link)
    }

    /// Removes all directories of a pipeline; foreign objects are moved aside.
    func removeAll(of pipeline: String) throws(CacheError) {
        let directory = context.layout.sets(of: pipeline)
        try context.onFiles { (files) throws(SystemCallError) in
            guard try context.isDirectory(directory, orMoveAside: files) else { return }
            for entry in try files.list(directory) {
                let path = directory + "/" + entry.name
                if StoredContent(name: entry.name) != nil || CacheLayout.isTemporary(entry.name) {
                    try context.removeSet(path, files)
                } else {
                    try context.moveToStrays(path, files)
                }
            }
            try files.removeDirectory(directory)
            if try files.status(directory) != nil {
                throw SystemCallError(call: "rmdir", path: directory, errno: SystemCallError.notEmpty)
            }
        }
    }

    /// Removes the links, stamps and directories that a pipeline used under former names.
    func removeFormer(of row: IndexedPipeline) throws(CacheError) {
        for link in row.formerSets where link != row.link {
            let stamp = link + CacheLayout.stampSuffix
            let (ofLink, ofStamp) = try context.withIndex { (index) throws(SQLiteError) in
                (try index.pipelines.owner(of: link), try index.pipelines.owner(of: stamp))
            }
            // The pipeline may use the name for a file now.
            if ofLink == nil || ofLink == row.name { try hide(of: row.name, at: link) }
            guard ofStamp == nil else { continue }
            try context.onFiles { (files) throws(SystemCallError) in
                let path = context.layout.reader(stamp)
                if try files.status(path)?.isRegularFile == true { try files.unlink(path) }
            }
        }
        if !row.isSet { try removeAll(of: row.name) }
        try context.withIndex { (index) throws(SQLiteError) in
            try index.pipelines.forgetFormerSets(row.formerSets, of: row.name)
        }
    }

    // MARK: Names

    /// The key of the secret among the small values of a pipeline.
    private static let setSecretKey = "set-secret"
    private static let setSecretBytes = 32

    /// The name of a generation's directory: its number, and a digest that replaces that of the content.
    ///
    /// Every user can read the target of the link, but must not learn the digest of content that only some users may
    /// read: a user who guesses the content could use the digest to verify the guess. So the name has the digest of a
    /// secret and of the content's digest. Each pipeline has its own secret, which is lost with the index; then the
    /// directories are made again.
    func name(of content: StoredContent, in pipeline: String) throws(CacheError) -> StoredContent {
        StoredContent(
            number: content.number, digest: try ContentDigest(of: try secret(of: pipeline) + content.digest.bytes))
    }

    private func secret(of pipeline: String) throws(CacheError) -> [UInt8] {
        let known = try context.withIndex { (index) throws(SQLiteError) in
            try index.state.value(Self.setSecretKey, of: pipeline)
        }
        if let known, known.count == Self.setSecretBytes { return known }
        var generator = SystemRandomNumberGenerator()
        let made = (0..<Self.setSecretBytes).map { _ in UInt8.random(in: 0...255, using: &generator) }
        let isStored = try context.transaction { (index) throws(SQLiteError) in
            try index.state.set(made, for: Self.setSecretKey, of: try index.pipelines.ensure(pipeline).id)
        }
        guard isStored else { throw .stateLimit(key: Self.setSecretKey) }
        return made
    }
}
