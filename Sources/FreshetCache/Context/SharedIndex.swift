import Glibc
import Synchronization

/// The index for concurrent callers: one access or transaction at a time. If the index is found damaged during use, it
/// is replaced.
///
/// Safe to call from any thread; blocks the calling thread.
final class SharedIndex: Sendable {
    private let layout: CacheLayout
    let connection: Mutex<CacheIndex>
    /// Concurrent durable transactions share the flush of the log.
    let flush = SharedFlush()
    private let replacements = Atomic<Int>(0)
    private let contentSize = Atomic<Int64>(0)
    /// Called after the index was replaced, with its path.
    private let onRebuild: @Sendable (RecoveryReport.Index, String) -> Void

    init(
        _ index: consuming CacheIndex, layout: CacheLayout,
        onRebuild: @escaping @Sendable (RecoveryReport.Index, String) -> Void = { _, _ in }
    ) {
        self.layout = layout
        connection = Mutex(index)
        self.onRebuild = onRebuild
    }

    /// The number of times that a damaged index was replaced since the start. The rows of a pipeline are valid only
    /// after they were compared with its files.
    var epoch: Int { replacements.load(ordering: .acquiring) }

    /// The bytes of all content in the index, as of its last change.
    var contentBytes: Int64 { contentSize.load(ordering: .relaxed) }

    /// Updates ``contentBytes``.
    func measure(_ index: borrowing CacheIndex) throws(SQLiteError) {
        contentSize.store(try index.usage.bytes(), ordering: .relaxed)
    }

    func access<Value: Sendable>(
        _ body: (borrowing CacheIndex) throws(SQLiteError) -> Value
    ) throws(CacheError) -> Value {
        var replaced: RecoveryReport.Index?
        defer { if let replaced { onRebuild(replaced, layout.index) } }
        do throws(SQLiteError) {
            return try connection.withLock { (index) throws(SQLiteError) in
                do throws(SQLiteError) {
                    return try body(index)
                } catch {
                    // The lock is still held: if two callers find damage, the second one uses the new index.
                    if error.isDamage { replaced = replace(&index, because: error) }
                    throw error
                }
            }
        } catch {
            throw .index(error)
        }
    }

    /// Flushes the log, so that all transactions so far survive a power cut.
    ///
    /// Each transaction has written its pages to the end of the log before the lock of the index was released, and
    /// SQLite flushes the log before a checkpoint (`synchronous=NORMAL`). So one flush of the log is equivalent to
    /// those of `synchronous=FULL`.
    ///
    /// - Parameter failures: the count of failed flushes before the transaction.
    func flushLog(since failures: Int) throws(SystemCallError) {
        let path = layout.index + "-wal"
        try flush.perform(since: failures) { () throws(SystemCallError) in
            let descriptor = Glibc.open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
            guard descriptor >= 0 else {
                // If SQLite cannot use a log, each transaction flushes the file itself.
                if errno == ENOENT { return }
                throw SystemCallError(call: "open", path: path, errno: errno)
            }
            // SQLite's locks are on its other files: closing a descriptor of the log releases none of them.
            defer { close(descriptor) }
            while fsync(descriptor) != 0 {
                if errno != EINTR { throw SystemCallError(call: "fsync", path: path, errno: errno) }
            }
        }
    }

    /// Writes the log to the index's file. A failure only costs the time that the end of the process takes then.
    func checkpoint() {
        connection.withLock { index in
            try? index.checkpoint()
        }
    }

    /// Replaces an index that was found damaged during use. The rows of each pipeline are made from its files when the
    /// pipeline is used next.
    ///
    /// - Returns: where the damaged index is now; nil: it stays, because new indexes were damaged too, or because there
    ///   is no space.
    private func replace(_ index: inout CacheIndex, because error: SQLiteError) -> RecoveryReport.Index? {
        guard replacements.load(ordering: .relaxed) < CacheLimits.damagedIndexes else { return nil }
        // The old index is closed first: SQLite removes the log of a database that it closes, by its name.
        guard let placeholder = try? CacheIndex(path: ":memory:", checksPages: false) else { return nil }
        index = placeholder
        replacements.add(1, ordering: .acquiringAndReleasing)
        // If no other index can be made, the index in memory is used until the daemon ends, and the next start makes a
        // new one.
        guard let state = try? OpenedIndex.moveAside(layout, reason: error.message) else { return nil }
        if (try? Self.prepareFile(layout)) != nil,
            let made = try? CacheIndex(path: layout.index, checksPages: false)
        {
            index = made
        }
        return state
    }

    /// Prepares the file of the index before SQLite opens it: makes it if it is missing, and sets its mode, which the
    /// files that SQLite makes next to it get too. The file is in the state directory, which does not vanish.
    ///
    /// - Returns: the size in bytes.
    static func prepareFile(_ layout: CacheLayout) throws(CacheError) -> Int64 {
        let descriptor = Glibc.open(layout.index, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0o600)
        guard descriptor >= 0 else {
            throw .fileSystem(SystemCallError(call: "open", path: layout.index, errno: errno))
        }
        defer { close(descriptor) }
        var status = stat()
        guard fchmod(descriptor, 0o600) == 0, fstat(descriptor, &status) == 0 else {
            throw .fileSystem(SystemCallError(call: "fchmod", path: layout.index, errno: errno))
        }
        return Int64(status.st_size)
    }
}
