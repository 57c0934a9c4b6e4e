import FreshetModel

/// The requests that count against budgets.
struct RequestTable {
    let database: SQLiteDatabase

    /// The requests by the names of the pipelines; of one pipeline, or of all.
    func all(of name: String? = nil) throws(SQLiteError) -> [String: [RequestBurst]] {
        let rows = try database.rows(
            """
            SELECT p.name, r.first, r.last, r.count FROM requests r JOIN pipelines p ON p.id = r.pipeline
            WHERE ?1 IS NULL OR p.name = ?1
            """, SQLiteValue(name)
        ) { row in
            (
                name: row.text(0),
                spent: RequestBurst(
                    first: row.time(1), last: row.time(2),
                    count: Int(clamping: row.count(3)))
            )
        }
        return rows.reduce(into: [:]) { $0[$1.name, default: []].append($1.spent) }
    }

    /// Replaces the requests of a pipeline.
    func set(_ requests: [RequestBurst], of pipeline: Int64) throws(SQLiteError) {
        try database.run("DELETE FROM requests WHERE pipeline = ?", .integer(pipeline))
        for spent in requests {
            try database.run(
                "INSERT INTO requests VALUES (?, ?, ?, ?)", .integer(pipeline), .time(spent.first),
                .time(spent.last), .integer(Int64(spent.count).clamped(to: IndexBounds.counts)))
        }
    }
}
