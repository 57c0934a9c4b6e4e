import Glibc
import Synchronization

extension LocalCache {
    /// Like a durable transaction, for what many do at once: they wait for the disk together, and nobody who only wants to
    /// read the index waits with them. If the flush fails, the index has it all the same, until the power is cut.
    func sharedDurableTransaction<Value: Sendable>(
        _ body: (inout CacheIndex) throws(SQLiteError) -> Value
    ) throws(CacheError) -> Value {
        let failures = indexFlush.failures
        let value = try transaction(body)
        try flushLog(since: failures)
        return value
    }

    /// What transactions have written so far outlasts a power cut.
    ///
    /// Each of them has written its pages to the end of the log before the index was free again, and SQLite flushes the log
    /// itself before it takes them over from there (`synchronous=NORMAL`): so one flush of the log is as good as those of
    /// `synchronous=FULL`.
    ///
    /// - Parameter failures: the count of failed flushes before the transaction.
    func flushLog(since failures: Int) throws(CacheError) {
        let path = layout.index + "-wal"
        do throws(SystemCallError) {
            try indexFlush.perform(since: failures) { () throws(SystemCallError) in
                let descriptor = Glibc.open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
                guard descriptor >= 0 else {
                    // Where SQLite can keep no log, each transaction flushes the file itself.
                    if errno == ENOENT { return }
                    throw SystemCallError(call: "open", path: path, errno: errno)
                }
                // SQLite's locks are on its other files: closing a descriptor of this one drops none.
                defer { close(descriptor) }
                while fsync(descriptor) != 0 {
                    if errno != EINTR { throw SystemCallError(call: "fsync", path: path, errno: errno) }
                }
            }
        } catch {
            throw refusal(error)
        }
    }

    /// Writes what the index holds in its log to its file, so that the last one to let go of this object, wherever that
    /// is, waits for no disk. To be called at the end, on a worker; a failure costs nothing but that time.
    package func flush() {
        index.withLock { index in
            try? index.database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        }
    }
}
