import FreshetModel
import Synchronization

/// The parts of one cache that all its collaborators share: paths, system calls, index, temporary names, locks.
///
/// Threads: every method may be called from any thread, and blocks. These locks exist, and are taken in this order:
///
/// 1. The lock of a pipeline (``PipelineEntry``) serializes commits, checks and repairs of one pipeline. A method with
///    a parameter `inout PipelineEntry.State` runs while its caller holds this lock.
/// 2. The lock of ``CacheSpace`` is held while space is freed. With it, locks of further pipelines are only tried,
///    never waited for.
/// 3. The lock of ``SharedIndex`` protects the connection to the index for the accesses and transactions of one group of
///    callers, which one of them runs for all. No lock of a pipeline is taken with it.
///
/// The lock of a pipeline's ``CheckedCopy`` may be taken with each of these; with it only ``DeferredRecords`` is called.
/// The locks of ``TemporaryNames``, ``LeftoverFiles``, of the table of pipelines and of the quota protect single
/// values; nothing else is called with them. The three ``SharedFlush``es have no lock while they flush.
final class CacheContext: Sendable {
    let layout: CacheLayout
    let fileSystem: any FileSystem
    let index: SharedIndex
    let names = TemporaryNames()
    /// The limits of disk space: see ``CacheSpace/setQuota(_:)``.
    let quota: Mutex<CacheQuota>
    /// Concurrent commits share the flush of the directory `current/`.
    let currentFlush = SharedFlush()
    /// The same for the directory `generations/`, in which each new pipeline gets a directory.
    let generationsFlush = SharedFlush()
    private let handlers: PipelineEntry.Handlers
    private let pipelines = Mutex<[String: PipelineEntry]>([:])
    /// The lock of the state directory is held as long as this object lives.
    private let lock: StateLock

    init(
        layout: CacheLayout, fileSystem: any FileSystem, quota: CacheQuota, index: SharedIndex,
        lock: consuming StateLock, changes: HalfFinishedChanges = HalfFinishedChanges()
    ) {
        handlers = PipelineEntry.Handlers(changes)
        self.layout = layout
        self.fileSystem = fileSystem
        self.quota = Mutex(quota)
        self.index = index
        self.lock = lock
    }

    // MARK: Pipelines

    func entry(_ pipeline: String) -> PipelineEntry {
        pipelines.withLock { entries in
            if let known = entries[pipeline] { return known }
            let made = PipelineEntry(pipeline, handlers)
            entries[pipeline] = made
            return made
        }
    }

    /// The entry of a pipeline that was used already.
    func knownEntry(_ pipeline: String) -> PipelineEntry? { pipelines.withLock { $0[pipeline] } }

    /// Whether the index may be older than the files: see ``PipelineEntry/State/isSuspect``.
    func isSuspect(_ pipeline: String) -> Bool {
        let epoch = index.epoch
        return knownEntry(pipeline)?.holding { $0.isSuspect || $0.epoch != epoch } ?? (epoch > 0)
    }

    // MARK: Index

    func withIndex<Value: Sendable>(
        _ body: (borrowing CacheIndex) throws(SQLiteError) -> Value
    ) throws(CacheError) -> Value {
        try index.access(body)
    }

    /// Reads only what no deferred record changes: content, and which content is current.
    func reading<Value: Sendable>(
        _ body: (borrowing CacheIndex) throws(SQLiteError) -> Value
    ) throws(CacheError) -> Value {
        try index.access(storesDeferred: false, body)
    }

    func transaction<Value: Sendable>(
        isDurable: Bool = false, _ body: (borrowing CacheIndex) throws(SQLiteError) -> Value
    ) throws(CacheError) -> Value {
        try index.transaction(isDurable: isDurable, body)
    }

    /// A transaction that adds or deletes content. The size of all content is updated only after the commit.
    ///
    /// - Parameter token: the token of a candidate whose bytes the index counts from then on.
    func contentTransaction<Value: Sendable>(
        isDurable: Bool = false, of token: UInt64? = nil, _ body: (borrowing CacheIndex) throws(SQLiteError) -> Value
    ) throws(CacheError) -> Value {
        try index.transaction(isDurable: isDurable, changesContent: true, body) {
            if let token { names.setSize(token, 0) }
        }
    }

    /// A durable transaction for operations that many callers make at the same time: they share the flush, and callers
    /// that only read the index do not wait for it. If the flush fails, the transaction is committed, but a power cut
    /// may still undo it.
    func sharedDurableTransaction<Value: Sendable>(
        _ body: (borrowing CacheIndex) throws(SQLiteError) -> Value
    ) throws(CacheError) -> Value {
        let failures = index.flush.failures
        let value = try transaction(body)
        try onFiles { (_) throws(SystemCallError) in try index.flushLog(since: failures) }
        return value
    }

    /// Updates the size of all content from the index.
    func measure() throws(CacheError) {
        try withIndex { (index) throws(SQLiteError) in try self.index.measure(index) }
    }

    // MARK: Files

    /// Converts errors of system calls: see ``cacheError(_:)``.
    func onFiles<Value>(
        _ body: (any FileSystem) throws(SystemCallError) -> Value
    ) throws(CacheError) -> Value {
        do throws(SystemCallError) {
            return try body(fileSystem)
        } catch {
            throw cacheError(error)
        }
    }

    /// Adds what the file system knows about the cause: missing space, inodes or quota, and removed files.
    func cacheError(_ error: SystemCallError) -> CacheError {
        // The rest is about the cache directory only.
        guard error.path == layout.cacheDirectory || error.path.hasPrefix(layout.cacheDirectory + "/") else {
            return .fileSystem(error)
        }
        if error.isOverQuota { return .quotaUsed(path: error.path) }
        if error.isMissing { return .removed(error, isDirectory: isDirectoryMissing(of: error.path)) }
        guard error.isFull else { return .fileSystem(error) }
        let space = try? fileSystem.space(layout.cacheDirectory)
        if space?.hasInodes == false, error.call != "write" { return .noInodes(path: error.path) }
        let reserve = quota.withLock(\.reserve)
        return .noSpace(
            path: error.path, available: space?.available ?? 0, reserve: space.map { reserve.bytes(of: $0.total) } ?? 0)
    }

    private func isDirectoryMissing(of path: String) -> Bool {
        guard path != layout.cacheDirectory, let slash = path.lastIndex(of: "/") else { return true }
        return (try? fileSystem.status(String(path[..<slash]))) == .some(nil)
    }
}
