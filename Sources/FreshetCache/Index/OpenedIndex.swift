import CSQLite
import Glibc

/// The index of a start: the one that was there, or, if that cannot be used, a new one beside it.
struct OpenedIndex: ~Copyable {
    var index: CacheIndex
    let state: RecoveryReport.Index
    /// What of it was out of range.
    let repairs: [IndexRepair]

    /// Opens the index. One that is damaged or another program's is moved aside, whatever is wrong with it: the files have
    /// the content.
    static func open(_ layout: CacheLayout) throws(CacheError) -> OpenedIndex {
        let size = try LocalCache.prepareIndexFile(layout)
        let reason: String
        do throws(CacheIndex.OpenFailure) {
            let checksPages = size <= CacheLimits.indexCheckBytes
            var index = try CacheIndex(path: layout.index, checksPages: checksPages)
            // Else at least what the start needs must be readable.
            if !checksPages, let damage = index.firstDamage() { throw .sqlite(damage) }
            // SQLite takes the beginning of a first page for an empty database. A start that was interrupted leaves a whole one.
            if index.opened == .made, size != 0, size != CacheLimits.indexPageBytes {
                throw .sqlite(.damage("it has only \(size) bytes", during: "open"))
            }
            let state: RecoveryReport.Index =
                switch index.opened {
                case .made: .made
                case .found: .opened
                case .migrated(let from): .migrated(from: from)
                }
            let repairs = index.repairs
            return OpenedIndex(index: index, state: state, repairs: repairs)
        } catch {
            switch error {
            case .newer(let found):
                throw .indexNewer(path: layout.index, found: found, known: CacheIndex.knownVersion)
            case .foreign: reason = "it is another program's database"
            case .sqlite(let error) where error.isUnusable: reason = error.message
            case .sqlite(let error): throw .index(error)
            }
        }
        let state = try setAside(layout, reason: reason)
        _ = try LocalCache.prepareIndexFile(layout)
        do throws(CacheIndex.OpenFailure) {
            return OpenedIndex(
                index: try CacheIndex(path: layout.index, checksPages: false), state: state, repairs: [])
        } catch {
            if case .sqlite(let error) = error { throw .index(error) }
            throw .index(.damage("the new index is not empty", during: "open"))
        }
    }

    /// Moves a damaged index out of the way, with what belongs to it. Of earlier ones the newest few stay: a disk that goes
    /// on damaging it does not take the first one, which has the most.
    static func setAside(_ layout: CacheLayout, reason: String) throws(CacheError) -> RecoveryReport.Index {
        for number in (1..<CacheLimits.damagedIndexes).reversed() {
            // The oldest is replaced.
            move(layout.damagedIndex(number - 1), to: layout.damagedIndex(number))
        }
        for suffix in ["-wal", "-shm", ""] {
            let (path, aside) = (layout.index + suffix, layout.damagedIndex(0) + suffix)
            if rename(path, aside) != 0, errno != ENOENT {
                throw .fileSystem(SystemCallError(call: "rename", path: aside, errno: errno))
            }
        }
        return .rebuilt(movedTo: layout.damagedIndex(0), reason: reason)
    }

    private static func move(_ path: String, to newPath: String) {
        for suffix in ["-wal", "-shm", ""] where rename(path + suffix, newPath + suffix) != 0 {
            // One that has no log does not inherit that of the one before.
            if errno == ENOENT { unlink(newPath + suffix) }
        }
    }
}

extension SQLiteError {
    /// The file cannot be used as the index, however often that is tried. Not so where there is no room or no descriptor, or
    /// where somebody holds it.
    ///
    /// What fails at the start with a plain error is a statement whose tables are not there as they should be. The file can
    /// be written to (it was opened so), and SQLite calls it read-only if its header says that.
    var isUnusable: Bool {
        switch primaryCode {
        case SQLITE_ERROR, SQLITE_SCHEMA, SQLITE_CONSTRAINT, SQLITE_MISMATCH, SQLITE_TOOBIG, SQLITE_RANGE: true
        case SQLITE_READONLY: code == SQLITE_READONLY
        default: isDamage
        }
    }
}
