/// What checks refused, and what of that the operator accepted.
extension CacheIndex {
    mutating func refused(of pipeline: Int64) throws(SQLiteError) -> IndexedRejection? {
        try database.row(Self.refusalQuery + " WHERE pipeline = ?", .integer(pipeline), read: Self.refusal) ?? nil
    }

    /// Of all pipelines.
    mutating func refused() throws(SQLiteError) -> [(pipeline: Int64, refusal: IndexedRejection)] {
        try database.rows(Self.refusalQuery) { (pipeline: $0.integer(9), refusal: Self.refusal($0)) }.compactMap {
            row in
            row.refusal.map { (row.pipeline, $0) }
        }
    }

    /// Instead of what was refused before.
    mutating func setRefused(_ refusal: IndexedRejection?, of pipeline: Int64) throws(SQLiteError) {
        guard let refusal else {
            return try database.run("DELETE FROM refused WHERE pipeline = ?", .integer(pipeline))
        }
        try database.run(
            """
            INSERT OR REPLACE INTO refused
                (pipeline, digest, size, refused_at, reason, truncated, expires, url, entity_tag, last_modified)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
            """,
            .integer(pipeline), .blob(refusal.digest.bytes), .integer(refusal.size),
            .time(refusal.refusedAt), .text(refusal.reason.cut(to: CacheLimits.runTextBytes)),
            .integer(refusal.truncated ? 1 : 0), .time(refusal.expires),
            SQLiteValue(refusal.validators?.url), SQLiteValue(refusal.validators?.entityTag),
            SQLiteValue(refusal.validators?.lastModified))
    }

    /// Whether the operator accepted this content, of which a generation is kept.
    mutating func isAccepted(_ digest: ContentDigest, of pipeline: Int64) throws(SQLiteError) -> Bool {
        try database.row(
            """
            SELECT 1 FROM accepted a JOIN generations g ON g.pipeline = a.pipeline AND g.digest = a.digest
            WHERE a.pipeline = ? AND a.digest = ?
            """, .integer(pipeline), .blob(digest.bytes)
        ) { _ in true } ?? false
    }

    /// Remembers that the operator accepted this content, as long as a generation of it is kept.
    mutating func accept(_ digest: ContentDigest, of pipeline: Int64) throws(SQLiteError) {
        try database.run(
            """
            DELETE FROM accepted WHERE pipeline = ?1
                AND digest NOT IN (SELECT digest FROM generations WHERE pipeline = ?1)
            """, .integer(pipeline))
        try database.run(
            "INSERT OR IGNORE INTO accepted (pipeline, digest) VALUES (?, ?)", .integer(pipeline), .blob(digest.bytes))
    }

    private static let refusalQuery = """
        SELECT digest, size, refused_at, reason, truncated, expires, url, entity_tag, last_modified, pipeline FROM refused
        """

    private static func refusal(_ row: borrowing SQLiteRow) -> IndexedRejection? {
        guard let digest = ContentDigest(bytes: row.blob(0)) else { return nil }
        return IndexedRejection(
            digest: digest, size: row.size(1), refusedAt: row.time(2),
            reason: row.text(3), truncated: row.flag(4),
            expires: row.optionalTime(5),
            validators: row.optionalText(6).map {
                Validators(url: $0, entityTag: row.optionalText(7), lastModified: row.optionalText(8))
            })
    }
}

/// What was refused last of a pipeline.
struct IndexedRejection: Hashable, Sendable {
    var digest: ContentDigest
    /// Bytes.
    var size: Int64
    var refusedAt: WallTime
    /// The check's words.
    var reason: String
    var truncated: Bool
    var expires: WallTime?
    /// What the origin said about it.
    var validators: Validators?

    var candidate: RejectedCandidate {
        RejectedCandidate(digest: digest, size: size, refusedAt: refusedAt, reason: reason)
    }
}
