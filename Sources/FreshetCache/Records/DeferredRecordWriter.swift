import Synchronization

/// Stores the deferred records: with the next transaction, or alone. If another process has locked the index, or if there
/// is no space, they go on waiting.
///
/// Callers hold the lock of the index, and pass the index; only ``records``, ``isBlocked`` and ``endBlock()`` may be used
/// without the lock.
final class DeferredRecordWriter: Sendable {
    /// What the next access stores.
    let records = DeferredRecords()
    /// Until when no reader stores the records first.
    private let blockedUntil = Mutex<ContinuousClock.Instant?>(nil)
    /// Whether records wait because there is no space, which was logged.
    private let waits = Atomic<Bool>(false)

    private typealias Loss = IndexCall.Loss

    /// Runs `body` as one transaction, which also stores the deferred records. If `body` throws, they are stored
    /// nevertheless; if one of them causes the error, `body` runs without them.
    ///
    /// - Parameter lost: the first record that could not be stored, or has to wait for space.
    func transaction<Value>(
        isDurable: Bool, in index: borrowing CacheIndex, _ lost: inout IndexCall.Loss?,
        _ body: (borrowing CacheIndex) throws(SQLiteError) -> Value
    ) throws(SQLiteError) -> Value {
        var batch = records.take()
        if batch.records.count > CacheLimits.recordsPerTransaction {
            let stored = store(batch, in: index)
            lost = stored.lost ?? lost
            // It has waited for the other process already.
            if let obstacle = stored.obstacle, obstacle.isBusy { throw obstacle }
            batch = records.takeHooks()
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

    /// Stores what was deferred, a part in each transaction. If one record causes an error, each is stored in its own,
    /// so that the others are not lost. If another process has locked the index, or if there is no space, they go on
    /// waiting.
    ///
    /// - Returns: the first one that could not be stored; and why the rest waits, if it does.
    func store(
        _ batch: DeferredRecords.Batch, in index: borrowing CacheIndex
    ) -> (lost: IndexCall.Loss?, obstacle: SQLiteError?) {
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
        if records.count == 0 { waits.store(false, ordering: .relaxed) }
    }

    /// Another process has locked the index, or there is no space: the records go on waiting, and readers do not try to
    /// store them again for a moment.
    ///
    /// - Returns: what has to be logged: the first record that waits for space.
    private func keep(_ batch: DeferredRecords.Batch, because error: SQLiteError) -> Loss? {
        guard !batch.isEmpty else { return nil }
        records.putBack(batch)
        blockedUntil.withLock { $0 = .now + .milliseconds(Int(CacheLimits.indexBusyMilliseconds)) }
        guard error.isUnwritable else { return nil }
        records.dropOldest()
        return waits.exchange(true, ordering: .relaxed)
            ? nil : Loss(pipeline: batch.pipeline, error: .recordsWait(error))
    }

    /// Calls `body` again if there is no space and the index's log can be written to its file: then the log begins
    /// again, in the space that it has already.
    func withSpace<Value>(
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
}
