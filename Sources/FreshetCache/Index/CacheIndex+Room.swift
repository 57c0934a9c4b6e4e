/// How much content there is, and what of it may go.
extension CacheIndex {
    /// Has SQLite keep the sum of all content that the index knows, in the same transactions as the rows themselves.
    ///
    /// The sum lives in memory: it costs no write and cannot be out of step with a file that somebody else changed.
    static func countContent(_ database: inout SQLiteDatabase) throws(SQLiteError) {
        try database.execute(
            """
            PRAGMA recursive_triggers = ON;
            CREATE TEMP TABLE usage (bytes INTEGER NOT NULL);
            INSERT INTO usage SELECT
                CAST((SELECT total(size) FROM generations) + (SELECT total(size) FROM refused) AS INTEGER);
            """)
        // A row that is replaced is deleted first, as recursive triggers see it.
        for table in ["generations", "refused"] {
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

    /// Bytes of all generations and of all that is kept aside.
    mutating func usage() throws(SQLiteError) -> Int64 {
        try database.row("SELECT bytes FROM usage") { max(0, $0.integer(0)) } ?? 0
    }

    /// What goes first when room is needed, in that order: what the asker's commit removes anyway; what checks refused;
    /// generations, the oldest of all first. Never the current or the pinned one.
    ///
    /// - Parameters:
    ///   - bytes: how much is needed. All there is, if it has less.
    ///   - passedOver: pipelines that are not to be touched.
    ///   - isSpared: content that is not.
    mutating func expendable(
        _ bytes: Int64, for asker: SpaceRequest?, passingOver passedOver: Set<String>,
        _ isSpared: (RemovableContent) -> Bool = { _ in false }
    ) throws(SQLiteError) -> [RemovableContent] {
        var found = RemovalCandidates(needed: bytes, passedOver: passedOver)
        if let asker, asker.holdsLock, let row = try pipeline(asker.pipeline) {
            if asker.isRefusal {
                if let refused = try refused(of: row.id) {
                    found.add(RemovableContent(refused, of: row.name), unless: isSpared)
                }
            } else if asker.source == nil {
                let old = try generations(of: row.id).filter { !row.holds($0.content) }
                // The current one will be one of those that are kept.
                for generation in old.dropLast(max(0, asker.keep - (row.current == nil ? 1 : 2))) {
                    found.add(RemovableContent(generation, of: row.name), unless: isSpared)
                }
            }
        }
        guard !found.isEnough else { return found.content }
        try database.walk(
            """
            SELECT p.name, r.digest, r.size FROM refused r JOIN pipelines p ON p.id = r.pipeline ORDER BY r.refused_at
            """
        ) { row in
            found.add(
                RemovableContent(pipeline: row.text(0), number: nil, digest: row.blob(1), size: row.size(2)),
                unless: isSpared)
        }
        guard !found.isEnough, asker?.isRefusal != true else { return found.content }
        try database.walk(
            """
            SELECT p.name, g.digest, g.size, g.number
            FROM generations g CROSS JOIN pipelines p ON p.id = g.pipeline
            WHERE g.number IS NOT p.current AND (g.number IS NOT p.pin_number OR g.digest IS NOT p.pin_digest)
            ORDER BY g.committed_at, g.pipeline, g.number
            """
        ) { row in
            found.add(
                RemovableContent(
                    pipeline: row.text(0), number: row.number(3), digest: row.blob(1), size: row.size(2)),
                unless: isSpared)
        }
        return found.content
    }

    /// Forgets content that is to go; false if it may not go any more, or has gone.
    mutating func forget(_ content: RemovableContent) throws(SQLiteError) -> Bool {
        guard let row = try pipeline(content.pipeline) else { return false }
        guard let stored = content.stored else {
            guard try refused(of: row.id)?.digest == content.digest else { return false }
            try setRefused(nil, of: row.id)
            return true
        }
        guard !row.holds(stored), try generation(stored.number, of: row.id)?.content == stored else { return false }
        try forget(generation: stored.number, of: row.id)
        return true
    }

    /// Expendable content, until it is enough.
    private struct RemovalCandidates {
        let needed: Int64
        let passedOver: Set<String>
        private(set) var content: [RemovableContent] = []
        private var seen: Set<RemovableContent> = []
        private var bytes: Int64 = 0

        init(needed: Int64, passedOver: Set<String>) {
            (self.needed, self.passedOver) = (needed, passedOver)
        }

        var isEnough: Bool { bytes >= needed }

        /// - Returns: whether more is needed.
        @discardableResult
        mutating func add(_ item: RemovableContent?, unless isSpared: (RemovableContent) -> Bool) -> Bool {
            if isEnough { return false }
            guard let item, !passedOver.contains(item.pipeline), !isSpared(item), seen.insert(item).inserted else {
                return true
            }
            content.append(item)
            bytes = bytes.addingClamped(item.size)
            return !isEnough
        }
    }
}

extension IndexedPipeline {
    /// It is the current generation, or the pinned one.
    fileprivate func holds(_ content: StoredContent) -> Bool {
        content.number == current || content == pin?.content
    }
}
