/// The size of all content: a sum in a temporary table, which triggers keep.
struct ContentUsage {
    let database: SQLiteDatabase

    /// Creates triggers that keep the sum of the sizes of all content in the index, in the same transactions as the
    /// rows themselves.
    ///
    /// The sum is in a temporary table in memory: it costs no write and cannot disagree with a file that another
    /// program changed.
    func start() throws(SQLiteError) {
        try database.execute(
            """
            PRAGMA recursive_triggers = ON;
            CREATE TEMP TABLE usage (bytes INTEGER NOT NULL);
            INSERT INTO usage SELECT
                CAST((SELECT total(size) FROM generations) + (SELECT total(size) FROM rejected) AS INTEGER);
            """)
        // With recursive triggers, a row that is replaced fires the delete trigger first.
        for table in ["generations", "rejected"] {
            try database.execute(
                """
                CREATE TEMP TRIGGER \(table)_came AFTER INSERT ON main.\(table)
                    BEGIN UPDATE usage SET bytes = bytes + new.size; END;
                CREATE TEMP TRIGGER \(table)_went AFTER DELETE ON main.\(table)
                    BEGIN UPDATE usage SET bytes = bytes - old.size; END;
                CREATE TEMP TRIGGER \(table)_grew AFTER UPDATE OF size ON main.\(table)
                    BEGIN UPDATE usage SET bytes = bytes - old.size + new.size; END;
                """)
        }
    }

    /// Bytes of all generations and of all rejected content that is kept.
    func bytes() throws(SQLiteError) -> Int64 {
        try database.row("SELECT bytes FROM usage") { max(0, $0.integer(0)) } ?? 0
    }
}
