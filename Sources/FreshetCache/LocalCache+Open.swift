import Synchronization

extension LocalCache {
    /// Opens the cache: takes the lock, opens or rebuilds the index, and makes index and files agree.
    ///
    /// - Parameters:
    ///   - cacheDirectory: absolute; made if it is missing, and may be removed at any time.
    ///   - stateDirectory: absolute; made if it is missing.
    ///   - reserve: what commits must leave free.
    ///   - limit: how many bytes all content may have; nil: any number. What is too much goes at once.
    ///   - removed: told what goes for room, from any thread, with locks held.
    ///   - rebuilt: told that the index was found damaged while it was used, and was replaced, with its path.
    ///   - verifiesAll: read all content and compare digests, not only what is another file than the one committed.
    /// - Throws: ``CacheError/stateLocked(directory:holder:)``, ``CacheError/indexNewer(path:found:known:)``, and what
    ///   the system refuses. A damaged index or damaged content is no error: see the report.
    package static func open(
        cacheDirectory: String, stateDirectory: String, reserve: FreeSpaceReserve = .standard,
        limit: Int64? = nil, verifiesAll: Bool = false,
        removed: @escaping @Sendable (RemovedContent) -> Void = { _ in },
        rebuilt: @escaping @Sendable (RecoveryReport.Index, String) -> Void = { _, _ in }
    ) throws(CacheError) -> (cache: LocalCache, report: RecoveryReport) {
        try open(
            cacheDirectory: cacheDirectory, stateDirectory: stateDirectory, reserve: reserve, limit: limit,
            verifiesAll: verifiesAll, fileSystem: LinuxFileSystem(), removed: removed, rebuilt: rebuilt)
    }

    /// The same on another file system, which sees all calls but the lock's and the index's.
    static func open(
        cacheDirectory: String, stateDirectory: String, reserve: FreeSpaceReserve, limit: Int64? = nil,
        verifiesAll: Bool, fileSystem: any FileSystem,
        waitForRoom: @escaping @Sendable (_ attempt: Int) -> Bool = LocalCache.waitForRoom,
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
        let opened = try OpenedIndex.open(layout)
        let (state, repairs) = (opened.state, opened.repairs)
        let cache = LocalCache(
            layout: layout, fileSystem: fileSystem, room: CacheQuota(limit: limit, reserve: reserve),
            index: opened.index, lock: lock, waitForRoom: waitForRoom, tellRemoved: removed,
            tellRebuilt: rebuilt)
        let report = try cache.recover(state, repairs, verifiesAll: verifiesAll)
        try cache.measure()
        try cache.applyLimit()
        return (cache, report)
    }

    /// Opens the cache of a daemon that does not run, to examine it: its files are not mended on the way.
    ///
    /// - Parameter mends: an index that is damaged is set aside, and made anew from the files.
    /// - Returns: what is wrong with the index; and the cache, unless that keeps it from being used.
    /// - Throws: ``CacheError/nothingKept(_:)``, and as ``open(cacheDirectory:stateDirectory:reserve:verifiesAll:)``.
    package static func openToExamine(
        cacheDirectory: String, stateDirectory: String, mends: Bool
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
        let lock = try StateLock(layout)
        var examination = CacheExamination()
        let fault = try fault(ofIndex: layout.index)
        if let fault {
            var finding = CacheFinding(.indexDamaged, path: layout.index, detail: fault)
            finding.isMended = mends
            examination.add(finding)
            guard mends else { return (nil, examination) }
            _ = try OpenedIndex.setAside(layout, reason: fault)
        }
        let opened = try OpenedIndex.open(layout)
        let (state, repairs) = (opened.state, opened.repairs)
        let cache = LocalCache(
            layout: layout, fileSystem: fileSystem, room: CacheQuota(reserve: .none), index: opened.index, lock: lock)
        // Without it the files alone know what there is.
        if fault != nil { _ = try cache.recover(state, repairs, verifiesAll: true) }
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
            readers: readers, directories: Set(directories.map(\.name).filter { CacheName.fault(in: $0) == nil }),
            rows: rows, generations: try withIndex { (index) throws(SQLiteError) in try index.generations() },
            refused: try refusals(of: rows))
        let names = start.directories.union(rows.map(\.name)).filter { !start.isBare($0) }
        for name in names.sorted() {
            do throws(CacheError) {
                if let recovery = try reconcile(name, start: start, verifiesAll: verifiesAll) {
                    report.pipelines.append(recovery)
                }
            } catch {
                // One pipeline's trouble keeps no other from starting.
                entry(name).state.withLock { $0.isSuspect = true }
                report.pipelines.append(PipelineRecovery(pipeline: name, repairs: [.failed(error)]))
            }
        }
        return report
    }

    /// What is kept aside. What has no file any more is forgotten.
    private func refusals(
        of rows: [IndexedPipeline]
    ) throws(CacheError) -> [(pipeline: Int64, refusal: IndexedRejection)] {
        var refusals = try withIndex { (index) throws(SQLiteError) in try index.refused() }
        guard !refusals.isEmpty else { return [] }
        let names = Dictionary(rows.map { ($0.id, $0.name) }) { first, _ in first }
        let gone = try onFiles { (files) throws(SystemCallError) -> Set<Int64> in
            var gone: Set<Int64> = []
            for (id, refusal) in refusals {
                let path = names[id].map { self.layout.refused(refusal.digest, of: $0) }
                if try path.flatMap({ (path) throws(SystemCallError) in try files.status(path) }) == nil {
                    gone.insert(id)
                }
            }
            return gone
        }
        if gone.isEmpty { return refusals }
        try transaction { (index) throws(SQLiteError) in
            for id in gone { try index.setRefused(nil, of: id) }
        }
        refusals.removeAll { gone.contains($0.pipeline) }
        return refusals
    }

    /// Makes the directories with their modes, and their names durable.
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
