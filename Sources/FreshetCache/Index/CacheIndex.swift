/// The SQLite index: all state that the files do not contain.
///
/// For content, the files are authoritative: the name of each generation has its digest, and reconciliation at the
/// start makes the index agree with the files. So WAL with `synchronous=NORMAL` is enough: a transaction costs no
/// fsync, a killed process loses nothing, and a power cut loses at most the newest transactions and never the database.
/// A power cut may lose the time or the validators of a check (one unconditional request). It could also lose a
/// `Retry-After`, which an origin has sent; so only that is written with `synchronous=FULL`.
struct CacheIndex: ~Copyable, Sendable {
    var database: SQLiteDatabase

    /// The state in which the index was found.
    enum Opened: Hashable, Sendable {
        case made
        case found
        case migrated(from: Int64)
    }

    enum OpenFailure: Error {
        case newer(found: Int64)
        /// The database of another program.
        case foreign
        case sqlite(SQLiteError)
    }

    let opened: Opened
    /// Values that were out of range and were dropped or reset.
    let repairs: [IndexRepair]

    /// Opens and checks the index at `path`, and migrates it if necessary.
    ///
    /// - Parameter checksPages: read every page, so that damage is found now and not later.
    init(path: String, checksPages: Bool) throws(OpenFailure) {
        do {
            var database = try SQLiteDatabase(path: path, busyTimeout: CacheLimits.indexBusyMilliseconds)
            try database.execute("PRAGMA trusted_schema = OFF")
            if checksPages {
                let result = try database.row("PRAGMA quick_check(1)") { $0.text(0) }
                guard result == "ok" else {
                    throw SQLiteError.damage(result ?? "", during: "quick_check")
                }
            }
            let header = try IndexHeader(of: &database)
            let format = try Self.format(of: &database, header)
            // From here on the database is known to be an index of Freshet and may be changed.
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
                // If a step fails, the connection is closed, which rolls all steps back.
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
            // safe: the code above throws no other type.
            throw .sqlite(.damage("\(error)", during: "open"))
        }
    }

    /// Returns the format of the tables. The tables decide, not the number in the header, except between formats with
    /// the same tables. If the number is not one of these, the oldest of them is used: its steps are repeated, which
    /// loses nothing.
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
        // Any other number is damage: no version adds so many steps.
        if (knownVersion + 1...knownVersion + 100).contains(header.version) {
            throw OpenFailure.newer(found: header.version)
        }
        throw SQLiteError.damage("its tables are not those of format \(header.version)", during: "open")
    }

    /// Runs `body` as one transaction, which is rolled back if `body` throws.
    ///
    /// - Parameter isDurable: whether the transaction must survive a power cut too (one fsync).
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

/// The header of the database, from its first page.
private struct IndexHeader {
    let application: Int64
    let version: Int64
    let tables: Int64

    init(of database: inout SQLiteDatabase) throws(SQLiteError) {
        application = try database.row("PRAGMA application_id") { $0.integer(0) } ?? 0
        version = try database.row("PRAGMA user_version") { $0.integer(0) } ?? 0
        tables = try database.row("SELECT count(*) FROM sqlite_schema") { $0.integer(0) } ?? 0
    }

    /// Whether the tables are those of an index, but the header is wrong.
    func isDamaged(for format: Int64) -> Bool {
        tables > 0 && (application != CacheIndex.applicationID || version != format)
    }
}
