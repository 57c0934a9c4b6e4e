import CSQLite
import Testing

@testable import FreshetCache

@Suite("The schema of the index")
struct IndexSchemaTests {
    /// The texts that ALTER TABLE leaves are those of one version of SQLite.
    private static let isOfTestedVersion = sqlite3_libversion_number() / 1000 == 3040

    private func newest() throws -> SQLiteDatabase {
        let database = try SQLiteDatabase(path: ":memory:", busyTimeout: 0)
        for step in CacheIndex.migrations { try database.execute(step) }
        return database
    }

    @Test("a new index is recognised by its texts alone", .enabled(if: isOfTestedVersion))
    func texts() throws {
        let database = try newest()
        let hash = String(try IndexSchema.textHash(of: database), radix: 16)
        #expect(try IndexSchema.isOfNewestFormat(database), "the hash of the texts is 0x\(hash)")
    }

    @Test("the tables of ANALYZE do not matter", .enabled(if: isOfTestedVersion))
    func analyzed() throws {
        let database = try newest()
        try database.execute("INSERT INTO pipelines (name) VALUES ('a'); ANALYZE")
        #expect(try IndexSchema.isOfNewestFormat(database))
    }

    @Test(
        "any other text is examined",
        arguments: [
            "ALTER TABLE runs ADD COLUMN other TEXT", "CREATE TABLE sqliteXstat (x ANY) STRICT",
            "CREATE TRIGGER t AFTER INSERT ON runs BEGIN SELECT 1; END", "DROP INDEX generations_by_age",
            "ALTER TABLE runs RENAME COLUMN error TO errors",
        ])
    func changed(_ change: String) throws {
        let database = try newest()
        try database.execute(change)
        #expect(try !IndexSchema.isOfNewestFormat(database))
    }
}
