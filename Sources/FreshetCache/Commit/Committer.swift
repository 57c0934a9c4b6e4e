import FreshetModel
import Synchronization

/// Commits candidates: decides whether a candidate becomes the current generation, confirms it, or is declined.
/// ``GenerationPublisher`` has the order of the steps.
struct Committer: Sendable {
    let context: CacheContext
    let verifier: PublicationVerifier
    let access: AccessRights
    let publisher: GenerationPublisher
    let ownership: FileOwnership
    let rejected: RejectedFiles

    /// Commits a candidate; the caller closes its descriptor and, if the commit fails, removes its name.
    func commit(
        _ candidate: Candidate, to destination: CacheDestination, _ check: Check
    ) throws(CacheError) -> CommitOutcome {
        try checkSize(of: candidate, destination)
        return try context.entry(destination.pipeline).withLock { (state) throws(CacheError) in
            state.hasFailedLate = false
            let outcome: CommitOutcome
            do throws(CacheError) {
                outcome = try commit(candidate, to: destination, check, &state)
            } catch {
                // The next run replaces what readers see after a reload.
                if case .reassigned = error { throw error }
                throw state.hasFailedLate ? .afterPublication(error) : error
            }
            // An earlier commit has published this content and then failed, and nobody has reported the change.
            guard case .unchanged(let generation) = outcome, state.takeFollowed(generation.number) else {
                return outcome
            }
            return .changed(generation)
        }
    }

    private func commit(
        _ candidate: Candidate, to destination: CacheDestination, _ check: Check, _ state: inout PipelineEntry.State
    ) throws(CacheError) -> CommitOutcome {
        var isRejected = true
        defer { if isRejected { try? rejected.forget(of: destination.pipeline, ofContent: candidate.digest) } }
        var known = try verifier.commit(of: destination.pipeline, &state)
        isRejected = known.rejected == candidate.digest
        let kept = known.publication
        // From now on the pipeline owns the destination.
        if try ownership.claim(destination, known.pipeline) {
            known = try context.reading { (index) throws(SQLiteError) in
                try index.commits.row(of: destination.pipeline)
            }
        }
        let publication = kept?.isWithdrawn == false && kept?.file == destination.file ? kept : nil
        // A further page does not make withdrawn content younger.
        if !candidate.isCheck, publication == nil,
            let kept = try verifier.keptPublication(of: destination.pipeline, &state),
            kept.isWithdrawn
        {
            return .unchanged(try drop(candidate, for: kept, &state))
        }
        if let stays = try held(back: candidate, to: destination, known, publication, &state) {
            guard candidate.isCheck else { return .unchanged(try drop(candidate, for: stays, &state)) }
            return try decline(candidate, for: stays, destination, check, &state)
        }
        if let publication, publication.generation.content.digest == candidate.digest {
            return .unchanged(try confirm(publication, candidate, destination, check, &state))
        }
        return try publish(candidate, to: destination, over: publication, check, &state)
    }

    /// The results of a check of the origin, without the content.
    struct Check: Sendable {
        var validators: [BoundValidators]
        var run: Int64?
        var at: WallTime
        var expires: WallTime?
        /// Small values of the pipeline that are stored with the result, by their keys.
        var values: [String: [UInt8]] = [:]

        func storeValues(of pipeline: IndexedPipeline, in index: borrowing CacheIndex) throws(SQLiteError) {
            for (key, value) in values {
                guard key.utf8.count <= CacheLimits.stateKeyBytes, value.count <= CacheLimits.stateValueBytes,
                    try index.state.value(key, of: pipeline.name) != value
                else { continue }
                _ = try index.state.set(value, for: key, of: pipeline.id)
            }
        }
    }

    private func checkSize(of candidate: Candidate, _ destination: CacheDestination) throws(CacheError) {
        if candidate.size < destination.minimumBytes {
            throw candidate.size == 0
                ? .empty : .tooSmall(bytes: candidate.size, minimum: destination.minimumBytes)
        }
    }

    /// The content is that of the current generation: no file is renamed. Only a changed mode or group is set.
    private func confirm(
        _ publication: IndexedPublication, _ candidate: Candidate, _ destination: CacheDestination, _ check: Check,
        _ state: inout PipelineEntry.State
    ) throws(CacheError) -> CurrentGeneration {
        var shown = publication
        shown.generation.truncated = candidate.truncated
        shown.generation.contentExpires = candidate.contentExpires
        if candidate.isCheck { shown.pipeline.originDigest = nil }
        return try keep(shown, was: publication, without: candidate, destination, check, &state) {
            (index, pipeline) throws(SQLiteError) in
            if pipeline.originDigest != publication.pipeline.originDigest {
                try index.pipelines.setOriginDigest(nil, of: pipeline.id)
            }
            try index.validators.put(check.validators, for: candidate.digest, of: pipeline.id)
            if candidate.isCheck {
                try index.pipelines.recordSuccess(
                    of: pipeline.id, candidate.digest, at: check.at, expires: check.expires)
            }
        }
    }

    /// The current generation stays although the origin has other content, whose digest is recorded.
    private func decline(
        _ candidate: Candidate, for publication: IndexedPublication, _ destination: CacheDestination, _ check: Check,
        _ state: inout PipelineEntry.State
    ) throws(CacheError) -> CommitOutcome {
        var shown = publication
        shown.pipeline.originDigest = candidate.digest
        let copy = try keep(shown, was: publication, without: candidate, destination, check, &state) {
            (index, pipeline) throws(SQLiteError) in
            try index.pipelines.setOriginDigest(candidate.digest, of: pipeline.id)
            try index.validators.forgetOthersThanCurrent(of: pipeline.id)
            try index.validators.put(check.validators, for: candidate.digest, of: pipeline.id)
            try index.pipelines.recordSuccess(of: pipeline.id, candidate.digest, at: check.at, expires: check.expires)
        }
        return .declined(copy, isNew: publication.originDigest != candidate.digest)
    }

    /// Removes a candidate that is not published, sets a changed mode or group of the copy, and records what is known
    /// now.
    ///
    /// - Parameters:
    ///   - new: the publication with what the candidate changes about it.
    ///   - before: the publication as the index has it.
    ///   - update: further changes in the same transaction, and the validators of the check.
    private func keep(
        _ new: IndexedPublication, was before: IndexedPublication, without candidate: Candidate,
        _ destination: CacheDestination, _ check: Check, _ state: inout PipelineEntry.State,
        _ update: (borrowing CacheIndex, _ pipeline: IndexedPipeline) throws(SQLiteError) -> Void
    ) throws(CacheError) -> CurrentGeneration {
        try context.onFiles { (files) throws(SystemCallError) in try files.unlink(candidate.path) }
        var shown = new
        shown.generation.identity = try access.set(of: before, to: destination)
        let (row, pipeline) = (shown.generation, shown.pipeline)
        try context.transaction { (index) throws(SQLiteError) in
            if row != before.generation { try index.update(row, of: pipeline.id) }
            try update(index, pipeline)
            try check.storeValues(of: pipeline, in: index)
        }
        remember(shown, candidate, check, &state)
        return shown.generation(at: context.layout.location(before.file), revision: state.nextRevision())
    }

    /// Remembers the publication with the validators of the check, which the index has now, if they belong to it.
    private func remember(
        _ publication: IndexedPublication, _ candidate: Candidate, _ check: Check, _ state: inout PipelineEntry.State
    ) {
        guard publication.checkedDigest == candidate.digest,
            check.validators.count == 1, let validators = check.validators.first, validators.isStorable
        else { return }
        state.checked = CheckedCopy(publication, validators, epoch: context.index.epoch)
    }

    /// The current generation stays. The candidate is not from a check, so it does not show what the origin has.
    private func drop(
        _ candidate: Candidate, for publication: IndexedPublication, _ state: inout PipelineEntry.State
    ) throws(CacheError) -> CurrentGeneration {
        try context.onFiles { (files) throws(SystemCallError) in try files.unlink(candidate.path) }
        return publication.generation(at: context.layout.location(publication.file), revision: state.nextRevision())
    }

    /// The generation that stays although there is other content, restored if necessary; nil: no content is held back.
    ///
    /// - Throws: ``CacheError/pinnedGone(_:)``.
    private func held(
        back candidate: Candidate, to destination: CacheDestination, _ known: IndexedCommit,
        _ publication: IndexedPublication?, _ state: inout PipelineEntry.State
    ) throws(CacheError) -> IndexedPublication? {
        let (row, known) = (known.pipeline, known.held)
        guard let row, let number = row.pin?.content.number ?? row.current,
            row.holdsBack(candidate, over: known?.content.digest)
        else { return nil }
        if let publication, publication.generation.content.number == number { return publication }
        do throws(CacheError) {
            guard let known, row.pin.map({ $0.content == known.content }) ?? true else { throw .damaged(number) }
            _ = try publisher.putBack(known, of: row, destination, &state) { _, _ in }
        } catch .damaged {
            if row.pin != nil { throw .pinnedGone(number) }
            return nil
        }
        return try context.withIndex { (index) throws(SQLiteError) in try index.publication(of: destination.pipeline) }
    }

    private func publish(
        _ candidate: Candidate, to destination: CacheDestination, over publication: IndexedPublication?, _ check: Check,
        _ state: inout PipelineEntry.State
    ) throws(CacheError) -> CommitOutcome {
        // Content that is already known keeps its number.
        var isKnown = false
        var recorded: IndexedPublication?
        let request = SpaceRequest(destination, holdsLock: true)
        let result = try publisher.publish(candidate, to: destination, request, &state) { () throws(CacheError) in
            let (pipeline, previous) = try context.transaction {
                (index) throws(SQLiteError) -> (IndexedPipeline, IndexedGeneration?) in
                let pipeline = try index.pipelines.ensure(destination.pipeline)
                try index.validators.put(check.validators, for: candidate.digest, of: pipeline.id)
                // If a generation is pinned, the pinned content is published, and only a check shows what the origin
                // has.
                if pipeline.originDigest != nil, candidate.isCheck || pipeline.pin == nil {
                    try index.pipelines.setOriginDigest(nil, of: pipeline.id)
                }
                guard pipeline.file != nil, let current = pipeline.current else { return (pipeline, nil) }
                return (pipeline, try index.generations.row(current, of: pipeline.id))
            }
            // The content is that of the generation in the index, whose published file is missing: the generation keeps
            // its number. A pinned generation also does.
            let restored = previous?.content.digest == candidate.digest ? previous : nil
            let pinned = pipeline.pin.flatMap { $0.content.digest == candidate.digest ? $0.content : nil }
            isKnown = restored != nil || pinned != nil
            let content = StoredContent(
                number: restored?.content.number ?? pinned?.number ?? IndexBounds.next(after: pipeline.lastNumber),
                digest: candidate.digest)
            let generation = IndexedGeneration(
                content: content, committedAt: restored?.committedAt ?? check.at, run: restored?.run ?? check.run,
                identity: .none, truncated: candidate.truncated, contentExpires: candidate.contentExpires)
            return GenerationPublisher.Preparation(
                pipeline: pipeline, generation: generation, copy: publication?.status)
        } update: { (index, pipeline) throws(SQLiteError) in
            if candidate.isCheck {
                try index.pipelines.recordSuccess(
                    of: pipeline.id, candidate.digest, at: check.at, expires: check.expires)
                pipeline.checkDigest = candidate.digest
            }
            try check.storeValues(of: pipeline, in: index)
        } recorded: {
            recorded = $0
        }
        if let recorded { remember(recorded, candidate, check, &state) }
        return isKnown ? .restored(result) : .changed(result)
    }
}
