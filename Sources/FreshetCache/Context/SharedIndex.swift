import Glibc
import Synchronization

/// The index for concurrent callers: one access or transaction at a time. If the index is found damaged during use, it
/// is replaced.
///
/// Safe to call from any thread; blocks the calling thread.
final class SharedIndex: Sendable {
    private let layout: CacheLayout
    let connection: Mutex<CacheIndex>
    /// Taken before the lock of the connection. So threads wait for this lock, and never for that of the connection.
    private let turn = BlockingLock()
    /// Concurrent durable transactions share the flush of the log.
    let flush = SharedFlush()
    /// Records that the next access stores.
    let deferred = DeferredRecords()
    private let replacements = Atomic<Int>(0)
    private let contentSize = Atomic<Int64>(0)
    /// Called after the index was replaced, with its path.
    private let onRebuild: @Sendable (RecoveryReport.Index, String) -> Void
    /// Until when no reader stores the deferred records first.
    private let blockedUntil = Mutex<ContinuousClock.Instant?>(nil)
    /// Called with a pipeline whose deferred record could not be stored.
    private let onLoss: @Sendable (_ pipeline: String, CacheError) -> Void

    init(
        _ index: consuming CacheIndex, layout: CacheLayout,
        onRebuild: @escaping @Sendable (RecoveryReport.Index, String) -> Void = { _, _ in },
        onLoss: @escaping @Sendable (_ pipeline: String, CacheError) -> Void = { _, _ in }
    ) {
        self.onLoss = onLoss
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

    /// Calls `body` with the index.
    ///
    /// - Parameter storesDeferred: false if `body` reads nothing that a deferred record changes.
    func access<Value: Sendable>(
        storesDeferred: Bool = true, _ body: (borrowing CacheIndex) throws(SQLiteError) -> Value
    ) throws(CacheError) -> Value {
        var lost: Loss?
        defer { report(lost) }
        return try locked { (index) throws(SQLiteError) in
            if storesDeferred, !isBlocked { lost = store(deferred.take(), in: index) }
            return try body(index)
        }
    }

    /// Runs `body` as one transaction, which also stores the deferred records. If `body` throws, they are stored
    /// nevertheless.
    ///
    /// - Parameter then: called with the index after the commit.
    func transaction<Value: Sendable>(
        isDurable: Bool = false, _ body: (borrowing CacheIndex) throws(SQLiteError) -> Value,
        then: (borrowing CacheIndex) -> Void
    ) throws(CacheError) -> Value {
        var lost: Loss?
        defer { report(lost) }
        return try locked { (index) throws(SQLiteError) in
            let value = try transaction(isDurable: isDurable, with: deferred.take(), in: index, &lost, body)
            then(index)
            return value
        }
    }

    private func transaction<Value>(
        isDurable: Bool, with records: [DeferredRecords.Record], in index: borrowing CacheIndex, _ lost: inout Loss?,
        _ body: (borrowing CacheIndex) throws(SQLiteError) -> Value
    ) throws(SQLiteError) -> Value {
        guard !records.isEmpty else { return try index.transaction(isDurable: isDurable, body) }
        var isBodyReached = false
        do throws(SQLiteError) {
            return try index.transaction(isDurable: isDurable) { (index) throws(SQLiteError) in
                try index.store(records)
                isBodyReached = true
                return try body(index)
            }
        } catch {
            // It has waited for the other process already.
            if !isBodyReached, error.isBusy {
                keep(records)
                throw error
            }
            lost = store(records, in: index)
            if isBodyReached { throw error }
        }
        // A record causes the error, not this caller's change.
        return try index.transaction(isDurable: isDurable, body)
    }

    /// A deferred record that could not be stored.
    private struct Loss {
        var pipeline: String
        var error: SQLiteError
    }

    /// Stores deferred records in one transaction. If one of them causes an error, each is stored in its own, so that the
    /// others are not lost. If another process has locked the index, the records go on waiting.
    ///
    /// - Returns: the first one that could not be stored.
    private func store(_ records: [DeferredRecords.Record], in index: borrowing CacheIndex) -> Loss? {
        guard !records.isEmpty else { return nil }
        do throws(SQLiteError) {
            try index.transaction { (index) throws(SQLiteError) in try index.store(records) }
            return nil
        } catch {
            if error.isBusy {
                keep(records)
                return nil
            }
            // All others would fail for the same reason.
            guard error.isOfOneChange else { return Loss(pipeline: records[0].pipeline, error: error) }
        }
        var lost: Loss?
        for (offset, record) in records.enumerated() {
            do throws(SQLiteError) {
                try index.transaction { (index) throws(SQLiteError) in try index.store([record]) }
            } catch {
                if error.isBusy {
                    keep(Array(records[offset...]))
                    return lost
                }
                lost = lost ?? Loss(pipeline: record.pipeline, error: error)
            }
        }
        return lost
    }

    /// Another process has locked the index: the records go on waiting, and readers do not wait again for a moment.
    private func keep(_ records: [DeferredRecords.Record]) {
        deferred.putBack(records)
        blockedUntil.withLock { $0 = .now + .milliseconds(Int(CacheLimits.indexBusyMilliseconds)) }
    }

    /// Whether another process had locked the index a moment ago.
    private var isBlocked: Bool { blockedUntil.withLock { $0.map { $0 > .now } ?? false } }

    private func report(_ lost: Loss?) {
        if let lost { onLoss(lost.pipeline, .index(lost.error)) }
    }

    private func locked<Value: Sendable>(
        _ body: (borrowing CacheIndex) throws(SQLiteError) -> Value
    ) throws(CacheError) -> Value {
        var replaced: RecoveryReport.Index?
        defer { if let replaced { onRebuild(replaced, layout.index) } }
        do throws(SQLiteError) {
            return try turn.withLock { () throws(SQLiteError) in
                try connection.withLock { (index) throws(SQLiteError) in
                    do throws(SQLiteError) {
                        return try body(index)
                    } catch {
                        // The lock is still held: if two callers find damage, the second one uses the new index.
                        if error.isDamage { replaced = replace(&index, because: error) }
                        throw error
                    }
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

    /// Stores the deferred records, and writes the log to the index's file. A failure of the latter only costs the time
    /// that the end of the process takes then.
    func checkpoint() {
        let lost = turn.withLock {
            connection.withLock { index in
                let lost = store(deferred.take(), in: index)
                guard let left = deferred.take().first else {
                    try? index.checkpoint()
                    return lost
                }
                let error = SQLiteError(
                    code: SQLiteError.busy, message: "database is locked", during: "the last records")
                return lost ?? Loss(pipeline: left.pipeline, error: error)
            }
        }
        report(lost)
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
