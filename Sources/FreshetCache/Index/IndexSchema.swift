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
