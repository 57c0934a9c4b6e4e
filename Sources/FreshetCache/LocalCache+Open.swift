import Synchronization

extension LocalCache {
    /// Opens the cache: takes the lock, opens or rebuilds the index, and makes index and files agree.
    ///
    /// - Parameters:
    ///   - cacheDirectory: absolute; made if it is missing, and may be removed at any time.
    ///   - stateDirectory: absolute; made if it is missing.
    ///   - reserve: the space that commits must leave free.
    ///   - limit: the most bytes of all content; nil: no limit. Content beyond the limit is removed immediately.
    ///   - removed: called with the content that was removed to free space, from any thread, with locks held.
    ///   - rebuilt: called after the index was found damaged during use and was replaced, with its path.
    ///   - verifiesAll: read all content and compare digests, not only if the file is not the one that was committed.
    ///   - directories: names in the state directory that must be directories if they exist.
    /// - Throws: ``CacheError/stateLocked(directory:holder:)``, ``CacheError/indexNewer(path:found:known:)``, and
    ///   errors of system calls. A damaged index or damaged content is not an error: see the report.
    package static func open(
        cacheDirectory: String, stateDirectory: String, reserve: FreeSpaceReserve = .standard,
        limit: Int64? = nil, verifiesAll: Bool = false, directories: [String] = [],
        removed: @escaping @Sendable (RemovedContent) -> Void = { _ in },
        rebuilt: @escaping @Sendable (RecoveryReport.Index, String) -> Void = { _, _ in }
    ) throws(CacheError) -> (cache: LocalCache, report: RecoveryReport) {
        try open(
            cacheDirectory: cacheDirectory, stateDirectory: stateDirectory, reserve: reserve, limit: limit,
            verifiesAll: verifiesAll, directories: directories, fileSystem: LinuxFileSystem(), removed: removed,
            rebuilt: rebuilt)
    }

    /// The same with another file system, which gets all calls except those of the lock and of the index.
    static func open(
        cacheDirectory: String, stateDirectory: String, reserve: FreeSpaceReserve, limit: Int64? = nil,
        verifiesAll: Bool, directories: [String] = [], fileSystem: any FileSystem,
        waitForSpace: @escaping @Sendable (_ attempt: Int) -> Bool = LocalCache.waitForSpace,
        removed: @escaping @Sendable (RemovedContent) -> Void = { _ in },
        rebuilt: @escaping @Sendable (RecoveryReport.Index, String) -> Void = { _, _ in }
    ) throws(CacheError) -> (cache: LocalCache, report: RecoveryReport) {
        let layout = CacheLayout(cacheDirectory: cacheDirectory, stateDirectory: stateDirectory)
        do throws(SystemCallError) {
            if try fileSystem.status(stateDirectory) == nil {
                _ = try fileSystem.makeDirectory(stateDirectory, mode: CacheLayout.stateDirectoryMode)
            }
        } catch {
            throw .fileSystem(error)
        }
        let lock = try StateLock(layout)
        var strays = lock.stray.map { [$0] } ?? []
        for name in directories {
            let path = stateDirectory + "/" + name
            if let stray = try StateStray.moveAside(path, unless: .directory) { strays.append(stray) }
        }
        let opened = try OpenedIndex.open(layout)
        let (state, repairs) = (opened.state, opened.repairs)
        strays += opened.strays
        let cache = LocalCache(
            layout: layout, fileSystem: fileSystem, quota: CacheQuota(limit: limit, reserve: reserve),
            index: opened.index, lock: lock, waitForSpace: waitForSpace, onRemoval: removed,
            onRebuild: rebuilt)
        var report = try cache.recover(state, repairs, verifiesAll: verifiesAll)
        report.strays = strays
        try cache.measure()
        try cache.applyLimit()
        return (cache, report)
    }

    /// Opens the cache of a daemon that does not run, to examine it. Its files are not repaired by opening it.
    ///
    /// - Parameter repairs: move a damaged index aside, and make a new index from the files.
    /// - Returns: the findings about the index; and the cache, unless the findings make it unusable.
    /// - Throws: ``CacheError/nothingKept(_:)``, and as ``open(cacheDirectory:stateDirectory:reserve:verifiesAll:)``.
    package static func openToExamine(
        cacheDirectory: String, stateDirectory: String, repairs: Bool
    ) throws(CacheError) -> (cache: LocalCache?, examination: CacheExamination) {
        let layout = CacheLayout(cacheDirectory: cacheDirectory, stateDirectory: stateDirectory)
        let fileSystem = LinuxFileSystem()
        let found: FileStatus?
        do throws(SystemCallError) {
            found = try fileSystem.status(layout.index)
        } catch {
            throw .fileSystem(error)
        }
        guard found != nil else { throw .nothingKept(layout.index) }
        var examination = CacheExamination()
        for path in [layout.lock] + layout.indexFiles.dropFirst() {
            guard let kind = try StateStray.kind(of: path, unless: .file) else { continue }
            var finding = CacheFinding(.stray, path: path, detail: "it is \(kind)")
            finding.isRepaired = repairs
            examination.add(finding)
        }
        // SQLite could not open the index, and without the lock nothing is examined.
        if !repairs, !examination.findings.isEmpty { return (nil, examination) }
        let lock = try StateLock(layout)
        // With these in place, SQLite would fail to open the index.
        for path in layout.indexFiles.dropFirst() { _ = try StateStray.moveAside(path, unless: .file) }
        let error = try error(ofIndex: layout.index)
        if let error {
            var finding = CacheFinding(.indexDamaged, path: layout.index, detail: error)
            finding.isRepaired = repairs
            examination.add(finding)
            guard repairs else { return (nil, examination) }
            // If it is not a file, it is moved aside when the index is opened.
            if try StateStray.kind(of: layout.index, unless: .file) == nil {
                _ = try OpenedIndex.moveAside(layout, reason: error)
            }
        }
        let opened = try OpenedIndex.open(layout)
        let (state, repairs) = (opened.state, opened.repairs)
        let cache = LocalCache(
            layout: layout, fileSystem: fileSystem, quota: CacheQuota(reserve: .none), index: opened.index, lock: lock)
        // Without the old index, only the files show what content there is.
        if error != nil { _ = try cache.recover(state, repairs, verifiesAll: true) }
        return (cache, examination)
    }

    private func recover(
        _ state: RecoveryReport.Index, _ repairs: [IndexRepair], verifiesAll: Bool
    ) throws(CacheError) -> RecoveryReport {
        var report = RecoveryReport(index: state, indexRepairs: repairs)
        let (readers, directories) = try onFiles { (files) throws(SystemCallError) in
            try self.makeDirectories(for: nil, files)
            return (try files.list(self.layout.current), try files.list(self.layout.generations))
        }
        for entry in readers where CacheLayout.isTemporary(entry.name) {
            try remove(leftover: entry.name, in: layout.current, of: nil)
            report.temporaries += 1
        }
        removeUnfinishedSets()
        report.indexRepairs += try StartRepair(self).perform(after: repairs)
        let rows = try withIndex { (index) throws(SQLiteError) in try index.pipelines() }
        let start = StartSnapshot(
            readers: readers, directories: Set(directories.map(\.name).filter { CacheName.error(in: $0) == nil }),
            rows: rows, generations: try withIndex { (index) throws(SQLiteError) in try index.generations() },
            rejected: try rejections(of: rows))
        let names = start.directories.union(rows.map(\.name)).filter { !start.hasNoContent($0) }
        for name in names.sorted() {
            do throws(CacheError) {
                if let recovery = try reconcile(name, start: start, verifiesAll: verifiesAll) {
                    report.pipelines.append(recovery)
                }
            } catch {
                // An error of one pipeline does not prevent others from starting.
                entry(name).state.withLock { $0.isSuspect = true }
                report.pipelines.append(PipelineRecovery(pipeline: name, repairs: [.failed(error)]))
            }
        }
        return report
    }

    /// The rejected content of all pipelines. Rows without a file are deleted.
    private func rejections(
        of rows: [IndexedPipeline]
    ) throws(CacheError) -> [(pipeline: Int64, rejection: IndexedRejection)] {
        var rejections = try withIndex { (index) throws(SQLiteError) in try index.rejected() }
        guard !rejections.isEmpty else { return [] }
        let names = Dictionary(rows.map { ($0.id, $0.name) }) { first, _ in first }
        let gone = try onFiles { (files) throws(SystemCallError) -> Set<Int64> in
            var gone: Set<Int64> = []
            for (id, rejection) in rejections {
                let path = names[id].map { self.layout.rejected(rejection.digest, of: $0) }
                if try path.flatMap({ (path) throws(SystemCallError) in try files.status(path) }) == nil {
                    gone.insert(id)
                }
            }
            return gone
        }
        if gone.isEmpty { return rejections }
        try transaction { (index) throws(SQLiteError) in
            for id in gone { try index.setRejected(nil, of: id) }
        }
        rejections.removeAll { gone.contains($0.pipeline) }
        return rejections
    }

    /// Makes the directories with their modes, and flushes their names.
    func makeDirectories(for pipeline: String?, _ files: any FileSystem) throws(SystemCallError) {
        if try files.status(layout.cacheDirectory) == nil {
            _ = try files.makeDirectory(layout.cacheDirectory, mode: CacheLayout.cacheDirectoryMode)
        }
        let madeCurrent = try files.makeDirectory(layout.current, mode: CacheLayout.currentMode)
        let madeGenerations = try files.makeDirectory(layout.generations, mode: CacheLayout.generationsMode)
        if madeCurrent || madeGenerations { try files.synchronizeDirectory(layout.cacheDirectoryItself) }
        if let pipeline {
            let made = try files.makeDirectory(layout.generations(of: pipeline), mode: CacheLayout.generationsMode)
            if made { try files.synchronizeDirectory(layout.generations) }
        }
    }
}
