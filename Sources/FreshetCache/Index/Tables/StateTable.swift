/// Small values that pipelines keep, by keys.
struct StateTable {
    let database: SQLiteDatabase

    func value(_ key: String, of name: String) throws(SQLiteError) -> [UInt8]? {
        try database.row(
            "SELECT s.value FROM state s JOIN pipelines p ON p.id = s.pipeline WHERE p.name = ? AND s.key = ?",
            .text(name), .text(key)
        ) { $0.blob(0) }
    }

    /// The values of this key, by the names of the pipelines.
    func all(_ key: String) throws(SQLiteError) -> [String: [UInt8]] {
        let rows = try database.rows(
            "SELECT p.name, s.value FROM state s JOIN pipelines p ON p.id = s.pipeline WHERE s.key = ?", .text(key)
        ) { ($0.text(0), $0.blob(1)) }
        return Dictionary(rows) { first, _ in first }
    }

    /// Sets or removes a value. Returns false if the pipeline would have too many keys.
    func set(_ value: [UInt8]?, for key: String, of pipeline: Int64) throws(SQLiteError) -> Bool {
        guard let value else {
            try database.run("DELETE FROM state WHERE pipeline = ? AND key = ?", .integer(pipeline), .text(key))
            return true
        }
        let others =
            try database.row(
                "SELECT count(*) FROM state WHERE pipeline = ? AND key <> ?", .integer(pipeline), .text(key)
            ) { $0.integer(0) } ?? 0
        guard others < CacheLimits.stateKeysPerPipeline else { return false }
        try database.run(
            "INSERT INTO state VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET value = excluded.value",
            .integer(pipeline), .text(key), .blob(value))
        return true
    }
}
