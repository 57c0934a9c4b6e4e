import FreshetModel
import Synchronization

/// Examines the whole cache: every digest, every row of the index, every link.
///
/// An examination can take as long as reading all content, and runs at the same time as commits and readers: content
/// that is read is not locked. A possible error is checked again with the pipeline's lock, because a commit may have
/// removed the content. Symbolic links are examined, and never followed.
package struct CacheChecker: Sendable {
    let context: CacheContext
    let setChecker: FileSetChecker
    let repairer: CacheRepairer

    /// The names of all pipelines in the index or on the disk.
    package func examinable() throws(CacheError) -> [String] {
        let known = try withSoundIndex { (_) throws(CacheError) in
            try context.withIndex { (index) throws(SQLiteError) in try index.pipelines.all().map(\.name) }
        }
        let found = try context.onFiles { (files) throws(SystemCallError) in
            try files.list(context.layout.generations)
        }
        return Set(known + found.map(\.name).filter { CacheName.error(in: $0) == nil }).sorted()
    }

    /// Examines the index with a separate connection, so that commits continue. The index is not repaired here: the
    /// next start makes it again from the files.
    package func examineIndex() throws(CacheError) -> CacheExamination {
        try examineIndex(isExclusive: context.index.isExclusive)
    }

    /// - Parameter isExclusive: whether no other connection can use the index.
    func examineIndex(isExclusive: Bool) throws(CacheError) -> CacheExamination {
        var examination = CacheExamination()
        let path = context.layout.index
        let error: String?
        if let kind = try StateStray.kind(of: path, unless: .file) {
            error = "it is \(kind)"
        } else if try context.index.access(storesDeferred: false, { $0.database.hasMoved }) {
            // A second connection would make a new file, or would change the log that belongs to the other file.
            error = "the file was removed or replaced, and the daemon still uses the previous one"
        } else if isExclusive {
            error = try context.withIndex { (index) throws(SQLiteError) -> String? in
                do throws(SQLiteError) {
                    // Otherwise the connection examines the pages that it has in memory, not those on the disk.
                    try index.database.execute("PRAGMA shrink_memory")
                    return try Self.error(in: index.database)
                } catch {
                    // Damage is a finding. Thrown, it would replace the index.
                    if error.isDamage { return error.message }
                    throw error
                }
            }
        } else {
            error = try Self.error(ofIndex: path)
        }
        if let error {
            examination.add(CacheFinding(.indexDamaged, path: context.layout.index, detail: error))
        }
        return examination
    }

    /// The first error that SQLite finds; nil if there is none.
    static func error(ofIndex path: String) throws(CacheError) -> String? {
        if let kind = try StateStray.kind(of: path, unless: .file) { return "it is \(kind)" }
        do throws(SQLiteError) {
            return try error(
                in: try SQLiteDatabase(path: path, busyTimeout: CacheLimits.indexBusyMilliseconds))
        } catch {
            if error.isDamage { return error.message }
            throw .index(error)
        }
    }

    private static func error(in database: SQLiteDatabase) throws(SQLiteError) -> String? {
        if try database.row("PRAGMA application_id", read: { $0.integer(0) }) != CacheIndex.applicationID {
            return "it is another program's database"
        }
        let result = try database.row("PRAGMA integrity_check(1)") { $0.text(0) }
        if result != "ok" { return result }
        return try database.row("PRAGMA foreign_key_check") {
            "a row of \($0.text(0)) refers to a missing row of \($0.text(2))"
        }
    }

    /// Finds files in the cache that do not belong to a pipeline.
    ///
    /// - Parameter repairs: remove unfinished files, and move foreign files to ``CacheLayout/strays``.
    package func examineStrays(repairs: Bool = false) throws(CacheError) -> CacheExamination {
        try withSoundIndex { (epoch) throws(CacheError) in try examineStraysOnce(repairs: repairs, epoch) }
    }

    private func examineStraysOnce(repairs: Bool, _ epoch: Int) throws(CacheError) -> CacheExamination? {
        try followFiles()
        var examination = try strays()
        guard context.index.epoch == epoch else { return nil }
        guard repairs, !examination.findings.isEmpty else { return examination }
        examination.repair { (finding) throws(CacheError) in
            // A pipeline may own the name by now. A new index does not have all names yet.
            guard try isStray(finding.path), context.index.epoch == epoch else { return }
            if finding.kind == .unfinished {
                try context.remove(finding.path)
            } else {
                try repairer.discard(finding.path)
            }
        }
        try context.onFiles { (files) throws(SystemCallError) in try context.makeDirectories(for: nil, files) }
        let left = try strays()
        guard context.index.epoch == epoch else { return nil }
        examination.markRepaired(remaining: left)
        return examination
    }

    /// Examines a pipeline's copy and its generations.
    ///
    /// - Parameters:
    ///   - repairs: remove damaged files, and restore those that can be restored.
    ///   - isEnough: called before each piece of content; if it returns true, the examination ends with the findings so far
    ///     and repairs nothing.
    package func examine(
        _ pipeline: String, repairs: Bool = false, until isEnough: () -> Bool = { false }
    ) throws(CacheError) -> CacheExamination {
        try CacheName.check(pipeline)
        return try withSoundIndex { (epoch) throws(CacheError) in
            try examineOnce(pipeline, repairs: repairs, epoch, until: isEnough)
        }
    }

    private func examineOnce(
        _ pipeline: String, repairs: Bool, _ epoch: Int, until isEnough: () -> Bool
    ) throws(CacheError) -> CacheExamination? {
        try followFiles(of: pipeline)
        var examination = CacheExamination()
        // The paths of files whose digest is wrong.
        var doubtful: Set<String> = []
        let known = try rows(of: pipeline)
        func read(_ path: String, _ digest: ContentDigest) throws(CacheError) {
            guard try context.isDirectory(context.layout.generations(of: pipeline)) else { return }
            if try context.fileSystem.digest(of: path, until: isEnough) != digest { doubtful.insert(path) }
        }
        for generation in known.kept {
            if isEnough() { return examination }
            examination.generations += 1
            examination.bytes = examination.bytes.addingClamped(generation.identity.size)
            try read(context.layout.generation(generation.content, of: pipeline), generation.content.digest)
        }
        if isEnough() { return examination }
        if let rejected = known.rejected { try read(context.layout.rejected(rejected, of: pipeline), rejected) }
        if isEnough() { return examination }
        let isSound = try context.entry(pipeline).withLock { (state) throws(CacheError) in
            // Content that the index could not record after a change that failed halfway is not unknown: readers see
            // it. Nothing is repaired before the index has it.
            var isUnrecorded = state.isSuspect
            if isUnrecorded {
                do throws(CacheError) {
                    try repairer.recovery.repair(pipeline, &state)
                    isUnrecorded = false
                } catch {
                    if repairs { throw error }
                }
            }
            try look(at: pipeline, doubtful, &examination)
            if isUnrecorded { examination.findings.removeAll { $0.kind == .contentUnknown } }
            // A new index does not have all content yet.
            guard context.index.epoch == epoch else { return false }
            guard repairs, !examination.findings.isEmpty else { return true }
            examination.published = try repairer.repair(pipeline, &examination, &state)
            if examination.published == nil { examination.lostRevision = state.nextRevision() }
            var left = CacheExamination()
            try look(at: pipeline, doubtful, &left)
            examination.markRepaired(remaining: left)
            return true
        }
        return isSound ? examination : nil
    }

    // MARK: Inside

    /// Calls `body` with the ``SharedIndex/epoch``, and again if the index was replaced before `body` returned a value.
    ///
    /// - Parameter body: returns nil if the index was replaced meanwhile, so that its findings do not count.
    private func withSoundIndex<Value>(
        _ body: (_ epoch: Int) throws(CacheError) -> Value?
    ) throws(CacheError) -> Value {
        for _ in 1..<Self.attempts {
            let epoch = context.index.epoch
            do throws(CacheError) {
                if let value = try body(epoch) { return value }
            } catch {
                if context.index.epoch == epoch { throw error }
            }
        }
        guard let value = try body(context.index.epoch) else {
            throw .index(.damage("it was replaced \(Self.attempts) times meanwhile", during: "examine"))
        }
        return value
    }

    /// How often an examination begins if the index is replaced each time. Only a disk that breaks, or somebody who
    /// changes the index all the time, needs more than two.
    private static let attempts = 10

    /// Compares each pipeline with its files if the index was replaced: a new index has no rows until then, and all
    /// files would be strays.
    private func followFiles() throws(CacheError) {
        guard context.index.epoch > 0 else { return }
        for name in try examinable() { try followFiles(of: name) }
    }

    private func followFiles(of pipeline: String) throws(CacheError) {
        let epoch = context.index.epoch
        guard epoch > 0 else { return }
        try context.entry(pipeline).withLock { (state) throws(CacheError) in
            if state.epoch != epoch { try repairer.recovery.repair(pipeline, &state) }
        }
    }

    private func strays() throws(CacheError) -> CacheExamination {
        var examination = CacheExamination()
        for directory in [context.layout.current, context.layout.generations, context.layout.sets] {
            guard try context.isDirectory(directory) else {
                if try context.status(directory) != nil { examination.add(CacheFinding(.stray, path: directory)) }
                continue
            }
            for entry in try context.onFiles({ (files) throws(SystemCallError) in try files.list(directory) }) {
                if let kind = try error(of: entry.name, in: directory) {
                    examination.add(CacheFinding(kind, path: directory + "/" + entry.name))
                }
            }
        }
        return examination
    }

    /// Whether a path that did not belong to a pipeline still does not.
    private func isStray(_ path: String) throws(CacheError) -> Bool {
        for directory in [context.layout.current, context.layout.generations, context.layout.sets]
        where path.hasPrefix(directory + "/") {
            return try error(of: String(path.dropFirst(directory.utf8.count + 1)), in: directory) != nil
        }
        // The path is one of these directories: it is a stray if it is not a directory.
        return try !context.isDirectory(path)
    }

    /// The kind of finding for a name in one of these directories; nil if the name belongs there.
    private func error(of name: String, in directory: String) throws(CacheError) -> CacheFinding.Kind? {
        if directory == context.layout.generations {
            if CacheName.error(in: name) != nil { return .stray }
            guard let status = try context.status(directory + "/" + name) else { return nil }
            return status.isDirectory ? nil : .stray
        }
        if directory == context.layout.sets {
            let row = try context.withIndex { (index) throws(SQLiteError) in try index.pipelines.row(name) }
            guard let row, row.isSet || !row.formerSets.isEmpty else { return .stray }
            guard let status = try context.status(directory + "/" + name) else { return nil }
            return status.isDirectory ? nil : .stray
        }
        if CacheLayout.isTemporary(name) { return context.names.isInUse(name) ? nil : .unfinished }
        return try context.withIndex { (index) throws(SQLiteError) in
            if try index.pipelines.owner(of: name) != nil { return nil }
            // Readers see these files until the next commit.
            let former = try index.pipelines.all().contains { row in
                row.formerSets.contains { name == $0 || name == $0 + CacheLayout.stampSuffix }
            }
            return former ? nil : .stray
        }
    }

    /// The rows of a pipeline in the index.
    private func rows(
        of pipeline: String
    ) throws(CacheError) -> (row: IndexedPipeline?, kept: [IndexedGeneration], rejected: ContentDigest?) {
        try context.withIndex {
            (index) throws(SQLiteError) -> (IndexedPipeline?, [IndexedGeneration], ContentDigest?) in
            guard let row = try index.pipelines.row(pipeline) else { return (nil, [], nil) }
            return (row, try index.generations.all(of: row.id), try index.rejected.row(of: row.id)?.digest)
        }
    }

    /// Compares a pipeline's rows with its files. The caller holds the pipeline's lock, and has read all content that
    /// is not doubtful.
    private func look(
        at pipeline: String, _ doubtful: Set<String>, _ examination: inout CacheExamination
    ) throws(CacheError) {
        let (row, kept, rejected) = try rows(of: pipeline)
        try findStrays(of: pipeline, Set(kept.map(\.content)), rejected, &examination)
        let isOwn = try context.isDirectory(context.layout.generations(of: pipeline))
        /// The inodes of undamaged generations, by their numbers.
        var whole: [Int64: UInt64] = [:]
        for generation in kept {
            let (content, path) = (generation.content, context.layout.generation(generation.content, of: pipeline))
            var finding = CacheFinding(.contentDamaged, of: pipeline, generation: content.number, path: path)
            guard isOwn, let status = try context.status(path) else {
                finding.kind = .contentMissing
                examination.add(finding)
                continue
            }
            if !status.isRegularFile {
                finding.detail = "it is not a file"
                examination.add(finding)
            } else if doubtful.contains(path), try context.fileSystem.digest(of: path) != content.digest {
                examination.add(finding)
            } else {
                whole[content.number] = status.identity.inode
            }
        }
        if let rejected {
            let path = context.layout.rejected(rejected, of: pipeline)
            var isWhole = isOwn
            if isWhole, doubtful.contains(path) { isWhole = try context.fileSystem.digest(of: path) == rejected }
            if !isWhole { examination.add(CacheFinding(.rejectedDamaged, of: pipeline, path: path)) }
        }
        guard let row else { return }
        try examineCopy(of: row, kept, whole, &examination)
        if !examination.findings.contains(where: { [.copyMissing, .copyDamaged].contains($0.kind) }) {
            try setChecker.examine(row, &examination)
        }
        if let pin = row.pin, !kept.contains(where: { $0.content == pin.content }) {
            examination.add(
                CacheFinding(
                    .pinLost, of: pipeline, generation: pin.content.number,
                    path: context.layout.generation(pin.content, of: pipeline)))
        }
    }

    /// Finds files among a pipeline's generations that do not belong to a kept generation.
    private func findStrays(
        of pipeline: String, _ kept: Set<StoredContent>, _ rejected: ContentDigest?,
        _ examination: inout CacheExamination
    ) throws(CacheError) {
        let directory = context.layout.generations(of: pipeline)
        // If this is not a directory, `strays()` reports it; a symbolic link to a directory is not followed.
        guard try context.isDirectory(directory) else { return }
        for entry in try context.onFiles({ (files) throws(SystemCallError) in try files.list(directory) }) {
            var finding = CacheFinding(.stray, of: pipeline, path: directory + "/" + entry.name)
            if CacheLayout.isTemporary(entry.name) {
                if context.names.isInUse(entry.name) { continue }
                finding.kind = .unfinished
            } else if let digest = CacheLayout.rejectedDigest(entry.name) {
                // Earlier rejected content should have been removed.
                if digest == rejected { continue }
                finding.kind = .unfinished
            } else if let content = StoredContent(name: entry.name) {
                if kept.contains(content) { continue }
                finding.kind = .contentUnknown
                finding.generation = content.number
            }
            examination.add(finding)
        }
    }

    /// Whether readers find a file by any name in `current/`.
    private func isFound(_ inode: UInt64) throws(CacheError) -> Bool {
        try context.onFiles { (files) throws(SystemCallError) in
            try files.list(context.layout.current).contains { $0.inode == inode && !CacheLayout.isTemporary($0.name) }
        }
    }

    private func examineCopy(
        of row: IndexedPipeline, _ kept: [IndexedGeneration], _ whole: [Int64: UInt64],
        _ examination: inout CacheExamination
    ) throws(CacheError) {
        guard let file = row.file else { return }
        let path = context.layout.reader(file)
        var finding = CacheFinding(.copyDamaged, of: row.name, generation: row.current, path: path)
        let status = try context.isDirectory(context.layout.current) ? context.status(path) : nil
        guard let current = row.current, row.withdrawnAt == nil else {
            if row.withdrawnAt != nil { (finding.generation, finding.detail) = (nil, "the copy is withdrawn") }
            // Until the next commit, readers also see the file of the former kind.
            let isFormer = row.withdrawnAt == nil && row.formerSets.contains(file)
            if status != nil, !isFormer { examination.add(finding) }
            return
        }
        guard let status else {
            // Until the next commit, readers see the copy under its former name, which is not damage.
            let isFormer = kept.contains { $0.content.number == current && $0.identity.isOfFormerName }
            if isFormer, let inode = whole[current], try isFound(inode) { return }
            finding.kind = .copyMissing
            examination.add(finding)
            return
        }
        if status.isRegularFile, whole[current] == status.identity.inode { return }
        guard status.isRegularFile, let generation = kept.first(where: { $0.content.number == current }),
            try context.fileSystem.digest(of: path) == generation.content.digest
        else {
            finding.detail = status.isRegularFile ? nil : "it is not a file"
            examination.add(finding)
            return
        }
        guard whole[current] != nil else { return }
        finding.kind = .copyDuplicated
        examination.add(finding)
    }
}
