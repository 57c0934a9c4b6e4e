import Glibc
import Synchronization

/// Prepares the file of the index before SQLite opens it. The file is in the state directory, which does not vanish.
extension LocalCache {
    /// Makes the file if it is missing, and sets its mode: the files that SQLite makes next to it get the same mode.
    /// Returns the size in bytes.
    static func prepareIndexFile(_ layout: CacheLayout) throws(CacheError) -> Int64 {
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

extension LocalCache {
    /// Replaces an index that was found damaged during use. The rows of each pipeline are made from its files when the
    /// pipeline is used next.
    ///
    /// - Returns: where the damaged index is now; nil: it stays, because new indexes were damaged too, or because there
    ///   is no space.
    func replace(_ index: inout CacheIndex, because error: SQLiteError) -> RecoveryReport.Index? {
        guard indexEpoch.load(ordering: .relaxed) < CacheLimits.damagedIndexes else { return nil }
        // The old index is closed first: SQLite removes the log of a database that it closes, by its name.
        guard let placeholder = try? CacheIndex(path: ":memory:", checksPages: false) else { return nil }
        index = placeholder
        indexEpoch.add(1, ordering: .acquiringAndReleasing)
        // If no other index can be made, the index in memory is used until the daemon ends, and the next start makes a
        // new one.
        guard let state = try? OpenedIndex.moveAside(layout, reason: error.message) else { return nil }
        if (try? Self.prepareIndexFile(layout)) != nil,
            let made = try? CacheIndex(path: layout.index, checksPages: false)
        {
            index = made
        }
        return state
    }
}

extension CacheIndex {
    /// Reads the rows that the start needs. Returns the error if the index is damaged.
    mutating func firstDamage() -> SQLiteError? {
        do throws(SQLiteError) {
            for pipeline in try pipelines() { _ = try generations(of: pipeline.id) }
            return nil
        } catch {
            return error.isDamage ? error : nil
        }
    }
}
