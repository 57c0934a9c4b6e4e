import Glibc
import Synchronization

extension LocalCache {
    /// A durable transaction for operations that many callers make at the same time: they share the flush, and callers
    /// that only read the index do not wait for it. If the flush fails, the transaction is committed, but a power cut
    /// may still undo it.
    func sharedDurableTransaction<Value: Sendable>(
        _ body: (inout CacheIndex) throws(SQLiteError) -> Value
    ) throws(CacheError) -> Value {
        let failures = indexFlush.failures
        let value = try transaction(body)
        try flushLog(since: failures)
        return value
    }

    /// Flushes the log, so that all transactions so far survive a power cut.
    ///
    /// Each transaction has written its pages to the end of the log before the lock of the index was released, and
    /// SQLite flushes the log before a checkpoint (`synchronous=NORMAL`). So one flush of the log is equivalent to
    /// those of `synchronous=FULL`.
    ///
    /// - Parameter failures: the count of failed flushes before the transaction.
    func flushLog(since failures: Int) throws(CacheError) {
        let path = layout.index + "-wal"
        do throws(SystemCallError) {
            try indexFlush.perform(since: failures) { () throws(SystemCallError) in
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
        } catch {
            throw cacheError(error)
        }
    }

    /// Writes the log of the index to its file, so that the release of this object does not wait for the disk. Call it
    /// at the end, on a worker; a failure only costs that time.
    package func flush() {
        index.withLock { index in
            try? index.database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        }
    }
}
