/// The SQLite index: what the files cannot say.
///
/// The files are the truth for content: each generation's name carries its digest, and reconciliation at start makes
/// the index agree with them. So WAL with `synchronous=NORMAL` is enough: a transaction costs no fsync, a process that
/// is killed loses nothing, a power cut loses at most the newest transactions and never the database. What a power
/// cut may lose is then a check's time or validators (one unconditional request) - and a `Retry-After`, which an
/// origin asked for and which therefore alone is written with `synchronous=FULL`.
struct CacheIndex: ~Copyable, Sendable {
    var database: SQLiteDatabase

    /// How the index was found.
    enum Opened: Hashable, Sendable {
        case made
        case found
        case migrated(from: Int64)
    }

    enum OpenFailure: Error {
        case newer(found: Int64)
        /// Another program's database.
        case foreign
        case sqlite(SQLiteError)
    }

    let opened: Opened

    /// Opens, checks and if need be migrates the index at `path`.
    ///
    /// - Parameter checksPages: read every page, so that damage shows now and not later.
    init(path: String, checksPages: Bool) throws(OpenFailure) {
        do {
            var database = try SQLiteDatabase(path: path, busyTimeout: CacheLimits.indexBusyMilliseconds)
            try database.execute("PRAGMA trusted_schema = OFF")
            if checksPages {
                let verdict = try database.row("PRAGMA quick_check(1)") { $0.text(0) }
                guard verdict == "ok" else {
                    throw SQLiteError.damage(verdict ?? "", during: "quick_check")
                }
            }
            let application = try database.row("PRAGMA application_id") { $0.integer(0) } ?? 0
            let version = try database.row("PRAGMA user_version") { $0.integer(0) } ?? 0
            let tables = try database.row("SELECT count(*) FROM sqlite_schema") { $0.integer(0) } ?? 0
            guard application == Self.applicationID || (application == 0 && tables == 0) else {
                throw OpenFailure.foreign
            }
            guard version <= Self.knownVersion else { throw OpenFailure.newer(found: version) }
            // From here on it is ours to change.
            try database.execute(
                """
                PRAGMA journal_mode = WAL;
                PRAGMA synchronous = NORMAL;
                PRAGMA foreign_keys = ON;
                PRAGMA temp_store = MEMORY;
                PRAGMA cache_size = -512;
                PRAGMA journal_size_limit = 4194304;
                """)
            if version < Self.knownVersion {
                // If a step fails the connection is closed, which rolls all of them back.
                try database.begin()
                for step in Self.migrations[Int(max(0, version))...] { try database.execute(step) }
                try database.execute(
                    "PRAGMA application_id = \(Self.applicationID); PRAGMA user_version = \(Self.knownVersion)")
                try database.commit()
            }
            try Self.countContent(&database)
            opened =
                if version == Self.knownVersion { .found } else if tables == 0 { .made } else {
                    .migrated(from: version)
                }
            self.database = database
        } catch let error as SQLiteError {
            throw .sqlite(error)
        } catch let error as OpenFailure {
            throw error
        } catch {
            // safe: nothing above throws any other type.
            throw .sqlite(.damage("\(error)", during: "open"))
        }
    }

    /// Runs `body` as one transaction: all of it or, if it throws, nothing.
    ///
    /// - Parameter isDurable: survive a power cut too (one fsync).
    mutating func transaction<Value>(
        isDurable: Bool = false, _ body: (inout CacheIndex) throws(SQLiteError) -> Value
    ) throws(SQLiteError) -> Value {
        if isDurable { try database.execute("PRAGMA synchronous = FULL") }
        defer { if isDurable { try? database.execute("PRAGMA synchronous = NORMAL") } }
        try database.begin()
        do {
            let value = try body(&self)
            try database.commit()
            return value
        } catch {
            database.rollBack()
            throw error
        }
    }
}
