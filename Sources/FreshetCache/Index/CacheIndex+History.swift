import FreshetModel

/// The history of generations, and the digests and pins that keep the copy from being replaced.
extension CacheIndex {
    /// Adds a generation to the history, where it stays longer than its content is kept.
    mutating func remember(_ generation: IndexedGeneration, of pipeline: Int64) throws(SQLiteError) {
        let number = generation.content.number
        try database.run(
            """
            INSERT INTO history (pipeline, number, digest, size, committed_at, truncated) VALUES (?, ?, ?, ?, ?, ?)
            ON CONFLICT DO UPDATE SET
                size = excluded.size, committed_at = excluded.committed_at, truncated = excluded.truncated,
                causes = iif(digest = excluded.digest, causes, NULL),
                duration = iif(digest = excluded.digest, duration, NULL), digest = excluded.digest
            """, .integer(pipeline), .integer(number), .blob(generation.content.digest.bytes),
            .integer(generation.identity.size), .time(generation.committedAt),
            .integer(generation.truncated ? 1 : 0))
        try database.run(
            """
            DELETE FROM history WHERE pipeline = ?1 AND number <= ?2
                AND number NOT IN (SELECT number FROM generations WHERE pipeline = ?1)
            """, .integer(pipeline), .integer(number - CacheLimits.historyPerPipeline))
    }

    /// Adds generations that are kept but missing in the history, because rows of the history were damaged.
    mutating func rememberKept() throws(SQLiteError) {
        try database.execute(
            """
            INSERT OR IGNORE INTO history (pipeline, number, digest, size, committed_at, truncated)
            SELECT pipeline, number, digest, size, committed_at, truncated FROM generations
            """)
    }

    /// Records the causes and the duration of the run that made a generation.
    mutating func rememberCauses(of run: RunRecord, of pipeline: Int64) throws(SQLiteError) {
        guard run.outcome == .changed, let generation = run.generation else { return }
        try database.run(
            "UPDATE history SET causes = ?, duration = ? WHERE pipeline = ? AND number = ?",
            .text(run.causes.cut(to: CacheLimits.runTextBytes)),
            .integer(max(0, run.ended.nanoseconds.addingClamped(0 - max(0, run.started.nanoseconds)))),
            .integer(pipeline), .integer(Int64(clamping: generation)))
    }

    /// The newest generations, newest first, including those whose content is no longer kept.
    mutating func history(of pipeline: Int64, limit: Int) throws(SQLiteError) -> [PastGeneration] {
        try database.rows(
            """
            SELECT h.number, h.digest, h.size, h.committed_at, h.truncated, h.causes, h.duration, g.number = h.number
            FROM history h LEFT JOIN generations g
                ON g.pipeline = h.pipeline AND g.number = h.number AND g.digest = h.digest
            WHERE h.pipeline = ? ORDER BY h.number DESC LIMIT ?
            """, .integer(pipeline), .integer(Int64(limit))
        ) { row -> PastGeneration? in
            ContentDigest(bytes: row.blob(1)).map { digest in
                PastGeneration(
                    number: row.number(0), digest: digest, size: row.size(2), committedAt: row.time(3),
                    truncated: row.flag(4),
                    causes: row.optionalText(5),
                    duration: row.optionalTime(6).map { .nanoseconds($0.nanoseconds) },
                    isKept: row.optionalInteger(7) != nil)
            }
        }.compactMap { $0 }
    }

    /// Records the digest of the origin's content if it differs from the copy; nil: it does not differ, or is not
    /// known.
    mutating func setOriginDigest(_ digest: ContentDigest?, of pipeline: Int64) throws(SQLiteError) {
        try database.run(
            "UPDATE pipelines SET origin_digest = ? WHERE id = ?", digest.map { .blob($0.bytes) } ?? .null,
            .integer(pipeline))
    }

    /// Forgets the digests of the origin's content, because the copy has content that the index does not know.
    mutating func forgetOrigin(of pipeline: Int64) throws(SQLiteError) {
        try database.run(
            "UPDATE pipelines SET origin_digest = NULL, check_digest = NULL WHERE id = ?", .integer(pipeline))
    }

    /// Deletes validators, except those of the current generation and of the origin's content.
    mutating func dropValidators(of pipeline: Int64) throws(SQLiteError) {
        try database.run(
            """
            DELETE FROM validators WHERE pipeline = ?1
                AND digest IS NOT (SELECT origin_digest FROM pipelines WHERE id = ?1)
                AND digest IS NOT (SELECT g.digest FROM pipelines p JOIN generations g
                    ON g.pipeline = p.id AND g.number = p.current WHERE p.id = ?1)
            """, .integer(pipeline))
    }

    mutating func setPin(_ pin: IndexedPin?, of pipeline: Int64) throws(SQLiteError) {
        try database.run(
            "UPDATE pipelines SET pin_number = ?, pin_digest = ?, pinned_at = ? WHERE id = ?",
            SQLiteValue(pin?.content.number), pin.map { .blob($0.content.digest.bytes) } ?? .null,
            .time(pin?.since), .integer(pipeline))
    }
}
