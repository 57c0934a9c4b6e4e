import CSQLite
import Glibc

extension SQLiteDatabase {
    /// Begins a transaction with IMMEDIATE: a deferred transaction that reads first and writes later could fail at its
    /// first write with `SQLITE_BUSY`, regardless of the busy timeout.
    func begin() throws(SQLiteError) { try run("BEGIN IMMEDIATE") }

    func commit() throws(SQLiteError) { try run("COMMIT") }

    /// Rolls the open transaction back. After a full disk or an I/O error SQLite may have rolled back already; then
    /// there is nothing to undo. If the rollback fails, the next `begin` of the connection fails too.
    func rollBack() {
        if isInTransaction { try? run("ROLLBACK") }
    }
}

extension SQLiteError {
    /// The file is not a database, or it is damaged, or the disk cannot read it: another attempt cannot repair that.
    var isDamage: Bool {
        [SQLITE_CORRUPT, SQLITE_NOTADB, SQLITE_FORMAT].contains(primaryCode) || Self.unreadable.contains(code)
    }

    /// SQLITE_IOERR_READ, SQLITE_IOERR_SHORT_READ and SQLITE_IOERR_CORRUPTFS, which are macros of casts.
    private static let unreadable = [1, 2, 33].map { SQLITE_IOERR | $0 << 8 }

    /// Another process has locked the index for longer than the busy timeout.
    var isBusy: Bool { [SQLITE_BUSY, SQLITE_LOCKED].contains(primaryCode) }

    /// The disk has not confirmed a write.
    var isFailedFlush: Bool { Self.failedFlushes.contains(code) }

    /// SQLITE_IOERR_FSYNC and SQLITE_IOERR_DIR_FSYNC, which are macros of casts.
    private static let failedFlushes = [4, 5].map { SQLITE_IOERR | $0 << 8 }

    /// One change causes the error: others may succeed.
    var isOfOneChange: Bool { [SQLITE_CONSTRAINT, SQLITE_MISMATCH, SQLITE_TOOBIG].contains(primaryCode) }

    /// SQLite cannot open or make a file: the index, or a file beside it.
    var cannotOpen: Bool { primaryCode == SQLITE_CANTOPEN }

    /// There is no space for the index, or for the memory that its users share (a file beside it).
    var isFull: Bool {
        if primaryCode == SQLITE_FULL || code == Self.noSharedMemory { return true }
        // SQLite calls a used-up quota, and missing inodes, errors of input and output.
        return [SQLITE_IOERR, SQLITE_CANTOPEN].contains(primaryCode) && [ENOSPC, EDQUOT].contains(systemError)
    }

    /// The file system was made read-only, as the kernel does after an error of the disk.
    var isReadOnly: Bool { primaryCode == SQLITE_IOERR && systemError == EROFS }

    /// Nothing can be written now, but perhaps later.
    var isUnwritable: Bool { isFull || isReadOnly }

    /// SQLITE_IOERR_SHMSIZE, which is a macro of a cast.
    private static let noSharedMemory = SQLITE_IOERR | 19 << 8
}

extension SQLiteError {
    /// Another process has locked the index.
    static func busy(during: String) -> SQLiteError {
        SQLiteError(code: SQLITE_BUSY, message: "database is locked", during: during)
    }

    /// There is no space, but SQLite names another error.
    static func full(_ message: String, during: String) -> SQLiteError {
        SQLiteError(code: SQLITE_FULL, message: message, during: during)
    }

    /// Damage that Freshet found, not SQLite.
    static func damage(_ message: String, during: String) -> SQLiteError {
        SQLiteError(code: SQLITE_CORRUPT, message: message, during: during)
    }
}
