import FreshetModel

/// The history of generations, which stay here longer than their content is kept.
struct HistoryTable {
    let database: SQLiteDatabase

    /// Adds a generation.
    func put(_ generation: IndexedGeneration, of pipeline: Int64) throws(SQLiteError) {
        let number = generation.content.number
        try database.run(
            """
            INSERT INTO history (pipeline, number, digest, size, committed_at, truncated) VALUES (?, ?, ?, ?, ?, ?)
            ON CONFLICT DO UPDATE SET
                size = excluded.size, committed_at = excluded.committed_at, truncated = excluded.truncated,
                causes = iif(digest = excluded.digest, causes, NULL),
                duration = iif(digest = excluded.digest, duration, NULL),
                mirror = iif(digest = excluded.digest, mirror, NULL), digest = excluded.digest
            """, .integer(pipeline), .integer(number), .blob(generation.content.digest.bytes),
            .integer(generation.identity.size), .time(generation.committedAt),
            .integer(generation.truncated ? 1 : 0))
        // The first number is 1.
        guard number > CacheLimits.historyPerPipeline else { return }
        try database.run(
            """
            DELETE FROM history WHERE pipeline = ?1 AND number <= ?2
                AND number NOT IN (SELECT number FROM generations WHERE pipeline = ?1)
            """, .integer(pipeline), .integer(number - CacheLimits.historyPerPipeline))
    }

    /// Adds generations that are kept but missing here, because rows of the history were damaged.
    func putKept() throws(SQLiteError) {
        try database.execute(
            """
            INSERT OR IGNORE INTO history (pipeline, number, digest, size, committed_at, truncated)
            SELECT pipeline, number, digest, size, committed_at, truncated FROM generations
            """)
    }

    /// Records the causes, the duration and the mirror of the run that made a generation.
    func setCauses(of run: RunRecord, of pipeline: Int64) throws(SQLiteError) {
        guard run.outcome == .changed, let generation = run.generation else { return }
        try database.run(
            "UPDATE history SET causes = ?, duration = ?, mirror = ? WHERE pipeline = ? AND number = ?",
            .text(run.causes.cut(to: CacheLimits.runTextBytes)),
            .integer(max(0, run.ended.nanoseconds.addingClamped(0 - max(0, run.started.nanoseconds)))),
            SQLiteValue(run.mirror?.cut(to: CacheLimits.runTextBytes)),
            .integer(pipeline), .integer(Int64(clamping: generation)))
    }

    /// Records the causes of a generation that no run made.
    func setCauses(_ causes: String, ofGeneration number: Int64, of pipeline: Int64) throws(SQLiteError) {
        try database.run(
            "UPDATE history SET causes = ?, duration = NULL, mirror = NULL WHERE pipeline = ? AND number = ?",
            .text(causes.cut(to: CacheLimits.runTextBytes)), .integer(pipeline), .integer(number))
    }

    /// Records the causes of a generation whose causes are not known.
    func setUnknownCauses(_ causes: String, ofGeneration number: Int64, of pipeline: Int64) throws(SQLiteError) {
        try database.run(
            "UPDATE history SET causes = ? WHERE pipeline = ? AND number = ? AND causes IS NULL",
            .text(causes), .integer(pipeline), .integer(number))
    }

    /// The newest generations, newest first, including those whose content is no longer kept.
    func newest(_ limit: Int, of pipeline: Int64) throws(SQLiteError) -> [PastGeneration] {
        try database.rows(
            """
            SELECT h.number, h.digest, h.size, h.committed_at, h.truncated, h.causes, h.duration, g.number = h.number,
                h.mirror
            FROM history h LEFT JOIN generations g
                ON g.pipeline = h.pipeline AND g.number = h.number AND g.digest = h.digest
            WHERE h.pipeline = ? ORDER BY h.number DESC LIMIT ?
            """, .integer(pipeline), .integer(Int64(limit))
        ) { row -> PastGeneration? in
            row.digest(1).map { digest in
                PastGeneration(
                    number: row.number(0), digest: digest, size: row.size(2), committedAt: row.time(3),
                    truncated: row.flag(4),
                    causes: row.optionalText(5),
                    duration: row.optionalTime(6).map { .nanoseconds($0.nanoseconds) },
                    mirror: row.optionalText(8), isKept: row.optionalInteger(7) != nil)
            }
        }.compactMap { $0 }
    }
}
