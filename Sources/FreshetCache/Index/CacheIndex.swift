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
    /// What was out of range, and has been dropped or reset.
    let repairs: [IndexRepair]

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
            let header = try IndexHeader(of: &database)
            let format = try Self.format(of: &database, header)
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
            if format < Self.knownVersion || header.isDamaged(for: format) {
                // If a step fails the connection is closed, which rolls all of them back.
                try database.begin()
                for step in Self.migrations[Int(format)...] { try database.execute(step) }
                try database.execute(
                    "PRAGMA application_id = \(Self.applicationID); PRAGMA user_version = \(Self.knownVersion)")
                try database.commit()
            }
            var found = header.isDamaged(for: format) ? [IndexRepair("the number of the format", isDropped: false)] : []
            if header.tables > 0 { found += try IndexValidation.perform(on: &database) }
            try Self.countContent(&database)
            repairs = found
            opened =
                if header.tables == 0 { .made } else if format == Self.knownVersion { .found } else {
                    .migrated(from: format)
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

    /// Which format the tables have. They decide, and not the number in the header, except between formats with the same
    /// tables. If the number is none of these, the oldest is taken: its steps are done once more, and lose nothing.
    private static func format(
        of database: inout SQLiteDatabase, _ header: IndexHeader
    ) throws -> Int64 {
        if header.tables == 0 {
            guard header.version == 0, header.application == 0 || header.application == applicationID else {
                throw SQLiteError.damage("it has no tables", during: "open")
            }
            return 0
        }
        let found = try IndexSchema(of: &database)
        let stated = (1...knownVersion).contains(header.version) ? [header.version] : []
        for format in stated + Array(1...knownVersion) where try IndexSchema(ofFormat: Int(format)) == found {
            return format
        }
        guard header.application == applicationID else { throw OpenFailure.foreign }
        // Another number comes from damage: so many steps at once no version has brought.
        if (knownVersion + 1...knownVersion + 100).contains(header.version) {
            throw OpenFailure.newer(found: header.version)
        }
        throw SQLiteError.damage("its tables are not those of format \(header.version)", during: "open")
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

/// What the first page says of the database.
private struct IndexHeader {
    let application: Int64
    let version: Int64
    let tables: Int64

    init(of database: inout SQLiteDatabase) throws(SQLiteError) {
        application = try database.row("PRAGMA application_id") { $0.integer(0) } ?? 0
        version = try database.row("PRAGMA user_version") { $0.integer(0) } ?? 0
        tables = try database.row("SELECT count(*) FROM sqlite_schema") { $0.integer(0) } ?? 0
    }

    /// The tables are ours, and the header does not know it.
    func isDamaged(for format: Int64) -> Bool {
        tables > 0 && (application != CacheIndex.applicationID || version != format)
    }
}
