/// The size of all content, and the content that may be removed.
extension CacheIndex {
    /// Creates triggers that keep the sum of the sizes of all content in the index, in the same transactions as the
    /// rows themselves.
    ///
    /// The sum is in a temporary table in memory: it costs no write and cannot disagree with a file that another
    /// program changed.
    static func countContent(_ database: inout SQLiteDatabase) throws(SQLiteError) {
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
    mutating func usage() throws(SQLiteError) -> Int64 {
        try database.row("SELECT bytes FROM usage") { max(0, $0.integer(0)) } ?? 0
    }

    /// The content to remove when space is needed, in this order: content that the requesting commit removes anyway;
    /// rejected content; generations, the oldest of all pipelines first. The current and the pinned generation are
    /// never removed.
    ///
    /// - Parameters:
    ///   - bytes: the needed bytes. If less can be removed, all of it is returned.
    ///   - skipped: pipelines whose content is not removed.
    ///   - isSpared: whether this content is not removed.
    mutating func expendable(
        _ bytes: Int64, for spaceRequest: SpaceRequest?, skipping skipped: Set<String>,
        _ isSpared: (RemovableContent) -> Bool = { _ in false }
    ) throws(SQLiteError) -> [RemovableContent] {
        var found = RemovalCandidates(needed: bytes, skipped: skipped)
        if let spaceRequest, spaceRequest.holdsLock, let row = try pipeline(spaceRequest.pipeline) {
            if spaceRequest.isRejection {
                if let rejected = try rejected(of: row.id) {
                    found.add(RemovableContent(rejected, of: row.name), unless: isSpared)
                }
            } else if spaceRequest.source == nil {
                let old = try generations(of: row.id).filter { !row.holds($0.content) }
                // The current generation will be one of those that are kept.
                for generation in old.dropLast(max(0, spaceRequest.keep - (row.current == nil ? 1 : 2))) {
                    found.add(RemovableContent(generation, of: row.name), unless: isSpared)
                }
            }
        }
        guard !found.isEnough else { return found.content }
        try database.walk(
            """
            SELECT p.name, r.digest, r.size FROM rejected r JOIN pipelines p ON p.id = r.pipeline ORDER BY r.rejected_at
            """
        ) { row in
            found.add(
                RemovableContent(pipeline: row.text(0), number: nil, digest: row.blob(1), size: row.size(2)),
                unless: isSpared)
        }
        guard !found.isEnough, spaceRequest?.isRejection != true else { return found.content }
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

    /// Removes the row of content that is to be removed. Returns false if the content must stay now, or no longer
    /// exists.
    mutating func forget(_ content: RemovableContent) throws(SQLiteError) -> Bool {
        guard let row = try pipeline(content.pipeline) else { return false }
        guard let stored = content.stored else {
            guard try rejected(of: row.id)?.digest == content.digest else { return false }
            try setRejected(nil, of: row.id)
            return true
        }
        guard !row.holds(stored), try generation(stored.number, of: row.id)?.content == stored else { return false }
        try forget(generation: stored.number, of: row.id)
        return true
    }

    /// Collects removable content until it is enough.
    private struct RemovalCandidates {
        let needed: Int64
        let skipped: Set<String>
        private(set) var content: [RemovableContent] = []
        private var seen: Set<RemovableContent> = []
        private var bytes: Int64 = 0

        init(needed: Int64, skipped: Set<String>) {
            (self.needed, self.skipped) = (needed, skipped)
        }

        var isEnough: Bool { bytes >= needed }

        /// - Returns: whether more is needed.
        @discardableResult
        mutating func add(_ item: RemovableContent?, unless isSpared: (RemovableContent) -> Bool) -> Bool {
            if isEnough { return false }
            guard let item, !skipped.contains(item.pipeline), !isSpared(item), seen.insert(item).inserted else {
                return true
            }
            content.append(item)
            bytes = bytes.addingClamped(item.size)
            return !isEnough
        }
    }
}

extension IndexedPipeline {
    /// Whether this is the current or the pinned generation.
    fileprivate func holds(_ content: StoredContent) -> Bool {
        content.number == current || content == pin?.content
    }
}
