import Glibc
import Synchronization

/// The index for concurrent callers: one access or transaction at a time. Transactions that wait for the same turn become
/// one transaction of SQLite, so many concurrent commits cost few writes of the log. If the index is found damaged
/// during use, it is replaced.
///
/// A closure that uses the index runs on the calling thread, or on the thread of another caller while this one waits.
/// It may run again if its transaction was rolled back.
///
/// Safe to call from any thread; blocks the calling thread.
final class SharedIndex: Sendable {
    private let layout: CacheLayout
    let connection: Mutex<CacheIndex>
    /// Threads wait here, and never for the lock of the connection.
    private let calls = CallGroups<IndexCall>()
    /// Concurrent durable transactions share the flush of the log.
    let flush = SharedFlush()
    /// Stores the deferred records with the transactions.
    let writer = DeferredRecordWriter()
    private let replacements = Atomic<Int>(0)
    private let contentSize = Atomic<Int64>(0)
    /// Called after the index was replaced, with its path.
    private let onRebuild: @Sendable (RecoveryReport.Index, String) -> Void
    /// Until when callers wait for another process at the end; nil: the end has not begun.
    private let lastWait = Mutex<ContinuousClock.Instant?>(nil)
    /// The changes that failed since then because of another process.
    private let failedAtEnd = Atomic<Int>(0)
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

    /// Records that the next access stores.
    var deferred: DeferredRecords { writer.records }

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
        try perform(.access(storesDeferred: storesDeferred), body) {}
    }

    /// Runs `body` as one transaction, or as a part of one with the bodies of other callers. The transaction also stores
    /// the deferred records. If `body` throws, they are stored nevertheless, and so is what other callers change.
    ///
    /// - Parameters:
    ///   - isDurable: the transaction must survive a power cut too. Then all that is part of it does.
    ///   - changesContent: whether ``contentBytes`` has to be updated after the commit.
    ///   - then: called after the commit, before ``contentBytes`` is updated.
    func transaction<Value: Sendable>(
        isDurable: Bool = false, changesContent: Bool = false,
        _ body: (borrowing CacheIndex) throws(SQLiteError) -> Value, then: () -> Void = {}
    ) throws(CacheError) -> Value {
        try perform(.transaction(isDurable: isDurable, changesContent: changesContent), body, then: then)
    }

    /// The number of callers that wait for their turn.
    var waiting: Int { calls.waiting }

    private func perform<Value: Sendable>(
        _ kind: IndexCall.Kind, _ body: (borrowing CacheIndex) throws(SQLiteError) -> Value, then: () -> Void
    ) throws(CacheError) -> Value {
        let call = IndexCall(kind)
        var value: Value?
        withoutActuallyEscaping(body) { body in
            withoutActuallyEscaping(then) { then in
                call.prepare({ (index) throws(SQLiteError) in value = try body(index) }, then: then)
                calls.perform(call, run)
            }
        }
        if let lost = call.lost { onLoss(lost.pipeline, lost.error) }
        if let replaced = call.replaced { onRebuild(replaced, layout.index) }
        if let error = call.error { throw .index(error) }
        guard let value else { throw .index(.damage("a call without a result", during: "a transaction")) }
        return value
    }

    // MARK: Groups

    /// Runs the calls of a group. If several of them are transactions, these are one transaction of SQLite; if it fails,
    /// it is rolled back, and each is run alone, so that the error of one is not that of the others. If a flush has failed,
    /// only those that need no flush are run again.
    private func run(_ group: [IndexCall]) {
        connection.withLock { index in
            limitWait(in: index)
            let transactions = group.filter(\.isTransaction)
            if transactions.count > 1 { runTogether(transactions, in: index) }
            for call in group where !call.isDone { runAlone(call, in: &index) }
        }
    }

    private func runTogether(_ transactions: [IndexCall], in index: borrowing CacheIndex) {
        var (lost, isBodyReached): (IndexCall.Loss?, Bool) = (nil, false)
        defer { transactions.first?.lost = lost }
        do throws(SQLiteError) {
            try writer.transaction(isDurable: transactions.contains(where: \.isDurable), in: index, &lost) {
                (index) throws(SQLiteError) in
                isBodyReached = true
                for call in transactions { try call.body(index) }
            }
            end(transactions, in: index)
        } catch {
            // Another process has locked the index, and all have waited for it. Each alone would wait again, one after
            // another.
            let isLocked = error.isBusy && !isBodyReached
            // The kernel reports a failed write only once (fsync(2)): the next flush would succeed, although an earlier
            // part of the log is perhaps not on the disk.
            for call in transactions where isLocked || (error.isFailedFlush && call.isDurable) { fail(call, error) }
        }
    }

    private func runAlone(_ call: IndexCall, in index: inout CacheIndex) {
        limitWait(in: index)
        do throws(SQLiteError) {
            switch call.kind {
            case .access(let storesDeferred):
                if storesDeferred, !writer.isBlocked {
                    call.lost = writer.store(deferred.take(), in: index).lost ?? call.lost
                }
                try writer.withSpace(in: index, call.body)
                call.end()
            case .transaction(let isDurable, _):
                var lost = call.lost
                defer { call.lost = lost }
                try writer.transaction(isDurable: isDurable, in: index, &lost, call.body)
                end([call], in: index)
            }
        } catch {
            // The group still has the index: the calls after this one use the new index.
            if error.isDamage { call.replaced = replace(&index, because: error) }
            fail(call, error)
        }
    }

    /// The transaction of these calls is committed.
    private func end(_ transactions: [IndexCall], in index: borrowing CacheIndex) {
        for call in transactions { call.end() }
        // The transaction is committed even if this fails; the next one updates the size too.
        if transactions.contains(where: \.changesContent) { try? measure(index) }
    }

    private func fail(_ call: IndexCall, _ error: SQLiteError) {
        if error.isBusy, isEnding { failedAtEnd.add(1, ordering: .relaxed) }
        call.fail(error)
    }

    // MARK: The end, and damage

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
        let lost = try? access(storesDeferred: false) { (index) throws(SQLiteError) -> IndexCall.Loss? in
            let stored = writer.store(deferred.take(), in: index)
            let left = deferred.take()
            let count = left.count + max(0, failedAtEnd.exchange(0, ordering: .relaxed))
            if count == 0 {
                try? index.checkpoint()
                return stored.lost
            }
            let error = stored.obstacle ?? .busy(during: "the last records")
            return IndexCall.Loss(pipeline: left.pipeline, error: .recordsLost(count, error))
        }
        if let lost = lost ?? nil { onLoss(lost.pipeline, lost.error) }
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
