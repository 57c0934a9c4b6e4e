package import FreshetModel
import Synchronization

/// The generations of pipelines: their history and content, rollbacks and pins.
package struct GenerationStore: Sendable {
    let context: CacheContext
    let verifier: PublicationVerifier
    let publisher: GenerationPublisher
    let opener: ContentOpener

    /// The newest generations of a pipeline, newest first: those whose content is kept, and earlier ones up to
    /// ``CacheLimits/historyPerPipeline``.
    package func history(_ pipeline: String, limit: Int = .max) throws(CacheError) -> [PastGeneration] {
        try context.withIndex { (index) throws(SQLiteError) in
            guard let row = try index.pipelines.row(pipeline) else { return [] }
            return try index.history.newest(max(0, limit), of: row.id)
        }
    }

    /// Opens the content of a kept generation. The content can be read to its end even if commits remove the generation
    /// meanwhile. It is read once to verify its digest.
    ///
    /// - Parameter reader: the user who reads the content.
    /// - Returns: nil if the user may not read it: the modes of its file and of the published file, and those of the
    ///   directories above that, would not allow the user to read the copy if this were the copy.
    /// - Throws: ``CacheError/notKept(_:kept:)``; ``CacheError/damaged(_:)`` if its digest is wrong.
    package func open(
        _ number: Int64, of pipeline: String, for reader: FileReader
    ) throws(CacheError) -> StoredGeneration? {
        try CacheName.check(pipeline)
        let (row, content) = try kept(number, of: pipeline)
        do throws(CacheError) {
            return try openContent(content, of: row, for: reader)
        } catch .damaged {
            // A commit may have removed it since; that is not damage.
            _ = try kept(number, of: pipeline)
            throw .damaged(number)
        }
    }

    /// The kept generation with this number.
    private func kept(
        _ number: Int64, of pipeline: String
    ) throws(CacheError) -> (row: IndexedPipeline, content: StoredContent) {
        let (row, kept) = try context.withIndex {
            (index) throws(SQLiteError) -> (IndexedPipeline?, [IndexedGeneration]) in
            guard let row = try index.pipelines.row(pipeline) else { return (nil, []) }
            return (row, try index.generations.all(of: row.id))
        }
        guard let row, let generation = kept.first(where: { $0.content.number == number }) else {
            throw .notKept(number, kept: kept.map(\.content.number))
        }
        return (row, generation.content)
    }

    private func openContent(
        _ content: StoredContent, of row: IndexedPipeline, for reader: FileReader
    ) throws(CacheError) -> StoredGeneration? {
        do throws(CacheError) {
            return try opener.open(
                context.layout.generation(content, of: row.name), content.digest, publishedAt: row.file, for: reader)
        } catch .unreadable {
            throw .damaged(content.number)
        }
    }

    /// The history entry of a generation, and the path of its content; the path is nil if the content is no longer
    /// kept.
    package func find(
        _ identity: GenerationIdentity, of pipeline: String
    ) throws(CacheError) -> (generation: PastGeneration, path: String?)? {
        let past = try history(pipeline).first { $0.number == identity.number && $0.digest == identity.digest }
        return past.map { past in
            let content = StoredContent(number: past.number, digest: past.digest)
            return (past, past.isKept ? context.layout.generation(content, of: pipeline) : nil)
        }
    }

    /// Makes a kept generation the current one again, under its own number.
    ///
    /// A rollback is like a commit: the content is copied into a candidate, which verifies its digest and gives the
    /// copy the present mode, group and modification time; then the candidate is published. So readers see a complete
    /// generation at any moment, and a crash leaves the same states as a crash of a commit.
    ///
    /// The content that the origin had at the last check does not come back by itself: a check that finds it again
    /// declines it. Other content is published. The change survives a power cut.
    ///
    /// - Parameter number: nil: the newest generation before the current one, even if the published file of the current
    ///   one is missing.
    /// - Throws: ``CacheError/pinned(_:)``, ``CacheError/notKept(_:kept:)``, ``CacheError/damaged(_:)``, and the errors
    ///   of a commit.
    package func rollBack(
        _ destination: CacheDestination, to number: Int64?
    ) throws(CacheError) -> RollbackOutcome {
        try CacheName.check(destination.pipeline)
        try CacheName.check(destination.file)
        return try context.entry(destination.pipeline).withLock { (state) throws(CacheError) in
            let publication = try publisher.publication(for: destination, &state)
            let (row, kept) = try context.withIndex { (index) throws(SQLiteError) in
                let row = try index.pipelines.ensure(destination.pipeline)
                return (row, try index.generations.all(of: row.id))
            }
            if let pin = row.pin { throw .pinned(pin.content.number) }
            let current = publication?.generation.content.number
            let target =
                if let number { kept.first { $0.content.number == number } } else {
                    kept.last { $0.content.number < current ?? row.current ?? .max }
                }
            guard let target else { throw .notKept(number, kept: kept.map(\.content.number)) }
            if let publication, publication.generation.content == target.content {
                let location = context.layout.location(publication.file)
                return RollbackOutcome(generation: publication.generation(at: location), replaced: nil)
            }
            // This is recorded before readers see another generation, so that after a crash the next check does not
            // undo it.
            let origin =
                row.originDigest ?? row.checkDigest ?? kept.first { $0.content.number == row.current }?.content.digest
            try context.transaction(isDurable: true) { (index) throws(SQLiteError) in
                try index.pipelines.setOriginDigest(origin, of: row.id)
            }
            return try publisher.outcome(of: target.content, replacing: current, in: destination, &state) {
                (state) throws(CacheError) in
                try publisher.putBack(target, of: row, destination, &state) { (index, pipeline) throws(SQLiteError) in
                    pipeline.originDigest = origin == target.content.digest ? nil : origin
                    try index.pipelines.setOriginDigest(pipeline.originDigest, of: row.id)
                }
            }
        }
    }

    /// Keeps the current copy from being replaced, until ``unpin(_:)``. The change survives a power cut.
    ///
    /// - Returns: the generation; and whether it was pinned before.
    /// - Throws: ``CacheError/nothingPublished``.
    package func pin(
        _ pipeline: String, at now: WallTime
    ) throws(CacheError) -> (generation: CurrentGeneration, wasPinned: Bool) {
        try context.entry(pipeline).withLock { (state) throws(CacheError) in
            guard var publication = try verifier.verifiedPublication(of: pipeline, &state) else {
                throw .nothingPublished
            }
            let location = context.layout.location(publication.file)
            if publication.pipeline.pin != nil { return (publication.generation(at: location), true) }
            publication.pipeline.pin = IndexedPin(content: publication.generation.content, since: now)
            let (row, content) = (publication.pipeline, publication.generation.content)
            let isKept = try context.transaction(isDurable: true) { (index) throws(SQLiteError) in
                // A reload that changed the pipeline from one file to several files or the reverse has deleted this
                // generation and its pin.
                guard try index.generations.row(content.number, of: row.id)?.content == content else { return false }
                try index.pipelines.setPin(row.pin, of: row.id)
                return true
            }
            guard isKept else { throw .nothingPublished }
            return (publication.generation(at: location, revision: state.nextRevision()), false)
        }
    }

    /// Removes the pin: from the next check on, the origin's content is published again, including content that a
    /// rollback or the pin held back.
    ///
    /// - Returns: the current generation, nil if there is none; and whether it was pinned.
    package func unpin(_ pipeline: String) throws(CacheError) -> (generation: CurrentGeneration?, wasPinned: Bool) {
        try context.entry(pipeline).withLock { (state) throws(CacheError) in
            var publication = try verifier.verifiedPublication(of: pipeline, &state)
            let known = try context.withIndex { (index) throws(SQLiteError) in try index.pipelines.row(pipeline) }
            guard let known, known.pin != nil else {
                return (publication.map { $0.generation(at: context.layout.location($0.file)) }, false)
            }
            try context.transaction(isDurable: true) { (index) throws(SQLiteError) in
                try index.pipelines.setPin(nil, of: known.id)
                try index.pipelines.setOriginDigest(nil, of: known.id)
                // With the validators of its newest content, the origin would answer that nothing changed.
                try index.validators.forgetOthersThanCurrent(of: known.id)
            }
            publication?.pipeline.pin = nil
            publication?.pipeline.originDigest = nil
            let revision = state.nextRevision()
            return (publication.map { $0.generation(at: context.layout.location($0.file), revision: revision) }, true)
        }
    }
}
