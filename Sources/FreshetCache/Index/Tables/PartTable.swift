import FreshetModel

/// The parts of snapshots that are composed of many responses, with the pages of each that can be continued.
struct PartTable {
    let database: SQLiteDatabase

    func row(_ part: String, of name: String) throws(SQLiteError) -> StoredPart? {
        try database.row(
            """
            SELECT t.binding, t.entity_tag, t.last_modified, t.value, g.count, g.next, g.items, g.token
            FROM parts t JOIN pipelines p ON p.id = t.pipeline
            LEFT JOIN pages g ON g.pipeline = t.pipeline AND g.name = t.name
            WHERE p.name = ? AND t.name = ?
            """, .text(name), .text(part)
        ) { row in
            var pages: StoredPages?
            if row.optionalInteger(4) != nil {
                // An unreadable bookmark counts as missing: no further page can be loaded before the next check.
                pages = StoredPages(
                    items: row.blob(6), count: Int(clamping: row.count(4)),
                    next: row.optionalText(5).flatMap { PageBookmark($0) }, token: row.optionalText(7))
            }
            return StoredPart(
                binding: row.text(0),
                validators: Validators(entityTag: row.optionalText(1), lastModified: row.optionalText(2)),
                value: row.blob(3), pages: pages)
        }
    }

    func names(of pipeline: Int64) throws(SQLiteError) -> [String] {
        try database.rows("SELECT name FROM parts WHERE pipeline = ?", .integer(pipeline)) { $0.text(0) }
    }

    /// Deletes a part and its pages.
    func forget(_ name: String, of pipeline: Int64) throws(SQLiteError) {
        try database.run("DELETE FROM parts WHERE pipeline = ? AND name = ?", .integer(pipeline), .text(name))
    }

    func put(_ part: StoredPart, as name: String, of pipeline: Int64) throws(SQLiteError) {
        try forget(name, of: pipeline)
        try database.run(
            "INSERT INTO parts VALUES (?, ?, ?, ?, ?, ?)", .integer(pipeline), .text(name),
            .text(part.binding), SQLiteValue(part.validators.entityTag),
            SQLiteValue(part.validators.lastModified), .blob(part.value))
        guard let pages = part.pages else { return }
        try database.run(
            "INSERT INTO pages VALUES (?, ?, ?, ?, ?, ?)", .integer(pipeline), .text(name),
            .integer(Int64(pages.count)),
            SQLiteValue(pages.next?.description), SQLiteValue(pages.token), .blob(pages.items))
    }

    /// The parts whose pages can be continued, by the names of the pipelines; of one pipeline, or of all.
    func pages(of name: String? = nil) throws(SQLiteError) -> [String: [StoredPagesState]] {
        let rows = try database.rows(
            """
            SELECT p.name, g.name, g.count, g.next IS NOT NULL FROM pages g JOIN pipelines p ON p.id = g.pipeline
            WHERE ?1 IS NULL OR p.name = ?1
            """, SQLiteValue(name)
        ) { row in
            (
                pipeline: row.text(0),
                state: StoredPagesState(part: row.text(1), count: Int(clamping: row.count(2)), hasMore: row.flag(3))
            )
        }
        return rows.reduce(into: [:]) { $0[$1.pipeline, default: []].append($1.state) }
    }
}
