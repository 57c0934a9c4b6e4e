import Synchronization

extension LocalCache {
    /// Writes what the index holds in its log to its file, so that the last one to let go of this object, wherever that
    /// is, waits for no disk. To be called at the end, on a worker; a failure costs nothing but that time.
    package func flush() {
        index.withLock { index in
            try? index.database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        }
    }
}
