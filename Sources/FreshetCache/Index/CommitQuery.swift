import FreshetModel

/// What a commit needs to know of a pipeline.
struct IndexedCommit: Sendable {
    /// Nil: the index has no such pipeline.
    var pipeline: IndexedPipeline?
    /// The current generation, published or withdrawn.
    var publication: IndexedPublication?
    /// The pinned or the current generation.
    var held: IndexedGeneration?
    /// The digest of the rejected content.
    var rejected: ContentDigest?
}

/// Reads what a commit needs to know before it decides, with one query over several tables: a commit waits for the index
/// once.
struct CommitQuery {
    let database: SQLiteDatabase

    /// The columns of ``PipelineTable/pipeline(_:)``, that of the rejected content, and those of
    /// ``GenerationTable/generation(_:at:)``.
    private static let query = """
        SELECT p.id, p.name, p.file, p.current, p.last_number, p.origin_digest, p.pin_number, p.pin_digest, p.pinned_at,
            p.check_digest, p.is_set, p.former_set, p.withdrawn_at,
            r.digest,
            g.number, g.digest, g.size, g.committed_at, g.run, g.inode, g.modified, g.changed, g.truncated,
            g.content_expires
        FROM pipelines p
        LEFT JOIN rejected r ON r.pipeline = p.id
        LEFT JOIN generations g ON g.pipeline = p.id AND g.number = p.current
        WHERE p.name = ?
        """

    func row(of name: String) throws(SQLiteError) -> IndexedCommit {
        let known = try database.row(Self.query, .text(name)) { row in
            let pipeline = PipelineTable.pipeline(row)
            // Without a generation all its columns are NULL, so it has no digest.
            let generation = pipeline.current == nil ? nil : GenerationTable.generation(row, at: 14)
            let publication: IndexedPublication? =
                if let file = pipeline.file, let generation {
                    IndexedPublication(pipeline: pipeline, file: file, generation: generation)
                } else { nil }
            return IndexedCommit(
                pipeline: pipeline, publication: publication, held: generation, rejected: row.digest(13))
        }
        guard var known, let pipeline = known.pipeline else { return IndexedCommit() }
        if let pinned = pipeline.pin?.content.number, pinned != pipeline.current {
            known.held = try GenerationTable(database: database).row(pinned, of: pipeline.id)
        }
        return known
    }
}
