import FreshetModel

/// Rejected content, and the digests of rejected content that a user accepted.
extension CacheIndex {
    mutating func rejected(of pipeline: Int64) throws(SQLiteError) -> IndexedRejection? {
        try database.row(Self.rejectionQuery + " WHERE pipeline = ?", .integer(pipeline), read: Self.rejection) ?? nil
    }

    /// The rejected content of all pipelines.
    mutating func rejected() throws(SQLiteError) -> [(pipeline: Int64, rejection: IndexedRejection)] {
        try database.rows(Self.rejectionQuery) { (pipeline: $0.integer(9), rejection: Self.rejection($0)) }.compactMap {
            row in
            row.rejection.map { (row.pipeline, $0) }
        }
    }

    /// Stores the rejected content of a pipeline, in the place of the previous one.
    mutating func setRejected(_ rejection: IndexedRejection?, of pipeline: Int64) throws(SQLiteError) {
        guard let rejection else {
            return try database.run("DELETE FROM rejected WHERE pipeline = ?", .integer(pipeline))
        }
        try database.run(
            """
            INSERT OR REPLACE INTO rejected
                (pipeline, digest, size, rejected_at, reason, truncated, expires, url, entity_tag, last_modified)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
            """,
            .integer(pipeline), .blob(rejection.digest.bytes), .integer(rejection.size),
            .time(rejection.rejectedAt), .text(rejection.reason.cut(to: CacheLimits.runTextBytes)),
            .integer(rejection.truncated ? 1 : 0), .time(rejection.expires),
            SQLiteValue(rejection.validators?.binding), SQLiteValue(rejection.validators?.validators.entityTag),
            SQLiteValue(rejection.validators?.validators.lastModified))
    }

    /// Whether a user accepted this content, and a generation with it is kept.
    mutating func isAccepted(_ digest: ContentDigest, of pipeline: Int64) throws(SQLiteError) -> Bool {
        try database.row(
            """
            SELECT 1 FROM accepted a JOIN generations g ON g.pipeline = a.pipeline AND g.digest = a.digest
            WHERE a.pipeline = ? AND a.digest = ?
            """, .integer(pipeline), .blob(digest.bytes)
        ) { _ in true } ?? false
    }

    /// Records that a user accepted this content. The record is kept as long as a generation with this content is kept.
    mutating func accept(_ digest: ContentDigest, of pipeline: Int64) throws(SQLiteError) {
        try database.run(
            """
            DELETE FROM accepted WHERE pipeline = ?1
                AND digest NOT IN (SELECT digest FROM generations WHERE pipeline = ?1)
            """, .integer(pipeline))
        try database.run(
            "INSERT OR IGNORE INTO accepted (pipeline, digest) VALUES (?, ?)", .integer(pipeline), .blob(digest.bytes))
    }

    private static let rejectionQuery = """
        SELECT digest, size, rejected_at, reason, truncated, expires, url, entity_tag, last_modified, pipeline FROM rejected
        """

    private static func rejection(_ row: borrowing SQLiteRow) -> IndexedRejection? {
        guard let digest = ContentDigest(bytes: row.blob(0)) else { return nil }
        return IndexedRejection(
            digest: digest, size: row.size(1), rejectedAt: row.time(2),
            reason: row.text(3), truncated: row.flag(4),
            expires: row.optionalTime(5),
            validators: row.optionalText(6).map {
                BoundValidators(
                    binding: $0, Validators(entityTag: row.optionalText(7), lastModified: row.optionalText(8)))
            })
    }
}

/// The content of a pipeline that was rejected last.
struct IndexedRejection: Hashable, Sendable {
    var digest: ContentDigest
    /// Bytes.
    var size: Int64
    var rejectedAt: WallTime
    /// Why the check rejected the content.
    var reason: String
    var truncated: Bool
    var expires: WallTime?
    /// The validators that the origin sent for the content.
    var validators: BoundValidators?

    var candidate: RejectedCandidate {
        RejectedCandidate(
            digest: digest, size: UInt64(clamping: size), rejectedAt: rejectedAt,
            keptUntil: rejectedAt.advanced(by: CacheLimits.rejectedAge), reason: reason)
    }
}
