package import FreshetModel
import Synchronization

/// Content that a check rejected, which is kept for inspection.
package struct RejectedStore: Sendable {
    let context: CacheContext
    let committer: Committer
    let publisher: GenerationPublisher
    let opener: ContentOpener
    let space: CacheSpace
    let files: RejectedFiles

    /// The rejected content of a pipeline, if it is still kept.
    package func candidate(_ pipeline: String, at now: WallTime) throws(CacheError) -> RejectedCandidate? {
        try CacheName.check(pipeline)
        let known = try context.withIndex { (index) throws(SQLiteError) -> IndexedRejection? in
            guard let row = try index.pipelines.row(pipeline) else { return nil }
            return try index.rejected.row(of: row.id)
        }
        guard let known, known.isKept(at: now) else { return nil }
        return known.candidate
    }

    /// Whether this is the rejected content of the pipeline, and its file still exists.
    package func keeps(_ pipeline: String, _ digest: ContentDigest, at now: WallTime) throws(CacheError) -> Bool {
        guard let known = try candidate(pipeline, at: now), known.digest == digest else { return false }
        return try context.onFiles { (files) throws(SystemCallError) in
            try files.status(context.layout.rejected(known.digest, of: pipeline)).map { $0.identity.size == known.size }
                ?? false
        }
    }

    /// Opens the rejected content, as ``GenerationStore/open(_:of:for:)`` opens a generation.
    ///
    /// - Returns: nil if the reader may not read it.
    /// - Throws: ``CacheError/noCandidate`` if there is no rejected content, or if its file is missing or changed.
    package func open(
        of pipeline: String, for reader: FileReader, at now: WallTime
    ) throws(CacheError) -> StoredGeneration? {
        try CacheName.check(pipeline)
        let (row, known) = try context.withIndex {
            (index) throws(SQLiteError) -> (IndexedPipeline?, IndexedRejection?) in
            guard let row = try index.pipelines.row(pipeline) else { return (nil, nil) }
            return (row, try index.rejected.row(of: row.id))
        }
        guard let row, let known, known.isKept(at: now) else { throw .noCandidate }
        do throws(CacheError) {
            return try opener.open(
                context.layout.rejected(known.digest, of: pipeline), known.digest, publishedAt: row.file, for: reader)
        } catch .unreadable {
            throw .noCandidate
        }
    }

    /// Publishes the rejected content as a new generation. Checks no longer reject this content, as long as a
    /// generation with it is kept. The change survives a power cut.
    ///
    /// - Parameter expected: the beginning of the digest of the expected content, in hexadecimal digits; nil: any
    ///   content.
    /// - Throws: ``CacheError/noCandidate``, ``CacheError/otherCandidate(_:)``, ``CacheError/pinned(_:)``, and the
    ///   errors of a commit.
    package func accept(
        _ destination: CacheDestination, _ expected: String? = nil, at now: WallTime
    ) throws(CacheError) -> RollbackOutcome {
        try CacheName.check(destination.pipeline)
        try CacheName.check(destination.file)
        return try context.entry(destination.pipeline).withLock { (state) throws(CacheError) in
            let publication = try publisher.publication(for: destination, &state)
            let (row, known) = try context.withIndex { (index) throws(SQLiteError) in
                let row = try index.pipelines.ensure(destination.pipeline)
                return (row, try index.rejected.row(of: row.id))
            }
            guard let known, known.isKept(at: now) else { throw .noCandidate }
            if let expected, !known.digest.description.hasPrefix(expected.lowercased()) {
                throw .otherCandidate(known.digest)
            }
            if let pin = row.pin { throw .pinned(pin.content.number) }
            if let publication, publication.generation.content.digest == known.digest {
                // The content has passed a check since.
                try settle(known, of: row)
                return RollbackOutcome(
                    generation: publication.generation(at: context.layout.location(publication.file)), replaced: nil)
            }
            return try publish(
                known, as: row, destination, &state, replacing: publication?.generation.content.number, at: now)
        }
    }

    // MARK: Inside

    /// The causes of an accepted generation in the history, as for hooks.
    private static let acceptedCauses = "accept"

    private func isAccepted(_ digest: ContentDigest, of pipeline: String) throws(CacheError) -> Bool {
        try context.withIndex { (index) throws(SQLiteError) in
            guard let row = try index.pipelines.row(pipeline) else { return false }
            return try index.accepted.contains(digest, of: row.id)
        }
    }

    /// Keeps a candidate as rejected content, or commits it if a user accepted the same content before.
    func reject(
        _ candidate: Candidate, for destination: CacheDestination, because reason: String, _ check: Committer.Check
    ) throws(CacheError) -> RejectionOutcome {
        if try isAccepted(candidate.digest, of: destination.pipeline) {
            return .accepted(try committer.commit(candidate, to: destination, check))
        }
        let rejection = IndexedRejection(
            digest: candidate.digest, size: candidate.size, rejectedAt: check.at, reason: reason,
            truncated: candidate.truncated, expires: check.expires, validators: check.validators.first)
        return try keep(candidate, rejection, for: destination)
    }

    private func keep(
        _ candidate: Candidate, _ rejection: IndexedRejection, for destination: CacheDestination
    ) throws(CacheError) -> RejectionOutcome {
        try context.entry(destination.pipeline).withLock { (state) throws(CacheError) in
            let publication = try publisher.publication(for: destination, &state)
            if publication?.generation.content.digest == candidate.digest {
                try context.onFiles { (files) throws(SystemCallError) in try files.unlink(candidate.path) }
                return .isCopy(candidate.digest)
            }
            try space.free(for: candidate.size, SpaceRequest(destination, holdsLock: true, isRejection: true))
            let isKnown = try context.withIndex { (index) throws(SQLiteError) in
                try index.pipelines.row(destination.pipeline).flatMap { (row) throws(SQLiteError) in
                    try index.rejected.row(of: row.id)?.digest
                } == candidate.digest
            }
            // Readers of the copy may also read the rejected content.
            try publisher.seal(candidate, destination)
            try context.onFiles { (files) throws(SystemCallError) in
                try files.rename(
                    candidate.path, to: context.layout.rejected(candidate.digest, of: destination.pipeline))
            }
            let (isStored, before): (Bool, IndexedRejection?)
            do throws(CacheError) {
                (isStored, before) = try context.contentTransaction(of: candidate.token) {
                    (index) throws(SQLiteError) -> (Bool, IndexedRejection?) in
                    // A reload may have assigned another file, or changed the pipeline from one file to several files or
                    // the reverse.
                    guard try index.pipelines.row(assigned: destination) != nil else { return (false, nil) }
                    let row = try index.pipelines.ensure(destination.pipeline)
                    let before = try index.rejected.row(of: row.id)
                    try index.rejected.set(rejection, of: row.id)
                    return (true, before)
                }
            } catch {
                // The file may have content that was rejected before, which the index still has.
                if !isKnown { files.remove(candidate.digest, of: destination.pipeline) }
                throw error
            }
            guard isStored else {
                files.remove(candidate.digest, of: destination.pipeline)
                throw .reassigned(destination.pipeline)
            }
            if let before, before.digest != candidate.digest { files.remove(before.digest, of: destination.pipeline) }
            return .kept(rejection.candidate)
        }
    }

    /// Records that the content was accepted, and removes it from the rejected content.
    private func settle(_ known: IndexedRejection, of row: IndexedPipeline) throws(CacheError) {
        try context.transaction(isDurable: true) { (index) throws(SQLiteError) in
            try index.accepted.add(known.digest, of: row.id)
            try index.rejected.set(nil, of: row.id)
        }
        files.remove(known.digest, of: row.name)
    }

    private func publish(
        _ known: IndexedRejection, as row: IndexedPipeline, _ destination: CacheDestination,
        _ state: inout PipelineEntry.State, replacing current: Int64?, at now: WallTime
    ) throws(CacheError) -> RollbackOutcome {
        let success = try context.withIndex { (index) throws(SQLiteError) in
            try index.pipelines.refreshState(of: destination.pipeline)?.lastSuccess
        }
        // If there was no success since, this is a check that succeeds late. Otherwise the origin has other content,
        // which is held back as after a rollback.
        let isNewest = success.map { $0 <= known.rejectedAt } ?? true
        let origin = isNewest ? nil : row.originDigest ?? row.checkDigest
        // This is recorded before readers see it, so that after a crash the next check does not undo it; the validators
        // do not count yet.
        try context.transaction(isDurable: true) { (index) throws(SQLiteError) in
            try index.pipelines.setOriginDigest(origin, of: row.id)
            try index.validators.put([known.validators].compactMap(\.self), for: known.digest, of: row.id)
            try index.accepted.add(known.digest, of: row.id)
        }
        let generation = IndexedGeneration(
            content: StoredContent(number: IndexBounds.next(after: row.lastNumber), digest: known.digest),
            committedAt: now, run: nil,
            identity: .none, truncated: known.truncated)
        let path = context.layout.rejected(known.digest, of: destination.pipeline)
        let outcome: RollbackOutcome
        do throws(CacheError) {
            outcome = try publisher.outcome(of: generation.content, replacing: current, in: destination, &state) {
                (state) throws(CacheError) in
                try publisher.publish(copyOf: path, as: generation, of: row, destination, &state) {
                    (index, pipeline) throws(SQLiteError) in
                    try index.rejected.set(nil, of: row.id)
                    try index.history.setCauses(
                        Self.acceptedCauses, ofGeneration: generation.content.number, of: row.id)
                    // When the content was rejected, all of the source had been requested.
                    if isNewest {
                        try index.pipelines.recordSuccess(
                            of: row.id, known.digest, at: known.rejectedAt, expires: known.expires)
                        pipeline.checkDigest = known.digest
                    }
                }
            }
        } catch .unreadable {
            throw .noCandidate
        }
        if outcome.failure == nil { files.remove(known.digest, of: destination.pipeline) }
        return outcome
    }
}

extension IndexedRejection {
    /// Whether the content is still kept. If the clock was set back, it is kept longer.
    func isKept(at now: WallTime) -> Bool {
        now < candidate.keptUntil
    }
}
