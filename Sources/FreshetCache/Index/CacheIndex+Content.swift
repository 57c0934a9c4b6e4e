import FreshetModel

/// A pipeline's row.
struct IndexedPipeline: Hashable, Sendable {
    var id: Int64
    var name: String
    /// The file below `current/` that the pipeline owns.
    var file: String?
    /// The number of the current generation.
    var current: Int64?
    /// The highest number that any generation of the pipeline had.
    var lastNumber: Int64
    /// The digest of the origin's content, if that is known and was not made the current generation.
    var originDigest: ContentDigest?
    var pin: IndexedPin?
    /// The digest of the content that the last check of the origin returned; nil if it is not known. The current
    /// generation may have more pages.
    var checkDigest: ContentDigest?
    /// Whether the pipeline keeps several files; then `file` is their stamp.
    var isSet = false
    /// The former links of the pipeline, oldest first. They and all that belongs to them are removed once readers see
    /// other content.
    var formerSets: [String] = []
    /// When the current generation was withdrawn because it is too old; nil if readers find it. A withdrawn generation
    /// stays current: no older generation takes its place.
    var withdrawnAt: WallTime?

    /// Whether the copy stays although there is other content.
    ///
    /// - Parameter current: the digest of the current generation.
    func holdsBack(_ candidate: Candidate, over current: ContentDigest?) -> Bool {
        if let pin { return pin.content.digest != candidate.digest }
        guard let originDigest, originDigest != current else { return false }
        // A candidate that is not from a check was begun before the rollback: it belongs to the copy of that time.
        return !candidate.isCheck || candidate.digest == originDigest
    }
}

/// A pin: the pipeline's copy must not be replaced.
struct IndexedPin: Hashable, Sendable {
    var content: StoredContent
    var since: WallTime
}

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

    func generation(path: String) -> CurrentGeneration {
        var result = CurrentGeneration(
            number: UInt64(clamping: content.number), size: UInt64(clamping: identity.size), digest: content.digest,
            committedAt: committedAt, path: path, truncated: truncated)
        result.run = run
        result.writtenAt = WallTime(nanoseconds: identity.modified.clamped(to: IndexBounds.times))
        result.contentExpires = contentExpires
        return result
    }
}

/// A pipeline's current generation, published or withdrawn, as recorded in the index.
struct IndexedPublication: Hashable, Sendable {
    var pipeline: IndexedPipeline
    var file: String
    var generation: IndexedGeneration
    /// The last status of the published file; nil if it was not read.
    var status: FileStatus?

    /// Readers find no file, and the content is kept.
    var isWithdrawn: Bool { pipeline.withdrawnAt != nil }

    /// The digest of the origin's content, if that is known to be other content.
    var originDigest: ContentDigest? {
        pipeline.originDigest == generation.content.digest ? nil : pipeline.originDigest
    }

    /// The digest that validators must belong to: that of the content that the last check of the origin returned.
    var checkedDigest: ContentDigest { originDigest ?? generation.content.digest }

    /// - Parameter revision: see ``CurrentGeneration/revision``.
    func generation(path: String, revision: UInt64 = 0) -> CurrentGeneration {
        var result = generation.generation(path: path)
        result.isBehind = originDigest != nil
        result.pinnedSince = pipeline.pin?.since
        result.withdrawnSince = pipeline.withdrawnAt
        result.revision = revision
        if pipeline.isSet { result.directory = CacheLayout.linkName(ofStamp: path) }
        return result
    }
}

extension CacheIndex {
    mutating func pipelines() throws(SQLiteError) -> [IndexedPipeline] {
        try database.rows(Self.pipelineQuery, read: Self.pipeline)
    }

    mutating func pipeline(_ name: String) throws(SQLiteError) -> IndexedPipeline? {
        try database.row(Self.pipelineQueryOfOne, .text(name), read: Self.pipeline)
    }

    private static let pipelineQuery = """
        SELECT id, name, file, current, last_number, origin_digest, pin_number, pin_digest, pinned_at, check_digest,
            is_set, former_set, withdrawn_at
        FROM pipelines
        """
    private static let pipelineQueryOfOne = pipelineQuery + " WHERE name = ?"

    /// The pipeline's row, which is made if it does not exist.
    mutating func ensurePipeline(_ name: String) throws(SQLiteError) -> IndexedPipeline {
        if let known = try pipeline(name) { return known }
        try database.run("INSERT INTO pipelines (name) VALUES (?)", .text(name))
        return IndexedPipeline(id: database.lastInsertedRow, name: name, file: nil, current: nil, lastNumber: 0)
    }

    /// The pipeline that owns a name below `current/`.
    mutating func owner(of file: String) throws(SQLiteError) -> String? {
        try database.row(
            "SELECT name FROM pipelines WHERE file = ?1 OR (file = ?2 AND is_set)", .text(file),
            .text(file + CacheLayout.stampSuffix)
        ) { $0.text(0) }
    }

    mutating func setFile(_ file: String?, of pipeline: Int64) throws(SQLiteError) {
        try database.run("UPDATE pipelines SET file = ? WHERE id = ?", SQLiteValue(file), .integer(pipeline))
    }

    mutating func publication(of name: String) throws(SQLiteError) -> IndexedPublication? {
        guard let pipeline = try pipeline(name), let file = pipeline.file, let current = pipeline.current,
            let generation = try generation(current, of: pipeline.id)
        else { return nil }
        return IndexedPublication(pipeline: pipeline, file: file, generation: generation)
    }

    mutating func generations(of pipeline: Int64) throws(SQLiteError) -> [IndexedGeneration] {
        try database.rows(
            """
            SELECT number, digest, size, committed_at, run, inode, modified, changed, truncated, content_expires
            FROM generations WHERE pipeline = ? ORDER BY number
            """, .integer(pipeline), read: Self.generation
        ).compactMap { $0 }
    }

    /// All generations of all pipelines, by the pipeline's row.
    mutating func generations() throws(SQLiteError) -> [Int64: [IndexedGeneration]] {
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

    mutating func generation(_ number: Int64, of pipeline: Int64) throws(SQLiteError) -> IndexedGeneration? {
        try database.row(
            """
            SELECT number, digest, size, committed_at, run, inode, modified, changed, truncated, content_expires
            FROM generations WHERE pipeline = ? AND number = ?
            """, .integer(pipeline), .integer(number), read: Self.generation
        ) ?? nil
    }

    mutating func put(_ generation: IndexedGeneration, of pipeline: Int64) throws(SQLiteError) {
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
        try remember(generation, of: pipeline)
        try database.run(
            "UPDATE pipelines SET last_number = max(last_number, ?) WHERE id = ?",
            .integer(generation.content.number), .integer(pipeline))
    }

    /// Records the new state of a generation's file, unless the generation was forgotten since it was read.
    mutating func update(_ generation: IndexedGeneration, of pipeline: Int64) throws(SQLiteError) {
        let known = try self.generation(generation.content.number, of: pipeline)
        if known?.content == generation.content { try put(generation, of: pipeline) }
    }

    /// Records that readers have not seen any of the generations under the new name of the pipeline's copy: see
    /// ``FileIdentity/isOfFormerName``.
    mutating func markFormerName(of pipeline: Int64) throws(SQLiteError) {
        try database.run("UPDATE generations SET inode = 0 WHERE pipeline = ?", .integer(pipeline))
    }

    mutating func forget(generation number: Int64, of pipeline: Int64) throws(SQLiteError) {
        try database.run(
            "DELETE FROM generations WHERE pipeline = ? AND number = ?", .integer(pipeline), .integer(number))
    }

    /// Sets the current generation; nil: there is none. Deletes validators, except those of this content and of the
    /// origin's content; without a generation, deletes all validators and the last success. The current generation is
    /// no longer withdrawn.
    mutating func setCurrent(_ content: StoredContent?, of pipeline: Int64) throws(SQLiteError) {
        try database.run(
            "UPDATE pipelines SET current = ? WHERE id = ?", SQLiteValue(content?.number), .integer(pipeline))
        if let content {
            try setWithdrawn(nil, of: pipeline)
            try database.run(
                """
                DELETE FROM validators WHERE pipeline = ?1 AND digest <> ?2
                    AND digest IS NOT (SELECT origin_digest FROM pipelines WHERE id = ?1)
                """, .integer(pipeline), .blob(content.digest.bytes))
        } else {
            try database.run("DELETE FROM validators WHERE pipeline = ?", .integer(pipeline))
            try database.run(
                "UPDATE pipelines SET last_success = NULL, expires = NULL, origin_digest = NULL WHERE id = ?",
                .integer(pipeline))
        }
    }

    private static func pipeline(_ row: borrowing SQLiteRow) -> IndexedPipeline {
        IndexedPipeline(
            id: row.integer(0), name: row.text(1), file: row.optionalText(2), current: row.optionalNumber(3),
            lastNumber: row.integer(4).clamped(to: 0...IndexBounds.numbers.upperBound),
            originDigest: ContentDigest(bytes: row.blob(5)), pin: pin(row, at: 6),
            checkDigest: ContentDigest(bytes: row.blob(9)), isSet: row.flag(10),
            formerSets: formerSets(row.optionalText(11)),
            withdrawnAt: row.optionalTime(12))
    }

    /// Reads a pin from three columns: number, digest, time.
    static func pin(_ row: borrowing SQLiteRow, at column: Int32) -> IndexedPin? {
        guard let number = row.optionalNumber(column), let digest = ContentDigest(bytes: row.blob(column + 1)) else {
            return nil
        }
        return IndexedPin(
            content: StoredContent(number: number, digest: digest),
            since: row.time(column + 2))
    }

    /// Returns nil for a row with an invalid number or digest: such a row counts as absent.
    static func generation(_ row: borrowing SQLiteRow) -> IndexedGeneration? {
        guard let number = row.optionalNumber(0), let digest = ContentDigest(bytes: row.blob(1)) else { return nil }
        return IndexedGeneration(
            content: StoredContent(number: number, digest: digest), committedAt: row.time(3),
            run: row.optionalNumber(4),
            identity: FileIdentity(
                inode: UInt64(bitPattern: row.integer(5)), size: row.size(2), modified: row.integer(6),
                changed: row.integer(7)),
            truncated: row.flag(8), contentExpires: row.optionalTime(9))
    }
}
