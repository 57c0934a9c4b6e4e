import FreshetModel

/// The validators of the origin, each for the content of one digest.
struct ValidatorTable {
    let database: SQLiteDatabase

    /// Stores validators for content that is or is about to become current. Validators of the same binding for other
    /// content stay until ``CacheIndex/setCurrent(_:of:)``: until then they are the valid ones.
    func put(_ validators: [BoundValidators], for digest: ContentDigest, of pipeline: Int64) throws(SQLiteError) {
        for entry in validators {
            let new = entry.validators
            guard entry.isStorable else {
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

    func row(
        boundTo binding: String, for digest: ContentDigest, of pipeline: Int64
    ) throws(SQLiteError) -> Validators? {
        try database.row(
            "SELECT entity_tag, last_modified FROM validators WHERE pipeline = ? AND url = ? AND digest = ?",
            .integer(pipeline), .text(binding), .blob(digest.bytes)
        ) { Validators(entityTag: $0.optionalText(0), lastModified: $0.optionalText(1)) }
    }

    func forgetAll(of pipeline: Int64) throws(SQLiteError) {
        try database.run("DELETE FROM validators WHERE pipeline = ?", .integer(pipeline))
    }

    /// Deletes validators, except those of this content and of the origin's content.
    func forgetOthers(than digest: ContentDigest, of pipeline: Int64) throws(SQLiteError) {
        try database.run(
            """
            DELETE FROM validators WHERE pipeline = ?1 AND digest <> ?2
                AND digest IS NOT (SELECT origin_digest FROM pipelines WHERE id = ?1)
            """, .integer(pipeline), .blob(digest.bytes))
    }

    /// Deletes validators, except those of the current generation and of the origin's content.
    func forgetOthersThanCurrent(of pipeline: Int64) throws(SQLiteError) {
        try database.run(
            """
            DELETE FROM validators WHERE pipeline = ?1
                AND digest IS NOT (SELECT origin_digest FROM pipelines WHERE id = ?1)
                AND digest IS NOT (SELECT g.digest FROM pipelines p JOIN generations g
                    ON g.pipeline = p.id AND g.number = p.current WHERE p.id = ?1)
            """, .integer(pipeline))
    }
}
