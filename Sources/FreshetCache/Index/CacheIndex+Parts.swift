extension CacheIndex {
    mutating func part(_ part: String, of name: String) throws(SQLiteError) -> SnapshotPart? {
        try database.row(
            """
            SELECT t.binding, t.entity_tag, t.last_modified, t.value
            FROM parts t JOIN pipelines p ON p.id = t.pipeline WHERE p.name = ? AND t.name = ?
            """, .text(name), .text(part)
        ) {
            SnapshotPart(
                binding: $0.text(0), entityTag: $0.optionalText(1), lastModified: $0.optionalText(2), value: $0.blob(3))
        }
    }

    mutating func partNames(of pipeline: Int64) throws(SQLiteError) -> [String] {
        try database.rows("SELECT name FROM parts WHERE pipeline = ?", .integer(pipeline)) { $0.text(0) }
    }

    mutating func forgetPart(_ name: String, of pipeline: Int64) throws(SQLiteError) {
        try database.run("DELETE FROM parts WHERE pipeline = ? AND name = ?", .integer(pipeline), .text(name))
    }

    mutating func put(_ part: SnapshotPart, as name: String, of pipeline: Int64) throws(SQLiteError) {
        try database.run(
            "INSERT OR REPLACE INTO parts VALUES (?, ?, ?, ?, ?, ?)", .integer(pipeline), .text(name),
            .text(part.binding), SQLiteValue(part.entityTag), SQLiteValue(part.lastModified), .blob(part.value))
    }
}
