/// Finds the content to remove when space is needed.
struct RemovalQuery {
    let database: SQLiteDatabase

    /// The content to remove, in this order: content that the requesting commit removes anyway; rejected content;
    /// generations, the oldest of all pipelines first. The current and the pinned generation are never removed.
    ///
    /// - Parameters:
    ///   - bytes: the needed bytes. If less can be removed, all of it is returned.
    ///   - skipped: pipelines whose content is not removed.
    ///   - isSpared: whether this content is not removed.
    func content(
        _ bytes: Int64, for spaceRequest: SpaceRequest?, skipping skipped: Set<String>,
        _ isSpared: (RemovableContent) -> Bool = { _ in false }
    ) throws(SQLiteError) -> [RemovableContent] {
        var found = RemovalCandidates(needed: bytes, skipped: skipped)
        if let spaceRequest, spaceRequest.holdsLock { try addOwn(of: spaceRequest, to: &found, isSpared) }
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

    /// Adds the content that the requesting commit removes anyway.
    private func addOwn(
        of spaceRequest: SpaceRequest, to found: inout RemovalCandidates, _ isSpared: (RemovableContent) -> Bool
    ) throws(SQLiteError) {
        guard let row = try PipelineTable(database: database).row(spaceRequest.pipeline) else { return }
        if spaceRequest.isRejection {
            if let rejected = try RejectedTable(database: database).row(of: row.id) {
                found.add(RemovableContent(rejected, of: row.name), unless: isSpared)
            }
        } else if spaceRequest.source == nil {
            let old = try GenerationTable(database: database).all(of: row.id).filter { !row.holds($0.content) }
            // The current generation will be one of those that are kept.
            for generation in old.dropLast(max(0, spaceRequest.keep - (row.current == nil ? 1 : 2))) {
                found.add(RemovableContent(generation, of: row.name), unless: isSpared)
            }
        }
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
