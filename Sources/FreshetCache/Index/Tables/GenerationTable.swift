import FreshetModel

/// A generation's row.
struct IndexedGeneration: Hashable, Sendable {
    var content: StoredContent
    var committedAt: WallTime
    var run: Int64?
    /// The published file as it was when this generation was committed or last verified.
    var identity: FileIdentity
    /// The source had more content than was requested.
    var truncated = false
    /// The expiry time that the content itself states; nil if it states none.
    var contentExpires: WallTime?

    func generation(at location: PublishedLocation) -> CurrentGeneration {
        var result = CurrentGeneration(
            number: UInt64(clamping: content.number), size: UInt64(clamping: identity.size), digest: content.digest,
            committedAt: committedAt, location: location, truncated: truncated)
        result.run = run
        result.writtenAt = WallTime(nanoseconds: identity.modified.clamped(to: IndexBounds.times))
        result.contentExpires = contentExpires
        return result
    }
}

/// The generations whose content is kept. ``CacheIndex/put(_:of:)`` adds one to the history too.
struct GenerationTable {
    let database: SQLiteDatabase

    /// All generations of all pipelines, by the pipeline's row.
    func all() throws(SQLiteError) -> [Int64: [IndexedGeneration]] {
        let rows = try database.rows(
            """
            SELECT number, digest, size, committed_at, run, inode, modified, changed, truncated, content_expires, pipeline
            FROM generations ORDER BY pipeline, number
            """
        ) { (pipeline: $0.integer(10), generation: Self.generation($0)) }
        var result: [Int64: [IndexedGeneration]] = [:]
        for (pipeline, generation) in rows {
            if let generation { result[pipeline, default: []].append(generation) }
        }
        return result
    }

    /// The generations of a pipeline, oldest first.
    func all(of pipeline: Int64) throws(SQLiteError) -> [IndexedGeneration] {
        try database.rows(
            """
            SELECT number, digest, size, committed_at, run, inode, modified, changed, truncated, content_expires
            FROM generations WHERE pipeline = ? ORDER BY number
            """, .integer(pipeline), read: Self.generation
        ).compactMap { $0 }
    }

    func row(_ number: Int64, of pipeline: Int64) throws(SQLiteError) -> IndexedGeneration? {
        try database.row(
            """
            SELECT number, digest, size, committed_at, run, inode, modified, changed, truncated, content_expires
            FROM generations WHERE pipeline = ? AND number = ?
            """, .integer(pipeline), .integer(number), read: Self.generation
        ) ?? nil
    }

    func put(_ generation: IndexedGeneration, of pipeline: Int64) throws(SQLiteError) {
        try database.run(
            """
            INSERT OR REPLACE INTO generations
                (pipeline, number, digest, size, committed_at, run, inode, modified, changed, truncated,
                content_expires)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
            """,
            .integer(pipeline), .integer(generation.content.number), .blob(generation.content.digest.bytes),
            .integer(generation.identity.size), .time(generation.committedAt),
            SQLiteValue(generation.run), .integer(Int64(bitPattern: generation.identity.inode)),
            .integer(generation.identity.modified), .integer(generation.identity.changed),
            .integer(generation.truncated ? 1 : 0), .time(generation.contentExpires))
    }

    /// Records that readers have not seen any of the generations under the new name of the pipeline's copy: see
    /// ``FileIdentity/isOfFormerName``.
    func markFormerName(of pipeline: Int64) throws(SQLiteError) {
        try database.run("UPDATE generations SET inode = 0 WHERE pipeline = ?", .integer(pipeline))
    }

    func forget(_ number: Int64, of pipeline: Int64) throws(SQLiteError) {
        try database.run(
            "DELETE FROM generations WHERE pipeline = ? AND number = ?", .integer(pipeline), .integer(number))
    }

    /// Forgets the oldest generations beyond `keep`, but never the current one.
    ///
    /// - Returns: their content, which the caller removes.
    func forgetSurplus(
        of pipeline: Int64, keep: Int, current: Int64
    ) throws(SQLiteError) -> [StoredContent] {
        let old = try all(of: pipeline).map(\.content).filter { $0.number != current }
        let surplus = Array(old.dropLast(max(0, keep - 1)))
        for content in surplus { try forget(content.number, of: pipeline) }
        return surplus
    }

    /// Reads a generation from the first ten columns: see ``generation(_:at:)``.
    static func generation(_ row: borrowing SQLiteRow) -> IndexedGeneration? { generation(row, at: 0) }

    /// Reads a generation from ten columns: `number, digest, size, committed_at, run, inode, modified, changed, truncated,
    /// content_expires`.
    ///
    /// Returns nil for a row with an invalid number or digest: such a row counts as absent.
    static func generation(_ row: borrowing SQLiteRow, at first: Int32) -> IndexedGeneration? {
        guard let number = row.optionalNumber(first), let digest = row.digest(first + 1) else { return nil }
        return IndexedGeneration(
            content: StoredContent(number: number, digest: digest), committedAt: row.time(first + 3),
            run: row.optionalNumber(first + 4),
            identity: FileIdentity(
                inode: UInt64(bitPattern: row.integer(first + 5)), size: row.size(first + 2),
                modified: row.integer(first + 6), changed: row.integer(first + 7)),
            truncated: row.flag(first + 8), contentExpires: row.optionalTime(first + 9))
    }
}
