import Glibc
import Synchronization

/// The index's file, before SQLite has it. It lies in the state directory, which does not vanish.
extension LocalCache {
    /// Makes the file if it is missing, and sees to its mode: what SQLite makes beside it gets the same. Returns its
    /// size in bytes.
    static func prepareIndexFile(_ layout: CacheLayout) throws(CacheError) -> Int64 {
        let descriptor = Glibc.open(layout.index, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
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
    /// Puts a new index into the place of one that was found damaged while it was used. The rows of each pipeline are made
    /// from its files when it is used next.
    ///
    /// - Returns: what became of the damaged one; nil: it stays, since new ones were damaged as well, or there is no room.
    func replace(_ index: inout CacheIndex, because error: SQLiteError) -> RecoveryReport.Index? {
        guard indexEpoch.load(ordering: .relaxed) < CacheLimits.damagedIndexes else { return nil }
        // The old one is closed first: SQLite removes the log of a database that it closes, by its name.
        guard let placeholder = try? CacheIndex(path: ":memory:", checksPages: false) else { return nil }
        index = placeholder
        indexEpoch.add(1, ordering: .acquiringAndReleasing)
        // If there is no other, the one in memory serves until the daemon ends, and the next start makes one.
        guard let state = try? OpenedIndex.setAside(layout, reason: error.message) else { return nil }
        if (try? Self.prepareIndexFile(layout)) != nil,
            let made = try? CacheIndex(path: layout.index, checksPages: false)
        {
            index = made
        }
        return state
    }
}

extension CacheIndex {
    /// Reads what the start needs; the error if it is damaged.
    mutating func firstDamage() -> SQLiteError? {
        do throws(SQLiteError) {
            for pipeline in try pipelines() { _ = try generations(of: pipeline.id) }
            return nil
        } catch {
            return error.isDamage ? error : nil
        }
    }
}
