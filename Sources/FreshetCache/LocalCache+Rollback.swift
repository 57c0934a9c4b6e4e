package import FreshetModel
import Synchronization

/// The result of a rollback.
package struct RollbackOutcome: Hashable, Sendable {
    /// The generation that is current now.
    package var generation: Generation
    /// The generation that was current before; nil if there was none, or if it is the same.
    package var replaced: Int64?
    /// Why the change may not survive a power cut, although readers see it.
    package var failure: CacheError?
}

/// Rollbacks and pins.
extension LocalCache {
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
        return try entry(destination.pipeline).state.withLock { (state) throws(CacheError) in
            let publication = try publication(for: destination, &state)
            let (row, kept) = try withIndex { (index) throws(SQLiteError) in
                let row = try index.ensurePipeline(destination.pipeline)
                return (row, try index.generations(of: row.id))
            }
            if let pin = row.pin { throw .pinned(pin.content.number) }
            let current = publication?.generation.content.number
            let target =
                if let number { kept.first { $0.content.number == number } } else {
                    kept.last { $0.content.number < current ?? row.current ?? .max }
                }
            guard let target else { throw .notKept(number, kept: kept.map(\.content.number)) }
            if let publication, publication.generation.content == target.content {
                let path = layout.reader(publication.file)
                return RollbackOutcome(generation: publication.generation(path: path), replaced: nil)
            }
            // This is recorded before readers see another generation, so that after a crash the next check does not
            // undo it.
            let origin =
                row.originDigest ?? row.checkDigest ?? kept.first { $0.content.number == row.current }?.content.digest
            try transaction(isDurable: true) { (index) throws(SQLiteError) in
                try index.setOriginDigest(origin, of: row.id)
            }
            return try outcome(of: target.content, replacing: current, in: destination, &state) {
                (state) throws(CacheError) in
                try putBack(target, of: row, destination, &state) { (index) throws(SQLiteError) in
                    try index.setOriginDigest(origin == target.content.digest ? nil : origin, of: row.id)
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
    ) throws(CacheError) -> (generation: Generation, wasPinned: Bool) {
        try entry(pipeline).state.withLock { (state) throws(CacheError) in
            guard var publication = try verifiedPublication(of: pipeline, &state) else { throw .nothingPublished }
            let path = layout.reader(publication.file)
            if publication.pipeline.pin != nil { return (publication.generation(path: path), true) }
            publication.pipeline.pin = IndexedPin(content: publication.generation.content, since: now)
            let (row, content) = (publication.pipeline, publication.generation.content)
            let isKept = try transaction(isDurable: true) { (index) throws(SQLiteError) in
                // A reload that changed the pipeline from one file to several files or the reverse has deleted this
                // generation and its pin.
                guard try index.generation(content.number, of: row.id)?.content == content else { return false }
                try index.setPin(row.pin, of: row.id)
                return true
            }
            guard isKept else { throw .nothingPublished }
            return (publication.generation(path: path, revision: state.nextRevision()), false)
        }
    }

    /// Removes the pin: from the next check on, the origin's content is published again, including content that a
    /// rollback or the pin held back.
    ///
    /// - Returns: the current generation, nil if there is none; and whether it was pinned.
    package func unpin(_ pipeline: String) throws(CacheError) -> (generation: Generation?, wasPinned: Bool) {
        try entry(pipeline).state.withLock { (state) throws(CacheError) in
            var publication = try verifiedPublication(of: pipeline, &state)
            let known = try withIndex { (index) throws(SQLiteError) in try index.pipeline(pipeline) }
            guard let known, known.pin != nil else {
                return (publication.map { $0.generation(path: layout.reader($0.file)) }, false)
            }
            try transaction(isDurable: true) { (index) throws(SQLiteError) in
                try index.setPin(nil, of: known.id)
                try index.setOriginDigest(nil, of: known.id)
                // With the validators of its newest content, the origin would answer that nothing changed.
                try index.dropValidators(of: known.id)
            }
            publication?.pipeline.pin = nil
            publication?.pipeline.originDigest = nil
            let revision = state.nextRevision()
            return (publication.map { $0.generation(path: layout.reader($0.file), revision: revision) }, true)
        }
    }

    // MARK: Inside

    /// Returns the result of a change by a user. If the operation failed after readers saw the generation, the result
    /// has the generation and the failure: otherwise the change would not be reported before the next check.
    func outcome(
        of content: StoredContent, replacing current: Int64?, in destination: CacheDestination,
        _ state: inout PipelineEntry.State,
        _ body: (inout PipelineEntry.State) throws(CacheError) -> Generation
    ) throws(CacheError) -> RollbackOutcome {
        do throws(CacheError) {
            return RollbackOutcome(generation: try body(&state), replaced: current)
        } catch {
            let publication: IndexedPublication?
            do throws(CacheError) {
                publication = try verifiedPublication(of: destination.pipeline, &state)
            } catch _ {
                publication = nil
            }
            guard let publication, publication.generation.content == content else { throw error }
            let generation = publication.generation(
                path: layout.reader(publication.file), revision: state.nextRevision())
            return RollbackOutcome(generation: generation, replaced: current, failure: error)
        }
    }

    /// The generation that stays although there is other content, restored if necessary; nil: no content is held back.
    ///
    /// - Throws: ``CacheError/pinnedGone(_:)``.
    func held(
        back candidate: Candidate, to destination: CacheDestination, _ publication: IndexedPublication?,
        _ state: inout PipelineEntry.State
    ) throws(CacheError) -> IndexedPublication? {
        let (row, known) = try withIndex {
            (index) throws(SQLiteError) -> (IndexedPipeline?, IndexedGeneration?) in
            guard let row = try index.pipeline(destination.pipeline) else { return (nil, nil) }
            guard let number = row.pin?.content.number ?? row.current else { return (row, nil) }
            return (row, try index.generation(number, of: row.id))
        }
        guard let row, let number = row.pin?.content.number ?? row.current,
            row.holdsBack(candidate, over: known?.content.digest)
        else { return nil }
        if let publication, publication.generation.content.number == number { return publication }
        do throws(CacheError) {
            guard let known, row.pin.map({ $0.content == known.content }) ?? true else { throw .damaged(number) }
            _ = try putBack(known, of: row, destination, &state) { _ in }
        } catch .damaged {
            if row.pin != nil { throw .pinnedGone(number) }
            return nil
        }
        return try withIndex { (index) throws(SQLiteError) in try index.publication(of: destination.pipeline) }
    }

    /// Publishes the content of a kept generation again, in a new file.
    private func putBack(
        _ target: IndexedGeneration, of row: IndexedPipeline, _ destination: CacheDestination,
        _ state: inout PipelineEntry.State, _ update: (inout CacheIndex) throws(SQLiteError) -> Void
    ) throws(CacheError) -> Generation {
        var new = target
        new.identity = .none
        do throws(CacheError) {
            return try place(
                copyOf: layout.generation(target.content, of: destination.pipeline), as: new, of: row, destination,
                &state, update)
        } catch .unreadable {
            throw .damaged(target.content.number)
        }
    }

    /// Publishes a copy of content of the cache as a generation, after verifying its digest. The change survives a
    /// power cut.
    ///
    /// - Throws: ``CacheError/unreadable`` if the content is missing or changed; and the errors of a commit.
    func place(
        copyOf path: String, as new: IndexedGeneration, of row: IndexedPipeline, _ destination: CacheDestination,
        _ state: inout PipelineEntry.State, _ update: (inout CacheIndex) throws(SQLiteError) -> Void
    ) throws(CacheError) -> Generation {
        var whole = destination
        // Content that was accepted once is not checked against the size limits again.
        (whole.minimumBytes, whole.maximumBytes) = (0, .max)
        let pending = try begin(whole, copying: path)
        do throws(CacheError) {
            let isThere = try fileSystem.readFile(path) { (bytes) throws(CacheError) in try pending.write(bytes) }
            guard isThere else { throw .unreadable }
        } catch {
            pending.discard()
            throw error
        }
        return try pending.finish { (candidate) throws(CacheError) in
            guard candidate.digest == new.content.digest else { throw .unreadable }
            try freeSpace(for: candidate.size, pending.spaceRequest)
            try finish(candidate, destination)
            var candidate = candidate
            candidate.truncated = new.truncated
            let copy = try onFiles { (files) throws(SystemCallError) in
                try files.status(self.layout.reader(destination.file))
            }
            try keepAccess(destination, beside: copy)
            return try place(candidate, as: new, of: row, destination, &state, isDurable: true, update)
        }
    }
}
