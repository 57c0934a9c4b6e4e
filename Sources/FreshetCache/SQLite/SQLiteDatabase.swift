import CSQLite
import Glibc

/// A value that is bound to a statement.
enum SQLiteValue: Sendable {
    case null
    case integer(Int64)
    case text(String)
    case blob([UInt8])

    init(_ value: Int64?) { self = value.map(SQLiteValue.integer) ?? .null }
    init(_ value: String?) { self = value.map(SQLiteValue.text) ?? .null }
}

/// One connection to one database file, with its prepared statements.
///
/// Each SQL text is prepared once and kept, so SQL texts must be constants; values are always bound. A closure that
/// reads rows must not use the database.
///
/// Not `Sendable`: one caller at a time uses a connection, which is opened with `SQLITE_OPEN_NOMUTEX`, that is in
/// SQLite's "multi-thread" mode. ``CacheIndex`` confines its connection, and may move it between threads.
final class SQLiteDatabase {
    /// Whether SQLite does not count its memory, which nothing reads. Each of its allocations, about 200 in a commit,
    /// would take a lock of the process twice. Only the first call of SQLite can change that; if it is too late, the count
    /// costs its time.
    static let countsNoMemory = freshet_sqlite3_omit_memory_statistics() == SQLITE_OK

    private let connection: OpaquePointer
    private var statements: [StatementText: OpaquePointer] = [:]

    /// Opens or creates the database at `path`.
    ///
    /// - Parameter busyTimeout: milliseconds to wait for a lock that another process holds (an administrator's
    ///   `sqlite3`, a backup).
    init(path: String, busyTimeout: Int32) throws(SQLiteError) {
        _ = Self.countsNoMemory
        var handle: OpaquePointer?
        let flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE
        let code = sqlite3_open_v2(path, &handle, flags, nil)
        guard code == SQLITE_OK, let opened = handle else {
            // SQLite returns a handle even if opening failed: the handle has the message and must be closed.
            let error = Self.error(code, of: handle, during: "open \(path)")
            sqlite3_close_v2(handle)
            throw error
        }
        connection = opened
        sqlite3_busy_timeout(opened, busyTimeout)
    }

    deinit {
        for statement in statements.values { sqlite3_finalize(statement) }
        sqlite3_close_v2(connection)
    }

    /// Sets for how many milliseconds to wait for a lock of another process.
    func setBusyTimeout(_ milliseconds: Int32) { sqlite3_busy_timeout(connection, milliseconds) }

    /// Runs a script without values: schema and pragmas.
    func execute(_ script: String) throws(SQLiteError) {
        let code = sqlite3_exec(connection, script, nil, nil, nil)
        guard code == SQLITE_OK else { throw Self.error(code, of: connection, during: script) }
    }

    /// Runs one statement that returns no rows.
    func run(_ sql: String, _ values: SQLiteValue...) throws(SQLiteError) {
        let statement = try prepared(sql, values)
        defer { sqlite3_reset(statement) }
        var code = sqlite3_step(statement)
        while code == SQLITE_ROW { code = sqlite3_step(statement) }
        guard code == SQLITE_DONE else { throw Self.error(code, of: connection, during: sql) }
    }

    /// Runs one statement and makes a value of each of its rows.
    func rows<Value>(
        _ sql: String, _ values: SQLiteValue..., read: (borrowing SQLiteRow) -> Value
    ) throws(SQLiteError) -> [Value] {
        let statement = try prepared(sql, values)
        defer { sqlite3_reset(statement) }
        var result: [Value] = []
        var code = sqlite3_step(statement)
        while code == SQLITE_ROW {
            result.append(read(SQLiteRow(statement: statement)))
            code = sqlite3_step(statement)
        }
        guard code == SQLITE_DONE else { throw Self.error(code, of: connection, during: sql) }
        return result
    }

    /// Runs one statement and passes its rows to `each`, one by one, until `each` returns false.
    func walk(
        _ sql: String, _ values: SQLiteValue..., each: (borrowing SQLiteRow) -> Bool
    ) throws(SQLiteError) {
        let statement = try prepared(sql, values)
        defer { sqlite3_reset(statement) }
        while true {
            switch sqlite3_step(statement) {
            case SQLITE_ROW: if !each(SQLiteRow(statement: statement)) { return }
            case SQLITE_DONE: return
            case let code: throw Self.error(code, of: connection, during: sql)
            }
        }
    }

    /// Runs one statement that returns at most one row.
    func row<Value>(
        _ sql: String, _ values: SQLiteValue..., read: (borrowing SQLiteRow) -> Value
    ) throws(SQLiteError) -> Value? {
        let statement = try prepared(sql, values)
        defer { sqlite3_reset(statement) }
        switch sqlite3_step(statement) {
        case SQLITE_ROW: return read(SQLiteRow(statement: statement))
        case SQLITE_DONE: return nil
        case let code: throw Self.error(code, of: connection, during: sql)
        }
    }

    /// The rowid of the last insertion.
    var lastInsertedRow: Int64 { sqlite3_last_insert_rowid(connection) }

    /// The number of rows that the last statement inserted, changed or deleted.
    var changedRows: Int64 { Int64(sqlite3_changes(connection)) }

    /// The number of rows that this connection has inserted, changed or deleted.
    var totalChanges: Int64 { Int64(sqlite3_total_changes(connection)) }

    /// How many statements and triggers this connection has begun to run, without scripts.
    var statementRuns: Int64 {
        statements.values.reduce(0) { $0 + Int64(sqlite3_stmt_status($1, SQLITE_STMTSTATUS_RUN, 0)) }
    }

    /// Whether a transaction is open.
    var isInTransaction: Bool { sqlite3_get_autocommit(connection) == 0 }

    /// Whether the file was renamed, removed or replaced since it was opened.
    var hasMoved: Bool { freshet_sqlite3_has_moved(connection) }

    private func prepared(
        _ sql: String, _ values: [SQLiteValue]
    ) throws(SQLiteError) -> OpaquePointer {
        let statement: OpaquePointer
        if let known = statements[StatementText(text: sql)] {
            statement = known
        } else {
            var made: OpaquePointer?
            let code = sqlite3_prepare_v3(connection, sql, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &made, nil)
            guard code == SQLITE_OK, let made else { throw Self.error(code, of: connection, during: sql) }
            statements[StatementText(text: sql)] = made
            statement = made
        }
        for (offset, value) in values.enumerated() {
            let index = Int32(offset + 1)
            let code: Int32
            switch value {
            case .null:
                code = sqlite3_bind_null(statement, index)
            case .integer(let integer):
                code = sqlite3_bind_int64(statement, index, integer)
            case .text(let text):
                code = freshet_sqlite3_bind_text(statement, index, text, Int32(text.utf8.count))
            case .blob(let bytes):
                // An empty array may have no address, and SQLite treats a blob without an address as NULL.
                code =
                    bytes.isEmpty
                    ? sqlite3_bind_zeroblob(statement, index, 0)
                    : freshet_sqlite3_bind_blob(statement, index, bytes, Int32(bytes.count))
            }
            guard code == SQLITE_OK else { throw Self.error(code, of: connection, during: sql) }
        }
        return statement
    }

    private static func error(_ code: Int32, of connection: OpaquePointer?, during: String) -> SQLiteError {
        var text = connection.map { String(cString: sqlite3_errmsg($0)) } ?? String(cString: sqlite3_errstr(code))
        var systemError: Int32 = 0
        if let connection, [SQLITE_IOERR, SQLITE_CANTOPEN].contains(code & 0xff) {
            systemError = sqlite3_system_errno(connection)
            if systemError == 0 { systemError = freshet_sqlite3_file_errno(connection) }
            if systemError != 0 { text += ": \(String(cString: strerror(systemError)))" }
        }
        // The first line identifies a script well enough for a message of one line.
        return SQLiteError(
            code: code, message: text, during: String(during.prefix { $0 != "\n" }), systemError: systemError)
    }
}

/// A constant SQL text as a key. Few texts have the same length, and a text is compared with itself in a few instructions.
/// To hash a whole text takes longer than to run a small statement.
private struct StatementText: Hashable {
    let text: String

    func hash(into hasher: inout Hasher) { hasher.combine(text.utf8.count) }
}

/// The current row of a statement; valid only inside the closure that receives it.
struct SQLiteRow: ~Copyable {
    fileprivate let statement: OpaquePointer

    func integer(_ column: Int32) -> Int64 { sqlite3_column_int64(statement, column) }

    func text(_ column: Int32) -> String {
        guard let start = sqlite3_column_text(statement, column) else { return "" }
        return String(
            decoding: UnsafeBufferPointer(start: start, count: Int(sqlite3_column_bytes(statement, column))),
            as: UTF8.self)
    }

    func blob(_ column: Int32) -> [UInt8] {
        guard let start = sqlite3_column_blob(statement, column) else { return [] }
        return Array(UnsafeRawBufferPointer(start: start, count: Int(sqlite3_column_bytes(statement, column))))
    }

    /// Passes the bytes of a blob, which are valid only inside the closure; no bytes if it is empty or NULL.
    func withBlob<Value>(_ column: Int32, _ read: (UnsafeRawBufferPointer) -> Value) -> Value {
        let start = sqlite3_column_blob(statement, column)
        return read(
            UnsafeRawBufferPointer(start: start, count: start == nil ? 0 : Int(sqlite3_column_bytes(statement, column)))
        )
    }

    /// The type of a value, such as `SQLITE_INTEGER`.
    func type(_ column: Int32) -> Int32 { sqlite3_column_type(statement, column) }

    /// The number of bytes of a text or a blob.
    func byteCount(_ column: Int32) -> Int { Int(sqlite3_column_bytes(statement, column)) }

    /// Passes the bytes of a text, which are valid only inside the closure; no bytes if it is empty or NULL.
    func withText<Value>(_ column: Int32, _ read: (UnsafeBufferPointer<UInt8>) -> Value) -> Value {
        let start = sqlite3_column_text(statement, column)
        return read(UnsafeBufferPointer(start: start, count: start == nil ? 0 : byteCount(column)))
    }

    func optionalInteger(_ column: Int32) -> Int64? { isNull(column) ? nil : integer(column) }
    func optionalText(_ column: Int32) -> String? { isNull(column) ? nil : text(column) }
    func optionalBlob(_ column: Int32) -> [UInt8]? { isNull(column) ? nil : blob(column) }

    private func isNull(_ column: Int32) -> Bool { type(column) == SQLITE_NULL }
}
