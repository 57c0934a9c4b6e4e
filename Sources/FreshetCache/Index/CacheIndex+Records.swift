import FreshetModel

/// The stored state with which a pipeline starts.
struct IndexedPipelineState: Sendable {
    var pipeline: IndexedPipeline
    var publication: IndexedPublication?
    var attempts: RefreshState
    /// The number of the newest run, 0 if there was none.
    var lastRun: Int64
    /// The newest run; nil also if its outcome is not known.
    var lastRunRecord: RunRecord?
    var value: [UInt8]?
}

/// Validators, attempts, runs and small state.
extension CacheIndex {
    /// Stores validators for content that is or is about to become current. Validators of the same binding for other
    /// content stay until ``setCurrent(_:of:)``: until then they are the valid ones.
    mutating func put(
        _ validators: [BoundValidators], for digest: ContentDigest, of pipeline: Int64
    ) throws(SQLiteError) {
        for entry in validators {
            let new = entry.validators
            let bytes = [entry.binding, new.entityTag ?? "", new.lastModified ?? ""].map(\.utf8.count).max() ?? 0
            if bytes > CacheLimits.validatorBytes || new.isEmpty {
                try database.run(
                    "DELETE FROM validators WHERE pipeline = ? AND url = ? AND digest = ?", .integer(pipeline),
                    .text(entry.binding), .blob(digest.bytes))
                continue
            }
            try database.run(
                """
                INSERT OR REPLACE INTO validators (pipeline, url, digest, entity_tag, last_modified)
                VALUES (?, ?, ?, ?, ?)
                """, .integer(pipeline), .text(entry.binding), .blob(digest.bytes), SQLiteValue(new.entityTag),
                SQLiteValue(new.lastModified))
        }
        if !validators.isEmpty {
            try database.run(
                """
                DELETE FROM validators WHERE pipeline = ?1 AND digest = ?2 AND id <= (
                    SELECT id FROM validators WHERE pipeline = ?1 AND digest = ?2 ORDER BY id DESC LIMIT 1 OFFSET ?3)
                """, .integer(pipeline), .blob(digest.bytes), .integer(Int64(CacheLimits.validatorsPerPipeline)))
        }
    }

    mutating func validators(
        boundTo binding: String, for digest: ContentDigest, of pipeline: Int64
    ) throws(SQLiteError) -> Validators? {
        try database.row(
            "SELECT entity_tag, last_modified FROM validators WHERE pipeline = ? AND url = ? AND digest = ?",
            .integer(pipeline), .text(binding), .blob(digest.bytes)
        ) { Validators(entityTag: $0.optionalText(0), lastModified: $0.optionalText(1)) }
    }

    /// Records that the origin confirmed or delivered content of this digest.
    ///
    /// - Parameter expires: until when the content is fresh, as the origin states; nil: the origin states nothing.
    mutating func recordSuccess(
        of pipeline: Int64, _ digest: ContentDigest, at now: WallTime, expires: WallTime?
    ) throws(SQLiteError) {
        try database.run(
            """
            UPDATE pipelines SET
                last_attempt = ?1, last_success = ?1, retry_after = NULL, expires = ?3, check_digest = ?4
            WHERE id = ?2
            """, .time(now), .integer(pipeline), .time(expires), .blob(digest.bytes))
    }

    mutating func recordFailure(
        of pipeline: Int64, at now: WallTime, retryAfter: WallTime?
    ) throws(SQLiteError) {
        try database.run(
            "UPDATE pipelines SET last_attempt = ?, retry_after = coalesce(?, retry_after) WHERE id = ?",
            .time(now),
            .time(retryAfter), .integer(pipeline))
    }

    /// Deletes the `Retry-After` of a pipeline.
    mutating func forgetRetryAfter(of pipeline: Int64) throws(SQLiteError) {
        try database.run("UPDATE pipelines SET retry_after = NULL WHERE id = ?", .integer(pipeline))
    }

    mutating func refreshState(of name: String) throws(SQLiteError) -> RefreshState? {
        try database.row(
            "SELECT last_attempt, last_success, retry_after, expires FROM pipelines WHERE name = ?", .text(name)
        ) {
            RefreshState(
                lastAttempt: $0.optionalTime(0),
                lastSuccess: $0.optionalTime(1),
                retryAfter: $0.optionalTime(2),
                expires: $0.optionalTime(3))
        }
    }

    /// The stored state of a pipeline: first the columns of ``generation(_:)``, then the others.
    private static let memoryQuery = """
        SELECT g.number, g.digest, g.size, g.committed_at, g.run, g.inode, g.modified, g.changed, g.truncated,
            g.content_expires,
            p.id, p.name, p.file, p.current, p.last_number, p.last_attempt, p.last_success, p.retry_after,
            r.number, s.value, p.expires,
            p.origin_digest, p.pin_number, p.pin_digest, p.pinned_at, p.is_set, p.withdrawn_at,
            r.causes, r.started, r.finished, r.outcome, r.error, r.generation
        FROM pipelines p
        LEFT JOIN generations g ON g.pipeline = p.id AND g.number = p.current
        LEFT JOIN runs r ON r.pipeline = p.id AND r.number = (SELECT max(n.number) FROM runs n WHERE n.pipeline = p.id)
        LEFT JOIN state s ON s.pipeline = p.id AND s.key = ?1
        """
    private static let memoryQueryOfOne = memoryQuery + " WHERE p.name = ?2"

    mutating func memories(key: String) throws(SQLiteError) -> [IndexedPipelineState] {
        try database.rows(Self.memoryQuery, .text(key), read: Self.memory)
    }

    mutating func memory(of name: String, key: String) throws(SQLiteError) -> IndexedPipelineState? {
        try database.row(Self.memoryQueryOfOne, .text(key), .text(name), read: Self.memory)
    }

    private static func memory(_ row: borrowing SQLiteRow) -> IndexedPipelineState {
        let pipeline = IndexedPipeline(
            id: row.integer(10), name: row.text(11), file: row.optionalText(12), current: row.optionalNumber(13),
            lastNumber: row.integer(14).clamped(to: 0...IndexBounds.numbers.upperBound),
            originDigest: ContentDigest(bytes: row.blob(21)), pin: pin(row, at: 22),
            isSet: row.flag(25), withdrawnAt: row.optionalTime(26))
        // Without a generation all its columns are NULL, so it has no digest.
        let generation = pipeline.current == nil ? nil : Self.generation(row)
        let publication: IndexedPublication? =
            if let file = pipeline.file, let generation {
                IndexedPublication(pipeline: pipeline, file: file, generation: generation)
            } else { nil }
        return IndexedPipelineState(
            pipeline: pipeline, publication: publication,
            attempts: RefreshState(
                lastAttempt: row.optionalTime(15),
                lastSuccess: row.optionalTime(16),
                retryAfter: row.optionalTime(17),
                expires: row.optionalTime(20)),
            lastRun: row.optionalNumber(18) ?? 0, lastRunRecord: lastRun(of: pipeline.name, row),
            value: row.optionalBlob(19))
    }

    /// The newest run, from a row of `memoryQuery`.
    private static func lastRun(of pipeline: String, _ row: borrowing SQLiteRow) -> RunRecord? {
        guard let number = row.optionalNumber(18), let outcome = RunOutcome(rawValue: row.text(30)) else {
            return nil
        }
        return RunRecord(
            pipeline: pipeline, number: UInt64(clamping: number), causes: row.text(27), started: row.time(28),
            ended: row.time(29), outcome: outcome, error: row.optionalText(31),
            generation: row.optionalNumber(32).map(UInt64.init(clamping:)))
    }

    mutating func put(_ run: RunRecord, of pipeline: Int64) throws(SQLiteError) {
        try database.run(
            """
            INSERT OR REPLACE INTO runs (number, pipeline, causes, started, finished, outcome, error, generation)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?)
            """, .integer(Int64(clamping: run.number)), .integer(pipeline),
            .text(run.causes.cut(to: CacheLimits.runTextBytes)),
            .time(run.started), .time(run.ended), .text(run.outcome.rawValue),
            SQLiteValue(run.error?.cut(to: CacheLimits.runTextBytes)),
            SQLiteValue(run.generation.map(Int64.init(clamping:))))
        try database.run(
            """
            DELETE FROM runs WHERE pipeline = ?1 AND number <= (
                SELECT number FROM runs WHERE pipeline = ?1 ORDER BY number DESC LIMIT 1 OFFSET ?2)
            """, .integer(pipeline), .integer(Int64(CacheLimits.runsPerPipeline)))
    }

    mutating func runs(of name: String, limit: Int) throws(SQLiteError) -> [RunRecord] {
        try database.rows(
            """
            SELECT r.number, r.causes, r.started, r.finished, r.outcome, r.error, r.generation
            FROM runs r JOIN pipelines p ON p.id = r.pipeline WHERE p.name = ? ORDER BY r.number DESC LIMIT ?
            """, .text(name), .integer(Int64(limit))
        ) { row in
            RunOutcome(rawValue: row.text(4)).map {
                RunRecord(
                    pipeline: name, number: UInt64(clamping: row.number(0)), causes: row.text(1),
                    started: row.time(2), ended: row.time(3), outcome: $0, error: row.optionalText(5),
                    generation: row.optionalNumber(6).map(UInt64.init(clamping:)))
            }
        }.compactMap { $0 }
    }

    /// The requests that count against the budget, by the names of the pipelines; of one pipeline, or of all.
    mutating func requests(of name: String? = nil) throws(SQLiteError) -> [String: [RequestBurst]] {
        let rows = try database.rows(
            """
            SELECT p.name, r.first, r.last, r.count FROM requests r JOIN pipelines p ON p.id = r.pipeline
            WHERE ?1 IS NULL OR p.name = ?1
            """, SQLiteValue(name)
        ) { row in
            (
                name: row.text(0),
                spent: RequestBurst(
                    first: row.time(1), last: row.time(2),
                    count: Int(clamping: row.count(3)))
            )
        }
        return rows.reduce(into: [:]) { $0[$1.name, default: []].append($1.spent) }
    }

    mutating func setRequests(_ requests: [RequestBurst], of pipeline: Int64) throws(SQLiteError) {
        try database.run("DELETE FROM requests WHERE pipeline = ?", .integer(pipeline))
        for spent in requests {
            try database.run(
                "INSERT INTO requests VALUES (?, ?, ?, ?)", .integer(pipeline), .time(spent.first),
                .time(spent.last), .integer(Int64(spent.count).clamped(to: IndexBounds.counts)))
        }
    }

    /// The parameters that are set, by the names of the pipelines and of the parameters; of one pipeline, or of all.
    mutating func parameters(of name: String? = nil) throws(SQLiteError) -> [String: [String: String]] {
        let rows = try database.rows(
            """
            SELECT p.name, s.name, s.value FROM parameters s JOIN pipelines p ON p.id = s.pipeline
            WHERE ?1 IS NULL OR p.name = ?1
            """, SQLiteValue(name)
        ) { row in (pipeline: row.text(0), name: row.text(1), value: row.text(2)) }
        return rows.reduce(into: [:]) { $0[$1.pipeline, default: [:]][$1.name] = $1.value }
    }

    mutating func setParameters(_ values: [String: String], of pipeline: Int64) throws(SQLiteError) {
        try database.run("DELETE FROM parameters WHERE pipeline = ?", .integer(pipeline))
        for (name, value) in values {
            try database.run(
                "INSERT INTO parameters VALUES (?, ?, ?)", .integer(pipeline), .text(name), .text(value))
        }
    }

    mutating func state(_ key: String, of name: String) throws(SQLiteError) -> [UInt8]? {
        try database.row(
            "SELECT s.value FROM state s JOIN pipelines p ON p.id = s.pipeline WHERE p.name = ? AND s.key = ?",
            .text(name), .text(key)
        ) { $0.blob(0) }
    }

    mutating func states(_ key: String) throws(SQLiteError) -> [String: [UInt8]] {
        let rows = try database.rows(
            "SELECT p.name, s.value FROM state s JOIN pipelines p ON p.id = s.pipeline WHERE s.key = ?", .text(key)
        ) { ($0.text(0), $0.blob(1)) }
        return Dictionary(rows) { first, _ in first }
    }

    /// Sets or removes a value. Returns false if the pipeline would have too many keys.
    mutating func setState(_ value: [UInt8]?, for key: String, of pipeline: Int64) throws(SQLiteError) -> Bool {
        guard let value else {
            try database.run("DELETE FROM state WHERE pipeline = ? AND key = ?", .integer(pipeline), .text(key))
            return true
        }
        let others =
            try database.row(
                "SELECT count(*) FROM state WHERE pipeline = ? AND key <> ?", .integer(pipeline), .text(key)
            ) { $0.integer(0) } ?? 0
        guard others < CacheLimits.stateKeysPerPipeline else { return false }
        try database.run("INSERT OR REPLACE INTO state VALUES (?, ?, ?)", .integer(pipeline), .text(key), .blob(value))
        return true
    }
}

extension String {
    /// The longest prefix that has at most `limit` bytes of UTF-8 and does not cut a character.
    func cut(to limit: Int) -> String {
        guard utf8.count > limit else { return self }
        var end = utf8.index(startIndex, offsetBy: limit)
        while end > startIndex, end.samePosition(in: self) == nil { utf8.formIndex(before: &end) }
        return String(self[..<end])
    }
}
