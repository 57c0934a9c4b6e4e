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
    ///   - unrecorded: called with a pipeline, a run or check of which could not be recorded, from any thread.
    ///   - changes: handles changes that fail halfway.
    ///   - helpers: other threads for the comparison of the index with the files.
    ///   - memoriesKey: the key for ``memoriesAtStart(key:)``, if that is called next: then the stored states are read
    ///     while the helpers still have other work.
    ///   - verifiesAll: read all content and compare digests, not only if the file is not the one that was committed.
    ///   - directories: names in the state directory that must be directories if they exist.
    /// - Throws: ``CacheError/stateLocked(directory:holder:)``, ``CacheError/indexNewer(path:found:known:)``, and
    ///   errors of system calls. A damaged index or damaged content is not an error: see the report.
    package static func open(
        cacheDirectory: String, stateDirectory: String, reserve: FreeSpaceReserve = .standard,
        limit: Int64? = nil, verifiesAll: Bool = false, directories: [String] = [],
        removed: @escaping @Sendable (RemovedContent) -> Void = { _ in },
        rebuilt: @escaping @Sendable (RecoveryReport.Index, String) -> Void = { _, _ in },
        unrecorded: @escaping @Sendable (_ pipeline: String, CacheError) -> Void = { _, _ in },
        changes: HalfFinishedChanges = HalfFinishedChanges(), helpers: StartHelpers = .none,
        memoriesKey: String? = nil
    ) throws(CacheError) -> (cache: LocalCache, report: RecoveryReport) {
        do throws(CacheError) {
            return try open(
                cacheDirectory: cacheDirectory, stateDirectory: stateDirectory, reserve: reserve, limit: limit,
                verifiesAll: verifiesAll, directories: directories, fileSystem: LinuxFileSystem(), removed: removed,
                rebuilt: rebuilt, unrecorded: unrecorded, changes: changes, helpers: helpers,
                memoriesKey: memoriesKey)
        } catch {
            throw error.namingFullDisk(stateDirectory: stateDirectory, LinuxFileSystem())
        }
    }

    /// The same with another file system, which gets all calls except those of the lock and of the index.
    static func open(
        cacheDirectory: String, stateDirectory: String, reserve: FreeSpaceReserve, limit: Int64? = nil,
        verifiesAll: Bool, directories: [String] = [], fileSystem: any FileSystem,
        waitForSpace: @escaping @Sendable (_ attempt: Int) -> Bool = CacheSpace.wait,
        removed: @escaping @Sendable (RemovedContent) -> Void = { _ in },
        rebuilt: @escaping @Sendable (RecoveryReport.Index, String) -> Void = { _, _ in },
        unrecorded: @escaping @Sendable (_ pipeline: String, CacheError) -> Void = { _, _ in },
        changes: HalfFinishedChanges = HalfFinishedChanges(), helpers: StartHelpers = .none,
        memoriesKey: String? = nil
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
        let context = CacheContext(
            layout: layout, fileSystem: fileSystem, quota: CacheQuota(limit: limit, reserve: reserve),
            index: SharedIndex(opened.index, layout: layout, onRebuild: rebuilt, onLoss: unrecorded), lock: lock,
            changes: changes)
        let cache = LocalCache(context, waitForSpace: waitForSpace, onRemoval: removed)
        var memories: IndexedMemories?
        var (report, compared) = try cache.start.recover(state, repairs, verifiesAll: verifiesAll, with: helpers) {
            // With an error, they are read later.
            memories = memoriesKey.flatMap { try? cache.records.indexedMemories(key: $0, among: nil) }
        }
        report.strays = strays
        if let memoriesKey { cache.setCompared(compared, memories, key: memoriesKey) }
        try context.measure()
        try cache.space.applyLimit()
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
        do throws(CacheError) {
            return try openToExamine(layout, fileSystem, repairs: repairs)
        } catch {
            throw error.namingFullDisk(stateDirectory: stateDirectory, fileSystem)
        }
    }

    private static func openToExamine(
        _ layout: CacheLayout, _ fileSystem: LinuxFileSystem, repairs: Bool
    ) throws(CacheError) -> (cache: LocalCache?, examination: CacheExamination) {
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
        let error = try CacheChecker.error(ofIndex: layout.index)
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
            CacheContext(
                layout: layout, fileSystem: fileSystem, quota: CacheQuota(reserve: .none),
                index: SharedIndex(opened.index, layout: layout), lock: lock))
        // Without the old index, only the files show what content there is.
        if error != nil { _ = try cache.start.recover(state, repairs, verifiesAll: true) }
        return (cache, examination)
    }
}
