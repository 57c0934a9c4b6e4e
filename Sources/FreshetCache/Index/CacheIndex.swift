import CSQLite
import FreshetModel

/// The SQLite index: all state that the files do not contain.
///
/// For content, the files are authoritative: the name of each generation has its digest, and reconciliation at the
/// start makes the index agree with the files. So WAL with `synchronous=NORMAL` is enough: a transaction costs no
/// fsync, a killed process loses no transaction, and a power cut loses at most the newest transactions and never the
/// database. (A killed process loses the records in ``DeferredRecords``, which no transaction has stored yet.)
/// A power cut may lose the time or the validators of a check (one unconditional request). It could also lose a
/// `Retry-After`, which an origin has sent; so only that is written with `synchronous=FULL`.
///
/// Each table has its own type, with all SQL of that table; the methods here are transactions, and what several tables
/// need together.
///
/// `@unchecked Sendable` is safe: only this value, which cannot be copied, and its tables refer to the connection. The
/// tables are not `Sendable`, so ``SharedIndex/access(_:)`` cannot return one, and its callers do not keep one.
struct CacheIndex: ~Copyable, @unchecked Sendable {
    let database: SQLiteDatabase

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
            let database = try SQLiteDatabase(path: path, busyTimeout: CacheLimits.indexBusyMilliseconds)
            // If there is no space on such a file system, a write to the memory that several users of an index share
            // would end the process (SIGBUS). Without shared memory, only one process can use the index.
            if Self.isExclusive(path) { try database.execute("PRAGMA locking_mode = EXCLUSIVE") }
            try database.execute("PRAGMA trusted_schema = OFF")
            if checksPages {
                let result = try database.row("PRAGMA quick_check(1)") { $0.text(0) }
                guard result == "ok" else {
                    throw SQLiteError.damage(result ?? "", during: "quick_check")
                }
            }
            let header = try IndexHeader(of: database)
            let format = try Self.format(of: database, header)
            let logPages = CacheLimits.indexLogPages(of: path)
            // From here on the database is known to be an index of Freshet and may be changed.
            try database.execute(
                """
                PRAGMA journal_mode = WAL;
                PRAGMA synchronous = NORMAL;
                PRAGMA foreign_keys = ON;
                PRAGMA temp_store = MEMORY;
                PRAGMA cache_size = -512;
                PRAGMA wal_autocheckpoint = \(logPages);
                PRAGMA journal_size_limit = \(logPages * CacheLimits.indexPageBytes);
                """)
            // The log of a process that was killed may have used all space. What it has moves to the file, so that this
            // start writes to its beginning.
            try? database.execute("PRAGMA wal_checkpoint(PASSIVE)")
            if format < Self.knownVersion || header.isDamaged(for: format) {
                // If a step fails, the connection is closed, which rolls all steps back.
                try database.begin()
                for step in Self.migrations[Int(format)...] { try database.execute(step) }
                try database.execute(
                    "PRAGMA application_id = \(Self.applicationID); PRAGMA user_version = \(Self.knownVersion)")
                if header.isDamaged(for: format) { try IndexValidation.setUnfinished(in: database) }
                try database.commit()
            }
            var found = header.isDamaged(for: format) ? [IndexRepair("the number of the format", isDropped: false)] : []
            if header.tables > 0 { found += try IndexValidation.perform(on: database) }
            try ContentUsage(database: database).start()
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

    /// Whether only one connection can use the index at this path.
    static func isExclusive(_ path: String) -> Bool { freshet_is_copied_on_write(path) }

    /// Returns the format of the tables. The tables decide, not the number in the header, except between formats with
    /// the same tables. If the number is not one of these, the oldest of them is used: its steps are repeated, which
    /// loses nothing.
    private static func format(
        of database: SQLiteDatabase, _ header: IndexHeader
    ) throws -> Int64 {
        if header.tables == 0 {
            guard header.version == 0, header.application == 0 || header.application == applicationID else {
                throw SQLiteError.damage("it has no tables", during: "open")
            }
            return 0
        }
        if header.version == knownVersion, try IndexSchema.isOfNewestFormat(database) { return knownVersion }
        let found = try IndexSchema(of: database)
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

    // MARK: Tables

    var pipelines: PipelineTable { PipelineTable(database: database) }
    var generations: GenerationTable { GenerationTable(database: database) }
    var history: HistoryTable { HistoryTable(database: database) }
    var validators: ValidatorTable { ValidatorTable(database: database) }
    var rejected: RejectedTable { RejectedTable(database: database) }
    var accepted: AcceptedTable { AcceptedTable(database: database) }
    var runs: RunTable { RunTable(database: database) }
    var requests: RequestTable { RequestTable(database: database) }
    var parameters: ParameterTable { ParameterTable(database: database) }
    var state: StateTable { StateTable(database: database) }
    var parts: PartTable { PartTable(database: database) }
    var hooks: HookTable { HookTable(database: database) }
    var usage: ContentUsage { ContentUsage(database: database) }
    var removal: RemovalQuery { RemovalQuery(database: database) }
    var pipelineStates: PipelineStateQuery { PipelineStateQuery(database: database) }
    var commits: CommitQuery { CommitQuery(database: database) }

    // MARK: Transactions

    /// Runs `body` as one transaction, which is rolled back if `body` throws.
    ///
    /// - Parameter isDurable: whether the transaction must survive a power cut too (one fsync).
    func transaction<Value>(
        isDurable: Bool = false, _ body: (borrowing CacheIndex) throws(SQLiteError) -> Value
    ) throws(SQLiteError) -> Value {
        if isDurable { try database.execute("PRAGMA synchronous = FULL") }
        defer { if isDurable { try? database.execute("PRAGMA synchronous = NORMAL") } }
        try database.begin()
        do {
            let value = try body(self)
            try database.commit()
            return value
        } catch {
            database.rollBack()
            throw error
        }
    }

    /// Writes the log to the index's file.
    func checkpoint() throws(SQLiteError) { try database.execute("PRAGMA wal_checkpoint(TRUNCATE)") }

    /// Writes as much of the log to the index's file as is possible without waiting. If that is all, the next
    /// transaction writes to the beginning of the log, so it needs no more space.
    func makeSpace() { try? database.execute("PRAGMA wal_checkpoint(PASSIVE)") }

    /// Sets how long a transaction waits for another process.
    func limitWait(to duration: Duration) {
        database.setBusyTimeout(Int32(max(0, min(5000, duration / .milliseconds(1)))))
    }

    // MARK: Several tables

    /// A pipeline's current generation, published or withdrawn.
    func publication(of name: String) throws(SQLiteError) -> IndexedPublication? {
        guard let pipeline = try pipelines.row(name), let file = pipeline.file, let current = pipeline.current,
            let generation = try generations.row(current, of: pipeline.id)
        else { return nil }
        return IndexedPublication(pipeline: pipeline, file: file, generation: generation)
    }

    /// Stores a generation, also in the history. No later generation gets a lower number.
    func put(_ generation: IndexedGeneration, of pipeline: Int64) throws(SQLiteError) {
        try generations.put(generation, of: pipeline)
        try history.put(generation, of: pipeline)
        try pipelines.useNumber(generation.content.number, of: pipeline)
    }

    /// Stores a new generation, also in the history, and makes it the current one, which readers find. Deletes validators,
    /// except those of this content and of the origin's content.
    ///
    /// - Parameter row: the pipeline's row.
    /// - Returns: the row after the change.
    func publish(_ generation: IndexedGeneration, of row: IndexedPipeline) throws(SQLiteError) -> IndexedPipeline {
        let content = generation.content
        try generations.put(generation, of: row.id)
        try history.put(generation, of: row.id)
        try pipelines.publish(content.number, of: row.id)
        try validators.forgetOthers(than: content.digest, of: row.id)
        var changed = row
        (changed.current, changed.withdrawnAt) = (content.number, nil)
        changed.lastNumber = max(row.lastNumber, content.number)
        return changed
    }

    /// Records the new state of a generation's file, unless the generation was forgotten since it was read.
    func update(_ generation: IndexedGeneration, of pipeline: Int64) throws(SQLiteError) {
        let known = try generations.row(generation.content.number, of: pipeline)
        if known?.content == generation.content { try put(generation, of: pipeline) }
    }

    /// Sets the current generation; nil: there is none. Deletes validators, except those of this content and of the
    /// origin's content; without a generation, deletes all validators and the last success. The current generation is
    /// no longer withdrawn.
    func setCurrent(_ content: StoredContent?, of pipeline: Int64) throws(SQLiteError) {
        try pipelines.setCurrent(content?.number, of: pipeline)
        if let content {
            try pipelines.setWithdrawn(nil, of: pipeline)
            try validators.forgetOthers(than: content.digest, of: pipeline)
        } else {
            try validators.forgetAll(of: pipeline)
            try pipelines.forgetSuccess(of: pipeline)
        }
    }

    /// Assigns a file to a pipeline, or the stamp of its files. If the pipeline kept one file and now keeps several, or
    /// the reverse, its old content can never be the copy again and is forgotten.
    ///
    /// - Parameter row: the row before the change.
    /// - Returns: the content that was forgotten, if any.
    func assign(_ file: String, isSet: Bool, to row: IndexedPipeline) throws(SQLiteError) -> OrphanedContent? {
        try pipelines.setFile(file, of: row.id)
        if row.file != file { try generations.markFormerName(of: row.id) }
        if let former = row.link, row.file != file || !isSet { try pipelines.addFormerSet(former, of: row) }
        guard row.isSet != isSet else { return nil }
        try pipelines.setKind(isSet: isSet, of: row.id)
        let forgotten = OrphanedContent(
            pipeline: row.name, generations: try generations.all(of: row.id).map(\.content),
            rejected: try rejected.row(of: row.id)?.digest)
        for content in forgotten.generations { try generations.forget(content.number, of: row.id) }
        try setCurrent(nil, of: row.id)
        try rejected.set(nil, of: row.id)
        // Otherwise the pin would prevent any content from taking the place of the forgotten generation.
        try pipelines.setPin(nil, of: row.id)
        return forgotten
    }

    /// Removes the row of content that is to be removed. Returns false if the content must stay now, or no longer
    /// exists.
    func forget(_ content: RemovableContent) throws(SQLiteError) -> Bool {
        guard let row = try pipelines.row(content.pipeline) else { return false }
        guard let stored = content.stored else {
            guard try rejected.row(of: row.id)?.digest == content.digest else { return false }
            try rejected.set(nil, of: row.id)
            return true
        }
        guard !row.holds(stored), try generations.row(stored.number, of: row.id)?.content == stored else {
            return false
        }
        try generations.forget(stored.number, of: row.id)
        return true
    }
}

/// Content of a pipeline that the index has forgotten and whose files are to be removed.
struct OrphanedContent: Hashable, Sendable {
    var pipeline: String
    var generations: [StoredContent]
    /// The digest of the rejected content.
    var rejected: ContentDigest?
}

/// The header of the database, from its first page.
private struct IndexHeader {
    let application: Int64
    let version: Int64
    let tables: Int64

    init(of database: SQLiteDatabase) throws(SQLiteError) {
        application = try database.row("PRAGMA application_id") { $0.integer(0) } ?? 0
        version = try database.row("PRAGMA user_version") { $0.integer(0) } ?? 0
        tables = try database.row("SELECT count(*) FROM sqlite_schema") { $0.integer(0) } ?? 0
    }

    /// Whether the tables are those of an index, but the header is wrong.
    func isDamaged(for format: Int64) -> Bool {
        tables > 0 && (application != CacheIndex.applicationID || version != format)
    }
}
