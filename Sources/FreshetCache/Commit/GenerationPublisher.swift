package import FreshetModel

/// Publishes content as the current generation of a pipeline: from a candidate, or from content that the cache keeps.
/// Callers hold the lock of the pipeline.
struct GenerationPublisher: Sendable {
    let context: CacheContext
    let ownership: FileOwnership
    let candidates: CandidateStore
    let published: PublishedFiles
    let sets: FileSetStore
    let access: AccessRights
    let recovery: CacheRecovery
    let verifier: PublicationVerifier
    let space: CacheSpace

    /// The publication at the destination. From now on the pipeline owns the destination.
    func publication(
        for destination: CacheDestination, _ state: inout PipelineEntry.State
    ) throws(CacheError) -> IndexedPublication? {
        let publication = try verifier.verifiedPublication(of: destination.pipeline, &state)
        guard let publication else {
            try ownership.claim(destination)
            return nil
        }
        _ = try ownership.claim(destination, publication.pipeline)
        return publication.file == destination.file ? publication : nil
    }

    // MARK: The order of a commit

    /// A generation that is about to be published.
    struct Preparation: Sendable {
        var pipeline: IndexedPipeline
        var generation: IndexedGeneration
        /// The published file until then; nil: there is none, or it is damaged.
        var copy: FileStatus?
    }

    /// Further changes in the transaction of step 10, and the pipeline's row, in which the closure changes the same
    /// columns: the row is not read again.
    typealias Update = (
        _ index: borrowing CacheIndex, _ pipeline: inout IndexedPipeline
    ) throws(SQLiteError) -> Void

    /// Publishes a candidate. The caller closes its descriptor and, if this fails, removes its name.
    ///
    /// The numbers are those of the table in docs/cache.md, which also says what a crash after each step leaves.
    /// ``Reconciliation`` repairs that. Steps 1 and 2 have made and written the candidate.
    ///
    /// - Parameters:
    ///   - isDurable: the transaction of step 10 must survive a power cut too.
    ///   - prepare: step 5.
    ///   - update: further changes in the transaction of step 10.
    ///   - recorded: gets the publication as the index has it after step 10.
    func publish(
        _ candidate: Candidate, to destination: CacheDestination, _ spaceRequest: SpaceRequest,
        _ state: inout PipelineEntry.State, isDurable: Bool = false,
        prepare: () throws(CacheError) -> Preparation,
        update: Update,
        recorded: (IndexedPublication) -> Void = { _ in }
    ) throws(CacheError) -> CurrentGeneration {
        // After step 2: if space is missing, old content is removed.
        try space.free(for: candidate.size, spaceRequest)
        // Steps 3 and 4: group, mode, and fsync of the content.
        try seal(candidate, destination)
        // Step 5: the index gets what must be there before readers see the content.
        let prepared = try prepare()
        let (pipeline, content) = (prepared.pipeline, prepared.generation.content)
        // Several files: after step 5 their directory is made.
        try access.keep(destination, beside: prepared.copy)
        if destination.isSet { try sets.make(content, of: pipeline.name, from: candidate.path) }
        let set = destination.isSet ? try sets.name(of: content, in: pipeline.name) : content
        // The directory that readers saw before.
        let previous = destination.link.flatMap { try? sets.shown(of: pipeline.name, at: $0) }
        let stored = context.layout.generation(content, of: destination.pipeline)
        (state.isSuspect, state.hasFailedLate) = (true, false)
        do throws(CacheError) {
            var row = prepared.generation
            row.identity = try context.onFiles { (files) throws(SystemCallError) in
                let failures = context.currentFlush.failures
                // Step 6: the candidate gets its name among the generations.
                try files.rename(candidate.path, to: stored)
                // Steps 7 and 8: readers see the content. Several files: before step 7 the link leads to them.
                try show(stored, set, at: destination, by: candidate.token, files)
                state.hasFailedLate = true
                // Step 9: both directories.
                try files.synchronizeDirectory(context.layout.generations(of: destination.pipeline))
                try context.currentFlush.perform(since: failures) { () throws(SystemCallError) in
                    try files.synchronizeDirectory(context.layout.current)
                }
                return try identity(of: destination, files)
            }
            // Step 10: the generation is current.
            let (surplus, publication) = try record(
                row, at: destination, isDurable: isDurable, token: candidate.token, update)
            (state.isSuspect, state.hasFailedLate) = (false, false)
            // Nobody needs to know of an older one any more.
            if state.followed?.number != UInt64(clamping: content.number) { state.followed = nil }
            // Step 11: content beyond `keep`. The commit is complete even if this fails; the next start finds the rest.
            for old in surplus {
                try? context.fileSystem.unlink(context.layout.generation(old, of: destination.pipeline))
            }
            if destination.isSet { sets.sweep(of: pipeline, previous: previous) }
            if !pipeline.formerSets.isEmpty { try? sets.removeFormer(of: pipeline) }
            let location = context.layout.location(destination.file)
            let revision = state.nextRevision()
            recorded(publication)
            return publication.generation(at: location, revision: revision)
        } catch {
            recovery.complete(destination.pipeline, &state)
            // A withdrawn generation that was published again is withdrawn by that.
            if state.hasFailedLate { state.hasFailedLate = isShown(stored, at: destination) }
            throw error
        }
    }

    /// Whether readers find this file.
    private func isShown(_ stored: String, at destination: CacheDestination) -> Bool {
        let files = context.fileSystem
        guard let shown = try? files.status(context.layout.reader(destination.file)),
            let kept = try? files.status(stored)
        else { return false }
        return shown.identity.inode == kept.identity.inode
    }

    /// Sets the group and mode of a candidate, and flushes its content.
    func seal(_ candidate: Candidate, _ destination: CacheDestination) throws(CacheError) {
        try context.onFiles { (files) throws(SystemCallError) in
            if let group = destination.group {
                try files.setGroup(group, of: candidate.descriptor, path: candidate.path)
            }
            // After the group: a change of owner clears set-id bits.
            try files.setMode(destination.mode, of: candidate.descriptor, path: candidate.path)
            try files.synchronize(candidate.descriptor, path: candidate.path)
        }
    }

    /// Makes the generation's file, and the directory of several files, what readers see.
    private func show(
        _ stored: String, _ set: StoredContent, at destination: CacheDestination, by token: UInt64,
        _ files: any FileSystem
    ) throws(SystemCallError) {
        func show() throws(SystemCallError) {
            if let link = destination.link {
                _ = try sets.show(set, of: destination.pipeline, at: link, files)
            }
            try published.link(stored, at: context.layout.reader(destination.file), by: token, files)
        }
        do throws(SystemCallError) {
            try show()
        } catch  where error.isMissing {
            // Only the directory `current/` was removed: no other code makes it again while the daemon runs.
            try context.makeDirectories(for: destination.pipeline, files)
            try show()
        }
    }

    private func identity(
        of destination: CacheDestination, _ files: any FileSystem
    ) throws(SystemCallError) -> FileIdentity {
        let reader = context.layout.reader(destination.file)
        guard let status = try files.status(reader) else {
            throw SystemCallError(call: "lstat", path: reader, errno: SystemCallError.missing)
        }
        return status.identity
    }

    /// Makes the generation the current one in the index.
    ///
    /// - Returns: the content beyond `keep`, which the index has forgotten; and the publication.
    private func record(
        _ generation: IndexedGeneration, at destination: CacheDestination, isDurable: Bool, token: UInt64,
        _ update: Update
    ) throws(CacheError) -> (surplus: [StoredContent], publication: IndexedPublication) {
        let committed = try context.contentTransaction(isDurable: isDurable, of: token) {
            (index) throws(SQLiteError) -> (surplus: [StoredContent], publication: IndexedPublication)? in
            // A reload may have assigned another file, or changed the pipeline from one file to several files or
            // the reverse.
            guard let row = try index.pipelines.row(assigned: destination) else { return nil }
            var pipeline = try index.publish(generation, of: row)
            try update(index, &pipeline)
            let surplus = try index.generations.forgetSurplus(
                of: pipeline.id, keep: destination.keep, current: generation.content.number)
            return (
                surplus, IndexedPublication(pipeline: pipeline, file: destination.file, generation: generation)
            )
        }
        guard let committed else { throw .reassigned(destination.pipeline) }
        return committed
    }

    // MARK: Kept content

    /// Publishes the content of a kept generation again, in a new file.
    func putBack(
        _ target: IndexedGeneration, of row: IndexedPipeline, _ destination: CacheDestination,
        _ state: inout PipelineEntry.State,
        _ update: Update
    ) throws(CacheError) -> CurrentGeneration {
        var new = target
        new.identity = .none
        do throws(CacheError) {
            return try publish(
                copyOf: context.layout.generation(target.content, of: destination.pipeline), as: new, of: row,
                destination, &state, update)
        } catch .unreadable {
            throw .damaged(target.content.number)
        }
    }

    /// Publishes a copy of content of the cache as a generation, after verifying its digest. The change survives a
    /// power cut.
    ///
    /// - Throws: ``CacheError/unreadable`` if the content is missing or changed; and the errors of a commit.
    func publish(
        copyOf path: String, as new: IndexedGeneration, of row: IndexedPipeline, _ destination: CacheDestination,
        _ state: inout PipelineEntry.State,
        _ update: Update
    ) throws(CacheError) -> CurrentGeneration {
        var whole = destination
        // Content that was accepted once is not checked against the size limits again.
        (whole.minimumBytes, whole.maximumBytes) = (0, .max)
        let copy = try candidates.begin(whole, copying: path)
        do throws(CacheError) {
            let isThere = try context.fileSystem.readFile(path) { (bytes) throws(CacheError) in try copy.write(bytes) }
            guard isThere else { throw .unreadable }
        } catch {
            copy.discard()
            throw error
        }
        return try copy.finish { (candidate) throws(CacheError) in
            guard candidate.digest == new.content.digest else { throw .unreadable }
            return try publish(candidate, to: destination, copy.spaceRequest, &state, isDurable: true) {
                () throws(CacheError) in
                Preparation(
                    pipeline: row, generation: new, copy: try context.status(context.layout.reader(destination.file)))
            } update: { (index, pipeline) throws(SQLiteError) in
                try update(index, &pipeline)
            }
        }
    }

    /// Returns the result of a change by a user. If the operation failed after readers saw the generation, the result
    /// has the generation and the failure: otherwise the change would not be reported before the next check.
    func outcome(
        of content: StoredContent, replacing current: Int64?, in destination: CacheDestination,
        _ state: inout PipelineEntry.State,
        _ body: (inout PipelineEntry.State) throws(CacheError) -> CurrentGeneration
    ) throws(CacheError) -> RollbackOutcome {
        do throws(CacheError) {
            return RollbackOutcome(generation: try body(&state), replaced: current)
        } catch {
            let publication: IndexedPublication?
            do throws(CacheError) {
                publication = try verifier.verifiedPublication(of: destination.pipeline, &state)
            } catch _ {
                publication = nil
            }
            guard let publication, publication.generation.content == content else { throw error }
            // The caller reports it.
            _ = state.takeFollowed(UInt64(clamping: content.number))
            let generation = publication.generation(
                at: context.layout.location(publication.file), revision: state.nextRevision())
            return RollbackOutcome(generation: generation, replaced: current, failure: error)
        }
    }
}

/// The result of a change by a user: a rollback, or an accepted candidate.
package struct RollbackOutcome: Hashable, Sendable {
    /// The generation that is current now.
    package var generation: CurrentGeneration
    /// The generation that was current before; nil if there was none, or if it is the same.
    package var replaced: Int64?
    /// Why the change may not survive a power cut, although readers see it.
    package var failure: CacheError?
}
