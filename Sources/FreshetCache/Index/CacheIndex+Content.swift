/// A pipeline's row.
struct IndexedPipeline: Hashable, Sendable {
    var id: Int64
    var name: String
    /// The file that it owns below `current/`.
    var file: String?
    /// The number of the current generation.
    var current: Int64?
    /// The highest number that a generation of it ever had.
    var lastNumber: Int64
    /// The digest of what the origin is known to have, if that was not made the current generation.
    var originDigest: ContentDigest?
    var pin: IndexedPin?
    /// The digest of what the last check of the origin brought; nil: not known. The current generation may have more pages.
    var checkDigest: ContentDigest?
    /// `file` is the stamp of several files.
    var isSet = false
    /// The links of several files that it had before, and which are to be taken away with all that belongs to them once
    /// readers have something else; the oldest first.
    var formerSets: [String] = []
    /// Since when readers find nothing, since the current generation is too old; nil: they find it. It stays without one too:
    /// nothing older takes its place.
    var withdrawnAt: WallTime?

    /// Whether readers are to keep what they have although there is other content.
    ///
    /// - Parameter current: the digest of the current generation.
    func holdsBack(_ candidate: Candidate, over current: ContentDigest?) -> Bool {
        if let pin { return pin.content.digest != candidate.digest }
        guard let originDigest, originDigest != current else { return false }
        // What is no check was begun before the rollback: it belongs to the copy of then.
        return !candidate.isCheck || candidate.digest == originDigest
    }
}

/// That a pipeline's copy is not to be replaced.
struct IndexedPin: Hashable, Sendable {
    var content: StoredContent
    var since: WallTime
}

/// A generation's row.
struct IndexedGeneration: Hashable, Sendable {
    var content: StoredContent
    var committedAt: WallTime
    var run: Int64?
    /// The reader's file as it was when this generation was committed or last verified.
    var identity: FileIdentity
    /// The source had more than was asked for.
    var truncated = false
    /// When the content expires by what the content itself states; nil: it states nothing.
    var contentExpires: WallTime?

    func generation(path: String) -> Generation {
        Generation(
            number: content.number, digest: content.digest, size: identity.size, committedAt: committedAt, run: run,
            path: path, truncated: truncated,
            writtenAt: WallTime(nanoseconds: identity.modified.clamped(to: IndexBounds.times)),
            contentExpires: contentExpires)
    }
}

/// What a pipeline offers, or has withdrawn, as far as the index knows.
struct IndexedPublication: Hashable, Sendable {
    var pipeline: IndexedPipeline
    var file: String
    var generation: IndexedGeneration
    /// The reader's file as it was found last; nil: it was not looked at.
    var status: FileStatus?

    /// Readers find nothing, and its content is kept.
    var isWithdrawn: Bool { pipeline.withdrawnAt != nil }

    /// The digest of what the origin has, if that is known to be other content.
    var originDigest: ContentDigest? {
        pipeline.originDigest == generation.content.digest ? nil : pipeline.originDigest
    }

    /// What validators have to belong to: what the origin had when it was asked last.
    var checkedDigest: ContentDigest { originDigest ?? generation.content.digest }

    /// - Parameter turn: as of ``Generation/turn``.
    func generation(path: String, turn: UInt64 = 0) -> Generation {
        var result = generation.generation(path: path)
        result.isBehind = originDigest != nil
        result.pinnedAt = pipeline.pin?.since
        result.withdrawnAt = pipeline.withdrawnAt
        result.turn = turn
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

    /// The pipeline's row, made if need be.
    mutating func ensurePipeline(_ name: String) throws(SQLiteError) -> IndexedPipeline {
        if let known = try pipeline(name) { return known }
        try database.run("INSERT INTO pipelines (name) VALUES (?)", .text(name))
        return IndexedPipeline(id: database.lastInsertedRow, name: name, file: nil, current: nil, lastNumber: 0)
    }

    /// Whose a name below `current/` is.
    mutating func owner(of file: String) throws(SQLiteError) -> String? {
        try database.row(
            "SELECT name FROM pipelines WHERE file = ?1 OR (file = ?2 AND is_set)", .text(file),
            .text(file + CacheLayout.stampSuffix)
        ) { $0.text(0) }
    }

    mutating func setFile(_ file: String?, of pipeline: Int64) throws(SQLiteError) {
        try database.run("UPDATE pipelines SET file = ? WHERE id = ?", SQLiteValue(file), .integer(pipeline))
    }

    mutating func offer(of name: String) throws(SQLiteError) -> IndexedPublication? {
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

    /// Notes what is now the file of a generation, unless that was forgotten since it was looked up.
    mutating func update(_ generation: IndexedGeneration, of pipeline: Int64) throws(SQLiteError) {
        let known = try self.generation(generation.content.number, of: pipeline)
        if known?.content == generation.content { try put(generation, of: pipeline) }
    }

    mutating func forget(generation number: Int64, of pipeline: Int64) throws(SQLiteError) {
        try database.run(
            "DELETE FROM generations WHERE pipeline = ? AND number = ?", .integer(pipeline), .integer(number))
    }

    /// Makes a generation the current one, or none. Validators that belong to other content than this and what the origin
    /// has go; without content the last success says nothing any more. A generation that is made the current one is not
    /// withdrawn.
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

    /// From three columns: number, digest, time.
    static func pin(_ row: borrowing SQLiteRow, at column: Int32) -> IndexedPin? {
        guard let number = row.optionalNumber(column), let digest = ContentDigest(bytes: row.blob(column + 1)) else {
            return nil
        }
        return IndexedPin(
            content: StoredContent(number: number, digest: digest),
            since: row.time(column + 2))
    }

    /// Nil for a row whose number or digest is none: such a row counts as absent.
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
