import Glibc

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

    /// Moves a damaged index out of the way, with what belongs to it. An earlier one is replaced: one is enough.
    static func setAside(_ layout: CacheLayout, reason: String) throws(CacheError) -> RecoveryReport.Index {
        for suffix in ["-wal", "-shm", ""] {
            if rename(layout.index + suffix, layout.damagedIndex + suffix) != 0, errno != ENOENT {
                throw .fileSystem(SystemCallError(call: "rename", path: layout.damagedIndex + suffix, errno: errno))
            }
        }
        return .rebuilt(movedTo: layout.damagedIndex, reason: reason)
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
