import CSQLite
import Glibc

/// The index that a start uses: the existing one or, if that cannot be used, a new one.
struct OpenedIndex: ~Copyable {
    var index: CacheIndex
    var state: RecoveryReport.Index
    /// Values of the index that were out of range.
    let repairs: [IndexRepair]
    /// Objects in the place of files of the index, which were moved aside; without the index itself.
    var strays: [StateStray] = []

    /// Opens the index. A damaged index, or the database of another program, is moved aside, whatever is wrong with it:
    /// the files have the content.
    static func open(_ layout: CacheLayout) throws(CacheError) -> OpenedIndex {
        var (strays, damaged): ([StateStray], RecoveryReport.Index?) = ([], nil)
        for path in layout.damagedIndexFiles + layout.indexFiles {
            guard let stray = try StateStray.moveAside(path, unless: .file) else { continue }
            if path == layout.index {
                damaged = .rebuilt(movedTo: stray.movedTo, reason: "it is \(stray.kind)")
            } else {
                strays.append(stray)
            }
        }
        // A remaining log does not belong to the new index.
        if case .rebuilt(let aside, _)? = damaged {
            for suffix in ["-wal", "-shm", "-journal"] where rename(layout.index + suffix, aside + suffix) != 0 {
                guard errno == ENOENT else {
                    throw .fileSystem(SystemCallError(call: "rename", path: layout.index + suffix, errno: errno))
                }
            }
        }
        var opened = try openFile(layout)
        if let damaged { opened.state = damaged }
        opened.strays = strays
        return opened
    }

    private static func openFile(_ layout: CacheLayout) throws(CacheError) -> OpenedIndex {
        let size = try SharedIndex.prepareFile(layout)
        let reason: String
        do throws(CacheIndex.OpenFailure) {
            let checksPages = size <= CacheLimits.indexCheckBytes
            let index = try CacheIndex(path: layout.index, checksPages: checksPages)
            // Otherwise at least the rows that the start needs must be readable.
            if !checksPages, let damage = index.firstDamage() { throw .sqlite(damage) }
            // SQLite takes an incomplete first page for an empty database. An interrupted start leaves a complete first
            // page.
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
        let state = try moveAside(layout, reason: reason)
        _ = try SharedIndex.prepareFile(layout)
        do throws(CacheIndex.OpenFailure) {
            return OpenedIndex(
                index: try CacheIndex(path: layout.index, checksPages: false), state: state, repairs: [])
        } catch {
            if case .sqlite(let error) = error { throw .index(error) }
            throw .index(.damage("the new index is not empty", during: "open"))
        }
    }

    /// Moves a damaged index aside, with its log and journal. The newest few damaged indexes are kept: if the disk
    /// keeps damaging the index, the first damaged one, which has the most data, is not lost immediately.
    static func moveAside(_ layout: CacheLayout, reason: String) throws(CacheError) -> RecoveryReport.Index {
        for number in (1..<CacheLimits.damagedIndexes).reversed() {
            // The oldest is replaced.
            move(layout.damagedIndex(number - 1), to: layout.damagedIndex(number))
        }
        for suffix in ["-wal", "-shm", "-journal", ""] {
            let (path, aside) = (layout.index + suffix, layout.damagedIndex(0) + suffix)
            if rename(path, aside) != 0, errno != ENOENT {
                throw .fileSystem(SystemCallError(call: "rename", path: aside, errno: errno))
            }
        }
        return .rebuilt(movedTo: layout.damagedIndex(0), reason: reason)
    }

    private static func move(_ path: String, to newPath: String) {
        for suffix in ["-wal", "-shm", "-journal", ""] where rename(path + suffix, newPath + suffix) != 0 {
            // An index without a log must not inherit the log of the previous one.
            if errno == ENOENT { unlink(newPath + suffix) }
        }
    }
}

extension SQLiteError {
    /// Whether the file cannot be used as the index, however often this is tried. False if there is no space or no free
    /// descriptor, or if another process has a lock on it.
    ///
    /// At the start, a plain error means that a statement failed because its tables are not as they should be. The file
    /// is writable (it was opened for writing), so SQLite calls it read-only only if its header says so.
    var isUnusable: Bool {
        switch primaryCode {
        case SQLITE_ERROR, SQLITE_SCHEMA, SQLITE_CONSTRAINT, SQLITE_MISMATCH, SQLITE_TOOBIG, SQLITE_RANGE: true
        case SQLITE_READONLY: code == SQLITE_READONLY
        default: isDamage
        }
    }
}

extension CacheIndex {
    /// Reads the rows that the start needs. Returns the error if the index is damaged.
    fileprivate func firstDamage() -> SQLiteError? {
        do throws(SQLiteError) {
            for pipeline in try pipelines.all() { _ = try generations.all(of: pipeline.id) }
            return nil
        } catch {
            return error.isDamage ? error : nil
        }
    }
}
