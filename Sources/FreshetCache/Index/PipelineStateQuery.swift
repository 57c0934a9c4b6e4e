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

/// Reads the stored states of pipelines, with one query over several tables: a start reads the states of all pipelines.
struct PipelineStateQuery {
    let database: SQLiteDatabase

    /// First the columns of ``GenerationTable/generation(_:)``, then the others.
    private static let query = """
        SELECT g.number, g.digest, g.size, g.committed_at, g.run, g.inode, g.modified, g.changed, g.truncated,
            g.content_expires,
            p.id, p.name, p.file, p.current, p.last_number, p.last_attempt, p.last_success, p.retry_after,
            r.number, s.value, p.expires,
            p.origin_digest, p.pin_number, p.pin_digest, p.pinned_at, p.is_set, p.withdrawn_at,
            r.causes, r.started, r.finished, r.outcome, r.error, r.generation, r.cause_times, r.mirror
        FROM pipelines p
        LEFT JOIN generations g ON g.pipeline = p.id AND g.number = p.current
        LEFT JOIN runs r ON r.pipeline = p.id AND r.number = (SELECT max(n.number) FROM runs n WHERE n.pipeline = p.id)
        LEFT JOIN state s ON s.pipeline = p.id AND s.key = ?1
        """
    private static let queryOfOne = query + " WHERE p.name = ?2"

    /// Passes the states of all pipelines, one by one.
    func walk(key: String, each: (IndexedPipelineState) -> Void) throws(SQLiteError) {
        try database.walk(Self.query, .text(key)) { row in
            each(Self.state(row))
            return true
        }
    }

    func row(of name: String, key: String) throws(SQLiteError) -> IndexedPipelineState? {
        try database.row(Self.queryOfOne, .text(key), .text(name), read: Self.state)
    }

    private static func state(_ row: borrowing SQLiteRow) -> IndexedPipelineState {
        let pipeline = IndexedPipeline(
            id: row.integer(10), name: row.text(11), file: row.optionalText(12), current: row.optionalNumber(13),
            lastNumber: row.integer(14).clamped(to: 0...IndexBounds.numbers.upperBound),
            originDigest: row.digest(21), pin: PipelineTable.pin(row, at: 22),
            isSet: row.flag(25), withdrawnAt: row.optionalTime(26))
        // Without a generation all its columns are NULL, so it has no digest.
        let generation = pipeline.current == nil ? nil : GenerationTable.generation(row)
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

    /// The newest run, from a row of `query`.
    private static func lastRun(of pipeline: String, _ row: borrowing SQLiteRow) -> RunRecord? {
        guard let number = row.optionalNumber(18), let outcome = RunOutcome(rawValue: row.text(30)) else {
            return nil
        }
        return RunRecord(
            pipeline: pipeline, number: UInt64(clamping: number), causes: row.text(27),
            causeTimes: [CauseTimes](text: row.optionalText(33)), started: row.time(28), ended: row.time(29),
            outcome: outcome, error: row.optionalText(31),
            generation: row.optionalNumber(32).map(UInt64.init(clamping:)), mirror: row.optionalText(34))
    }
}
