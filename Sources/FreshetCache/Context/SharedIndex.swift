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
    /// Until when callers wait for another process at the end; nil: the end has not begun.
    private let lastWait = Mutex<ContinuousClock.Instant?>(nil)
    /// The changes that failed since then because of another process.
    private let failedAtEnd = Atomic<Int>(0)
    /// Whether deferred records wait because there is no space, which was logged.
    private let waits = Atomic<Bool>(false)
    /// Called with a pipeline whose deferred record could not be stored, or has to wait.
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
            if storesDeferred, !isBlocked { lost = store(deferred.take(), in: index).lost }
            return try withSpace(in: index, body)
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
            let value = try transaction(isDurable: isDurable, in: index, &lost, body)
            then(index)
            return value
        }
    }

    private func transaction<Value>(
        isDurable: Bool, in index: borrowing CacheIndex, _ lost: inout Loss?,
        _ body: (borrowing CacheIndex) throws(SQLiteError) -> Value
    ) throws(SQLiteError) -> Value {
        var batch = deferred.take()
        if batch.records.count > CacheLimits.recordsPerTransaction {
            let stored = store(batch, in: index)
            lost = stored.lost
            // It has waited for the other process already.
            if let obstacle = stored.obstacle, obstacle.isBusy { throw obstacle }
            batch = deferred.takeHooks()
        }
        guard !batch.isEmpty else {
            return try withSpace(in: index) { (index) throws(SQLiteError) in
                try index.transaction(isDurable: isDurable, body)
            }
        }
        var isBodyReached = false
        do throws(SQLiteError) {
            let value = try index.transaction(isDurable: isDurable) { (index) throws(SQLiteError) in
                try index.store(batch)
                isBodyReached = true
                return try body(index)
            }
            noteStored()
            return value
        } catch {
            if error.isUnwritable {
                // There is perhaps space without the runs and checks.
                lost = keep(DeferredRecords.Batch(records: batch.records), because: error) ?? lost
                batch.records = []
                index.makeSpace()
                do throws(SQLiteError) {
                    return try index.transaction(isDurable: isDurable) { (index) throws(SQLiteError) in
                        try index.store(batch)
                        return try body(index)
                    }
                } catch {
                    lost = store(batch, in: index).lost ?? lost
                    throw error
                }
            }
            if !isBodyReached, error.isBusy {
                lost = keep(batch, because: error) ?? lost
                throw error
            }
            lost = store(batch, in: index).lost ?? lost
            if isBodyReached { throw error }
        }
        // A record causes the error, not this caller's change.
        return try index.transaction(isDurable: isDurable, body)
    }

    /// A deferred record that could not be stored, or the first of those that have to wait.
    private struct Loss {
        var pipeline: String
        var error: CacheError
    }

    /// Stores what was deferred, a part in each transaction. If one record causes an error, each is stored in its own,
    /// so that the others are not lost. If another process has locked the index, or if there is no space, they go on
    /// waiting.
    ///
    /// - Returns: the first one that could not be stored; and why the rest waits, if it does.
    private func store(
        _ batch: DeferredRecords.Batch, in index: borrowing CacheIndex
    ) -> (lost: Loss?, obstacle: SQLiteError?) {
        var (rest, lost): (DeferredRecords.Batch, Loss?) = (batch, nil)
        while !rest.isEmpty {
            let part = DeferredRecords.Batch(
                records: Array(rest.records.prefix(CacheLimits.recordsPerTransaction)), hooks: rest.hooks)
            do throws(SQLiteError) {
                try withSpace(in: index) { (index) throws(SQLiteError) in
                    try index.transaction { (index) throws(SQLiteError) in try index.store(part) }
                }
            } catch {
                if error.isBusy || error.isUnwritable { return (keep(rest, because: error) ?? lost, error) }
                // All others would fail for the same reason.
                guard error.isOfOneChange else { return (Loss(pipeline: part.pipeline, error: .index(error)), nil) }
                for single in part.singles {
                    do throws(SQLiteError) {
                        try index.transaction { (index) throws(SQLiteError) in try index.store(single) }
                    } catch {
                        if error.isBusy || error.isUnwritable { return (keep(rest, because: error) ?? lost, error) }
                        lost = lost ?? Loss(pipeline: single.pipeline, error: .index(error))
                    }
                    rest.remove(single)
                }
                continue
            }
            rest.records.removeFirst(part.records.count)
            rest.hooks = [:]
        }
        if lost == nil { noteStored() }
        return (lost, nil)
    }

    /// Records were stored. If others still wait for space, that was logged.
    private func noteStored() {
        if deferred.count == 0 { waits.store(false, ordering: .relaxed) }
    }

    /// Another process has locked the index, or there is no space: the records go on waiting, and readers do not try to
    /// store them again for a moment.
    ///
    /// - Returns: what has to be logged: the first record that waits for space.
    private func keep(_ batch: DeferredRecords.Batch, because error: SQLiteError) -> Loss? {
        guard !batch.isEmpty else { return nil }
        deferred.putBack(batch)
        blockedUntil.withLock { $0 = .now + .milliseconds(Int(CacheLimits.indexBusyMilliseconds)) }
        guard error.isUnwritable else { return nil }
        deferred.dropOldest()
        return waits.exchange(true, ordering: .relaxed)
            ? nil : Loss(pipeline: batch.pipeline, error: .recordsWait(error))
    }

    /// Calls `body` again if there is no space and the index's log can be written to its file: then the log begins
    /// again, in the space that it has already.
    private func withSpace<Value>(
        in index: borrowing CacheIndex, _ body: (borrowing CacheIndex) throws(SQLiteError) -> Value
    ) throws(SQLiteError) -> Value {
        do throws(SQLiteError) {
            return try body(index)
        } catch {
            guard error.isFull else { throw error }
            index.makeSpace()
            return try body(index)
        }
    }

    /// Whether another process had locked the index a moment ago.
    var isBlocked: Bool { blockedUntil.withLock { $0.map { $0 > .now } ?? false } }

    /// The next reader stores the deferred records.
    func endBlock() { blockedUntil.withLock { $0 = nil } }

    private func report(_ lost: Loss?) {
        if let lost { onLoss(lost.pipeline, lost.error) }
    }

    /// Whether no other connection can use the index.
    var isExclusive: Bool { CacheIndex.isExclusive(layout.index) }

    /// From now on, callers wait for a lock of another process for this long in sum: the process is about to end.
    func limitWaits(to duration: Duration) {
        lastWait.withLock { if $0 == nil { $0 = .now + duration } }
    }

    /// The change that failed just now is not lost.
    func uncountFailure() {
        if isEnding { failedAtEnd.subtract(1, ordering: .relaxed) }
    }

    /// Whether ``limitWaits(to:)`` was called.
    var isEnding: Bool { lastWait.withLock { $0 != nil } }

    /// Sets how long this access may wait for another process.
    private func limitWait(in index: borrowing CacheIndex) {
        guard let last = lastWait.withLock({ $0 }) else { return }
        index.limitWait(to: max(.zero, last - .now))
    }

    private func locked<Value: Sendable>(
        _ body: (borrowing CacheIndex) throws(SQLiteError) -> Value
    ) throws(CacheError) -> Value {
        var replaced: RecoveryReport.Index?
        defer { if let replaced { onRebuild(replaced, layout.index) } }
        do throws(SQLiteError) {
            return try turn.withLock { () throws(SQLiteError) in
                try connection.withLock { (index) throws(SQLiteError) in
                    limitWait(in: index)
                    do throws(SQLiteError) {
                        return try body(index)
                    } catch {
                        if error.isBusy, isEnding { failedAtEnd.add(1, ordering: .relaxed) }
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
                limitWait(in: index)
                let stored = store(deferred.take(), in: index)
                let left = deferred.take()
                let count = left.count + max(0, failedAtEnd.exchange(0, ordering: .relaxed))
                if count == 0 {
                    try? index.checkpoint()
                    return stored.lost
                }
                let error = stored.obstacle ?? .busy(during: "the last records")
                return Loss(pipeline: left.pipeline, error: .recordsLost(count, error))
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
