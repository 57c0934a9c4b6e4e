/// The parameters that are set; a parameter with its default value has no row.
struct ParameterTable {
    let database: SQLiteDatabase

    /// The values by the names of the pipelines and of the parameters; of one pipeline, or of all.
    func all(of name: String? = nil) throws(SQLiteError) -> [String: [String: String]] {
        let rows = try database.rows(
            """
            SELECT p.name, s.name, s.value FROM parameters s JOIN pipelines p ON p.id = s.pipeline
            WHERE ?1 IS NULL OR p.name = ?1
            """, SQLiteValue(name)
        ) { row in (pipeline: row.text(0), name: row.text(1), value: row.text(2)) }
        return rows.reduce(into: [:]) { $0[$1.pipeline, default: [:]][$1.name] = $1.value }
    }

    /// Replaces the parameters of a pipeline.
    func set(_ values: [String: String], of pipeline: Int64) throws(SQLiteError) {
        try database.run("DELETE FROM parameters WHERE pipeline = ?", .integer(pipeline))
        for (name, value) in values {
            try database.run(
                "INSERT INTO parameters VALUES (?, ?, ?)", .integer(pipeline), .text(name), .text(value))
        }
    }
}
