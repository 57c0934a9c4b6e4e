import CSQLite

extension SQLiteDatabase {
    /// Begins IMMEDIATE: a transaction that reads first and writes later could fail at its first write with
    /// `SQLITE_BUSY` without the busy timeout having been heeded.
    mutating func begin() throws(SQLiteError) { try run("BEGIN IMMEDIATE") }

    mutating func commit() throws(SQLiteError) { try run("COMMIT") }

    /// Undoes what is open. After a full disk or an I/O error SQLite may have rolled back by itself; then there is
    /// nothing to undo. If this fails too, the connection's next `begin` says so.
    mutating func rollBack() {
        if isInTransaction { try? run("ROLLBACK") }
    }
}

extension SQLiteError {
    /// The file is no database, or a damaged one, or the disk does not give it back: nothing that another try could repair.
    var isDamage: Bool {
        [SQLITE_CORRUPT, SQLITE_NOTADB, SQLITE_FORMAT].contains(primaryCode) || Self.unreadable.contains(code)
    }

    /// SQLITE_IOERR_READ, SQLITE_IOERR_SHORT_READ and SQLITE_IOERR_CORRUPTFS, which are macros of casts.
    private static let unreadable = [1, 2, 33].map { SQLITE_IOERR | $0 << 8 }

    /// No room for the index.
    var isFull: Bool { primaryCode == SQLITE_FULL }
}

extension SQLiteError {
    /// Damage that we found, not SQLite.
    static func damage(_ message: String, during: String) -> SQLiteError {
        SQLiteError(code: SQLITE_CORRUPT, message: message, during: during)
    }
}
