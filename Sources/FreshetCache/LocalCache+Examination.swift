import Synchronization

/// Looking at all of the cache: every digest, every row of the index, every link.
///
/// It may take as long as reading all content does, and goes on beside commits and readers: what is read is not locked.
/// Where something seems wrong it is looked at again with the pipeline's lock, since a commit may have removed it.
/// Symbolic links are looked at, and never followed.
extension LocalCache {
    /// The names of all that the index or the disk has something of.
    package func examinable() throws(CacheError) -> [String] {
        let known = try withIndex { (index) throws(SQLiteError) in try index.pipelines().map(\.name) }
        let found = try onFiles { (files) throws(SystemCallError) in try files.list(layout.generations) }
        return Set(known + found.map(\.name).filter { CacheName.fault(in: $0) == nil }).sorted()
    }

    /// Looks at the index itself, by a connection of its own, so that commits go on. It is not mended here: the next start
    /// makes it anew from the files.
    package func examineIndex() throws(CacheError) -> CacheExamination {
        var examination = CacheExamination()
        if let fault = try Self.fault(ofIndex: layout.index) {
            examination.add(CacheFinding(.indexDamaged, path: layout.index, detail: fault))
        }
        return examination
    }

    /// SQLite's first word on what is wrong; nil: nothing is.
    static func fault(ofIndex path: String) throws(CacheError) -> String? {
        do throws(SQLiteError) {
            var database = try SQLiteDatabase(path: path, busyTimeout: CacheLimits.indexBusyMilliseconds)
            if try database.row("PRAGMA application_id", read: { $0.integer(0) }) != CacheIndex.applicationID {
                return "it is another program's database"
            }
            let verdict = try database.row("PRAGMA integrity_check(1)") { $0.text(0) }
            if verdict != "ok" { return verdict }
            return try database.row("PRAGMA foreign_key_check") {
                "a row of \($0.text(0)) belongs to one of \($0.text(2)) that is not there"
            }
        } catch {
            if error.isDamage { return error.message }
            throw .index(error)
        }
    }

    /// Looks at what of the cache is no pipeline's.
    ///
    /// - Parameter mends: takes away what is not needed. What the cache did not make is moved to ``CacheLayout/strays``.
    package func examineStrays(mends: Bool = false) throws(CacheError) -> CacheExamination {
        var examination = try strays()
        guard mends, !examination.findings.isEmpty else { return examination }
        examination.mend { (finding) throws(CacheError) in
            // A pipeline may have taken the name meanwhile.
            guard try isStray(finding.path) else { return }
            if finding.kind == .unfinished { try remove(finding.path) } else { try discard(finding.path) }
        }
        try onFiles { (files) throws(SystemCallError) in try self.makeDirectories(for: nil, files) }
        examination.note(left: try strays())
        return examination
    }

    /// Looks at a pipeline's copy and at its generations.
    ///
    /// - Parameters:
    ///   - mends: removes what is damaged, and puts back what can be.
    ///   - isEnough: asked before each generation: true ends it with what was found so far, and mends nothing.
    package func examine(
        _ pipeline: String, mends: Bool = false, until isEnough: () -> Bool = { false }
    ) throws(CacheError) -> CacheExamination {
        try CacheName.check(pipeline)
        var examination = CacheExamination()
        // The paths of what does not have its digest.
        var doubtful: Set<String> = []
        let known = try rows(of: pipeline)
        func read(_ path: String, _ digest: ContentDigest) throws(CacheError) {
            guard try isDirectory(layout.generations(of: pipeline)) else { return }
            if try fileSystem.digest(of: path) != digest { doubtful.insert(path) }
        }
        for generation in known.kept {
            if isEnough() { return examination }
            examination.generations += 1
            examination.bytes = examination.bytes.addingClamped(generation.identity.size)
            try read(layout.generation(generation.content, of: pipeline), generation.content.digest)
        }
        if isEnough() { return examination }
        if let refused = known.refused { try read(layout.refused(refused, of: pipeline), refused) }
        try entry(pipeline).state.withLock { (state) throws(CacheError) in
            try look(at: pipeline, doubtful, &examination)
            guard mends, !examination.findings.isEmpty else { return }
            examination.offered = try mend(pipeline, &examination, &state)
            examination.isLost = examination.offered == nil
            var left = CacheExamination()
            try look(at: pipeline, doubtful, &left)
            examination.note(left: left)
        }
        return examination
    }

    // MARK: Inside

    private func strays() throws(CacheError) -> CacheExamination {
        var examination = CacheExamination()
        for directory in [layout.current, layout.generations, layout.sets] {
            guard try isDirectory(directory) else {
                if try status(directory) != nil { examination.add(CacheFinding(.stray, path: directory)) }
                continue
            }
            for entry in try onFiles({ (files) throws(SystemCallError) in try files.list(directory) }) {
                if let kind = try fault(of: entry.name, in: directory) {
                    examination.add(CacheFinding(kind, path: directory + "/" + entry.name))
                }
            }
        }
        return examination
    }

    /// A path that was found to belong to no pipeline still belongs to none.
    private func isStray(_ path: String) throws(CacheError) -> Bool {
        for directory in [layout.current, layout.generations, layout.sets] where path.hasPrefix(directory + "/") {
            return try fault(of: String(path.dropFirst(directory.utf8.count + 1)), in: directory) != nil
        }
        // One of the directories themselves, which is none.
        return try !isDirectory(path)
    }

    /// What a name in one of the two directories is, if it does not belong there.
    private func fault(of name: String, in directory: String) throws(CacheError) -> CacheFinding.Kind? {
        if directory == layout.generations {
            if CacheName.fault(in: name) != nil { return .stray }
            guard let status = try status(directory + "/" + name) else { return nil }
            return status.isDirectory ? nil : .stray
        }
        if directory == layout.sets {
            let row = try withIndex { (index) throws(SQLiteError) in try index.pipeline(name) }
            guard let row, row.isSet || !row.formerSets.isEmpty else { return .stray }
            guard let status = try status(directory + "/" + name) else { return nil }
            return status.isDirectory ? nil : .stray
        }
        if CacheLayout.isTemporary(name) { return isLiving(name) ? nil : .unfinished }
        return try withIndex { (index) throws(SQLiteError) in
            if try index.owner(of: name) != nil { return nil }
            // What readers have of several files until the next commit.
            let former = try index.pipelines().contains { row in
                row.formerSets.contains { name == $0 || name == $0 + CacheLayout.stampSuffix }
            }
            return former ? nil : .stray
        }
    }

    private func status(_ path: String) throws(CacheError) -> FileStatus? {
        try onFiles { (files) throws(SystemCallError) in try files.status(path) }
    }

    /// A directory itself: what a link leads to is not ours.
    func isDirectory(_ path: String) throws(CacheError) -> Bool { try status(path)?.isDirectory == true }

    /// The file is one of those that hold generations.
    func isKept(_ path: String) throws(CacheError) -> Bool {
        guard let status = try status(path), status.isRegularFile, status.links > 1 else { return false }
        let rows = try withIndex { (index) throws(SQLiteError) in try index.pipelines() }
        for row in rows {
            let directory = layout.generations(of: row.name)
            let names = try onFiles { (files) throws(SystemCallError) in try files.list(directory) }
            if names.contains(where: { $0.inode == status.identity.inode }) { return true }
        }
        return false
    }

    /// What the index has of a pipeline.
    private func rows(
        of pipeline: String
    ) throws(CacheError) -> (row: IndexedPipeline?, kept: [IndexedGeneration], refused: ContentDigest?) {
        try withIndex {
            (index) throws(SQLiteError) -> (IndexedPipeline?, [IndexedGeneration], ContentDigest?) in
            guard let row = try index.pipeline(pipeline) else { return (nil, [], nil) }
            return (row, try index.generations(of: row.id), try index.refused(of: row.id)?.digest)
        }
    }

    /// Compares a pipeline's rows with its files. The caller holds its lock, and has read the content of all that is not
    /// doubtful.
    private func look(
        at pipeline: String, _ doubtful: Set<String>, _ examination: inout CacheExamination
    ) throws(CacheError) {
        let (row, kept, refused) = try rows(of: pipeline)
        try lookForStrays(of: pipeline, Set(kept.map(\.content)), refused, &examination)
        let isOwn = try isDirectory(layout.generations(of: pipeline))
        /// The inodes of what is whole.
        var whole: [Int64: UInt64] = [:]
        for generation in kept {
            let (content, path) = (generation.content, layout.generation(generation.content, of: pipeline))
            var finding = CacheFinding(.contentDamaged, of: pipeline, generation: content.number, path: path)
            guard isOwn, let status = try status(path) else {
                finding.kind = .contentMissing
                examination.add(finding)
                continue
            }
            if !status.isRegularFile {
                finding.detail = "it is no file"
                examination.add(finding)
            } else if doubtful.contains(path), try fileSystem.digest(of: path) != content.digest {
                examination.add(finding)
            } else {
                whole[content.number] = status.identity.inode
            }
        }
        if let refused {
            let path = layout.refused(refused, of: pipeline)
            var isWhole = isOwn
            if isWhole, doubtful.contains(path) { isWhole = try fileSystem.digest(of: path) == refused }
            if !isWhole { examination.add(CacheFinding(.refusedDamaged, of: pipeline, path: path)) }
        }
        guard let row else { return }
        try lookAtCopy(of: row, kept, whole, &examination)
        if !examination.findings.contains(where: { [.copyMissing, .copyDamaged].contains($0.kind) }) {
            try lookAtSet(of: row, &examination)
        }
        if let pin = row.pin, !kept.contains(where: { $0.content == pin.content }) {
            examination.add(
                CacheFinding(
                    .pinLost, of: pipeline, generation: pin.content.number,
                    path: layout.generation(pin.content, of: pipeline)))
        }
    }

    /// What lies among a pipeline's generations and is none of those that are kept.
    private func lookForStrays(
        of pipeline: String, _ kept: Set<StoredContent>, _ refused: ContentDigest?,
        _ examination: inout CacheExamination
    ) throws(CacheError) {
        let directory = layout.generations(of: pipeline)
        // One that is no directory is a stray of no pipeline's; a link that leads to one is not followed.
        guard try isDirectory(directory) else { return }
        for entry in try onFiles({ (files) throws(SystemCallError) in try files.list(directory) }) {
            var finding = CacheFinding(.stray, of: pipeline, path: directory + "/" + entry.name)
            if CacheLayout.isTemporary(entry.name) {
                if isLiving(entry.name) { continue }
                finding.kind = .unfinished
            } else if let digest = CacheLayout.refusedDigest(entry.name) {
                // What came before it should have gone by then.
                if digest == refused { continue }
                finding.kind = .unfinished
            } else if let content = StoredContent(name: entry.name) {
                if kept.contains(content) { continue }
                finding.kind = .contentUnknown
                finding.generation = content.number
            }
            examination.add(finding)
        }
    }

    /// Whether readers find a file by any name.
    private func isFound(_ inode: UInt64) throws(CacheError) -> Bool {
        try onFiles { (files) throws(SystemCallError) in
            try files.list(self.layout.current).contains { $0.inode == inode && !CacheLayout.isTemporary($0.name) }
        }
    }

    private func lookAtCopy(
        of row: IndexedPipeline, _ kept: [IndexedGeneration], _ whole: [Int64: UInt64],
        _ examination: inout CacheExamination
    ) throws(CacheError) {
        guard let file = row.file else { return }
        let path = layout.reader(file)
        var finding = CacheFinding(.copyDamaged, of: row.name, generation: row.current, path: path)
        let status = try isDirectory(layout.current) ? status(path) : nil
        guard let current = row.current, row.withdrawnAt == nil else {
            if row.withdrawnAt != nil { (finding.generation, finding.detail) = (nil, "the copy is withdrawn") }
            // Under its former kind too readers have it until then.
            let isFormer = row.withdrawnAt == nil && row.formerSets.contains(file)
            if status != nil, !isFormer { examination.add(finding) }
            return
        }
        guard let status else {
            // Under a former name of the copy readers have it until the next commit, which is no damage.
            if let inode = whole[current], try isFound(inode) { return }
            finding.kind = .copyMissing
            examination.add(finding)
            return
        }
        if status.isRegularFile, whole[current] == status.identity.inode { return }
        guard status.isRegularFile, let generation = kept.first(where: { $0.content.number == current }),
            try fileSystem.digest(of: path) == generation.content.digest
        else {
            finding.detail = status.isRegularFile ? nil : "it is no file"
            examination.add(finding)
            return
        }
        guard whole[current] != nil else { return }
        finding.kind = .copyApart
        examination.add(finding)
    }
}
