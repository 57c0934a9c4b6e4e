/// The schema of a database, as SQLite interprets it: two texts of a schema with the same meaning are equal.
///
/// A flipped byte in the text of the schema makes a different schema, with which statements fail: `no such column`.
struct IndexSchema: Hashable, Sendable {
    private let lines: Set<String>

    init(of database: SQLiteDatabase) throws(SQLiteError) {
        var lines: Set<String> = []
        for query in Self.queries {
            // The tables that an administrator's ANALYZE has made are not part of the format.
            lines.formUnion(try database.rows(query) { $0.text(0) }.filter { !$0.hasPrefix("sqlite_stat") })
        }
        self.lines = lines
    }

    /// Whether the texts of the schema are those that this version gives a new index. Then their meaning need not be
    /// examined: to make the tables of a format for that would be a third of the start of a small daemon.
    static func isOfNewestFormat(_ database: SQLiteDatabase) throws(SQLiteError) -> Bool {
        try textHash(of: database) == newestTextHash
    }

    /// A hash of all texts of the schema: FNV-1a of 64 bits, because only damage has to be found, and libcrypto would
    /// have to be initialized for a digest.
    static func textHash(of database: SQLiteDatabase) throws(SQLiteError) -> UInt64 {
        var hash: UInt64 = 0xcbf2_9ce4_8422_2325
        let query = """
            SELECT type, name, tbl_name, coalesce(sql, '') FROM sqlite_schema
            WHERE substr(name, 1, 11) <> 'sqlite_stat' ORDER BY type, name
            """
        try database.walk(query) { row in
            for column in 0..<Int32(4) {
                for byte in row.text(column).utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
                // UTF-8 has no such byte.
                hash = (hash ^ 0xFF) &* 0x100_0000_01b3
            }
            return true
        }
        return hash
    }

    /// The texts after the last of ``CacheIndex/migrations``, as SQLite 3.40 writes them. If another version of SQLite
    /// writes them in another way, only the start is slower.
    private static let newestTextHash: UInt64 = 0xfedb_ec67_7318_816b

    /// The schema of an index of this format.
    init(ofFormat format: Int) throws(SQLiteError) {
        let database = try SQLiteDatabase(path: ":memory:", busyTimeout: 0)
        for step in CacheIndex.migrations.prefix(format) { try database.execute(step) }
        try self.init(of: database)
    }

    private static let queries = [
        """
        SELECT format('%s %s %s', m.name, m.type, m.tbl_name) FROM sqlite_schema m WHERE m.name NOT LIKE 'sqlite_autoindex%'
        """,
        """
        SELECT format('%s %s rowid=%d strict=%d', l.name, l.type, NOT l.wr, l.strict)
        FROM pragma_table_list l WHERE l.schema = 'main' AND l.name NOT LIKE 'sqlite_schema'
        """,
        """
        SELECT format('%s.%s %s notnull=%d default=%Q key=%d hidden=%d',
            m.name, c.name, c.type, c."notnull", c.dflt_value, c.pk, c.hidden)
        FROM sqlite_schema m JOIN pragma_table_xinfo(m.name) c WHERE m.type = 'table'
        """,
        """
        SELECT format('%s index %s unique=%d %s partial=%d: %d %s descending=%d %s key=%d',
            m.name, i.name, i."unique", i.origin, i.partial, x.seqno, x.name, x."desc", x.coll, x.key)
        FROM sqlite_schema m JOIN pragma_index_list(m.name) i JOIN pragma_index_xinfo(i.name) x WHERE m.type = 'table'
        """,
        """
        SELECT format('%s.%s refers to %s.%s as %d.%d, %s, %s, %s',
            m.name, f."from", f."table", f."to", f.id, f.seq, f.on_update, f.on_delete, f."match")
        FROM sqlite_schema m JOIN pragma_foreign_key_list(m.name) f WHERE m.type = 'table'
        """,
    ]
}
