import FreshetModel

/// The digests of rejected content that a user accepted.
struct AcceptedTable {
    let database: SQLiteDatabase

    /// Whether a user accepted this content, and a generation with it is kept.
    func contains(_ digest: ContentDigest, of pipeline: Int64) throws(SQLiteError) -> Bool {
        try database.row(
            """
            SELECT 1 FROM accepted a JOIN generations g ON g.pipeline = a.pipeline AND g.digest = a.digest
            WHERE a.pipeline = ? AND a.digest = ?
            """, .integer(pipeline), .blob(digest.bytes)
        ) { _ in true } ?? false
    }

    /// Records that a user accepted this content. The record is kept as long as a generation with this content is kept.
    func add(_ digest: ContentDigest, of pipeline: Int64) throws(SQLiteError) {
        try database.run(
            """
            DELETE FROM accepted WHERE pipeline = ?1
                AND digest NOT IN (SELECT digest FROM generations WHERE pipeline = ?1)
            """, .integer(pipeline))
        try database.run(
            "INSERT OR IGNORE INTO accepted (pipeline, digest) VALUES (?, ?)", .integer(pipeline), .blob(digest.bytes))
    }
}
