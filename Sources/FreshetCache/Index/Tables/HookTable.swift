import FreshetModel

/// The state of hooks: for each hook, the content of its last success, and the result of the attempts since then.
struct HookTable {
    let database: SQLiteDatabase

    func all() throws(SQLiteError) -> [(pipeline: String, hook: String, record: StoredHookState)] {
        try database.rows(
            """
            SELECT p.name, h.hook, h.succeeded_number, h.succeeded_digest, h.tried_number, h.tried_digest, h.attempts,
                h.failing_since, h.error, h.succeeded_withdrawn, h.tried_withdrawn
            FROM hooks h JOIN pipelines p ON p.id = h.pipeline
            """
        ) { row in
            (
                pipeline: row.text(0), hook: row.text(1),
                record: StoredHookState(
                    notified: Self.content(row, at: 2, isWithdrawn: row.flag(9)),
                    tried: Self.content(row, at: 4, isWithdrawn: row.flag(10)), attempts: Int(clamping: row.count(6)),
                    failingSince: row.optionalTime(7), error: row.optionalText(8))
            )
        }
    }

    func add(_ hook: String, notified: GenerationIdentity?, of pipeline: Int64) throws(SQLiteError) {
        try database.run(
            """
            INSERT OR REPLACE INTO hooks (pipeline, hook, succeeded_number, succeeded_digest, succeeded_withdrawn) VALUES (?, ?, ?, ?, ?)
            """, .integer(pipeline), .text(hook), Self.number(notified), Self.digest(notified),
            Self.isWithdrawn(notified))
    }

    /// Updates the record of a hook. For a hook that is no longer configured, nothing is stored.
    func update(_ hook: String, to record: StoredHookState, of pipeline: Int64) throws(SQLiteError) {
        try database.run(
            """
            UPDATE hooks SET succeeded_number = ?, succeeded_digest = ?, tried_number = ?, tried_digest = ?, attempts = ?,
                failing_since = ?, error = ?, succeeded_withdrawn = ?, tried_withdrawn = ?
            WHERE pipeline = ? AND hook = ?
            """, Self.number(record.notified), Self.digest(record.notified),
            Self.number(record.tried),
            Self.digest(record.tried), .integer(Int64(record.attempts).clamped(to: IndexBounds.counts)),
            .time(record.failingSince),
            SQLiteValue(record.error?.cut(to: CacheLimits.runTextBytes)), Self.isWithdrawn(record.notified),
            Self.isWithdrawn(record.tried), .integer(pipeline), .text(hook))
    }

    func forget(_ hook: String, of pipeline: String) throws(SQLiteError) {
        try database.run(
            "DELETE FROM hooks WHERE hook = ? AND pipeline = (SELECT id FROM pipelines WHERE name = ?)", .text(hook),
            .text(pipeline))
    }

    private static func number(_ notified: GenerationIdentity?) -> SQLiteValue {
        SQLiteValue(notified.map { Int64(clamping: $0.number) })
    }

    private static func digest(_ notified: GenerationIdentity?) -> SQLiteValue {
        notified.map { .blob($0.digest.bytes) } ?? .null
    }

    private static func isWithdrawn(_ notified: GenerationIdentity?) -> SQLiteValue {
        .integer(notified?.isWithdrawn == true ? 1 : 0)
    }

    /// Reads content from two columns: number and digest.
    private static func content(
        _ row: borrowing SQLiteRow, at column: Int32, isWithdrawn: Bool
    ) -> GenerationIdentity? {
        guard let number = row.optionalNumber(column), let digest = row.digest(column + 1) else {
            return nil
        }
        return GenerationIdentity(number: UInt64(clamping: number), digest: digest, isWithdrawn: isWithdrawn)
    }
}
