import FreshetModel

/// The content of each pipeline that was rejected last.
struct RejectedTable {
    let database: SQLiteDatabase

    func row(of pipeline: Int64) throws(SQLiteError) -> IndexedRejection? {
        try database.row(Self.query + " WHERE pipeline = ?", .integer(pipeline), read: Self.rejection) ?? nil
    }

    /// The rejected content of all pipelines.
    func all() throws(SQLiteError) -> [(pipeline: Int64, rejection: IndexedRejection)] {
        try database.rows(Self.query) { (pipeline: $0.integer(9), rejection: Self.rejection($0)) }.compactMap {
            row in
            row.rejection.map { (row.pipeline, $0) }
        }
    }

    /// The pipelines whose rejected content need not be kept any more.
    func pipelines(over now: WallTime) throws(SQLiteError) -> [String] {
        try database.rows(
            "SELECT p.name FROM rejected r JOIN pipelines p ON p.id = r.pipeline WHERE r.rejected_at <= ?",
            .time(now.advanced(by: .zero - CacheLimits.rejectedAge))
        ) { $0.text(0) }
    }

    /// Stores the rejected content of a pipeline, in the place of the previous one.
    func set(_ rejection: IndexedRejection?, of pipeline: Int64) throws(SQLiteError) {
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

    private static let query = """
        SELECT digest, size, rejected_at, reason, truncated, expires, url, entity_tag, last_modified, pipeline FROM rejected
        """

    private static func rejection(_ row: borrowing SQLiteRow) -> IndexedRejection? {
        guard let digest = row.digest(0) else { return nil }
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
