import FreshetModel
import Synchronization

extension LocalCache {
    /// Commits a candidate; the caller closes its descriptor and, if the commit fails, removes its name.
    ///
    /// The steps, and the state that a crash after each step leaves (``Reconciliation`` repairs it):
    ///
    /// 1. Checks; space is freed by removing old content; group, mode, and fsync of the content. State: a candidate,
    ///    which is removed.
    /// 2. The validators of the new content are added to the index, where they do not count yet, and the digest of the
    ///    origin's held-back content is deleted. State: the same.
    /// 3. The candidate gets its name among the generations. State: content that no reader saw, which is removed.
    ///    (Several files: before this step the directory with the files is made; after it the link to the directory.)
    /// 4. A hard link is renamed over the published file. State: readers see the new generation, and the index follows.
    /// 5. fsync of both directories.
    /// 6. One transaction of the index makes the new generation the current one.
    /// 7. Content beyond `keep` is removed. State: remaining content is added to the index again, and a later commit
    ///    removes it.
    func commit(
        _ candidate: Candidate, to destination: CacheDestination, validators: [BoundValidators], run: Int64?,
        at now: WallTime, expires: WallTime?
    ) throws(CacheError) -> CommitOutcome {
        try check(candidate, destination)
        return try entry(destination.pipeline).state.withLock { (state) throws(CacheError) in
            defer { try? forgetRejection(of: destination.pipeline, ofContent: candidate.digest) }
            let publication = try publication(for: destination, &state)
            let check = Check(validators: validators, run: run, at: now, expires: expires)
            // A further page does not make withdrawn content younger.
            if !candidate.isCheck, publication == nil, let kept = try keptPublication(of: destination.pipeline, &state),
                kept.isWithdrawn
            {
                return .unchanged(try drop(candidate, for: kept, &state))
            }
            if let stays = try held(back: candidate, to: destination, publication, &state) {
                guard candidate.isCheck else { return .unchanged(try drop(candidate, for: stays, &state)) }
                return try decline(candidate, for: stays, destination, check, &state)
            }
            if let publication, publication.generation.content.digest == candidate.digest {
                return .unchanged(try confirm(publication, candidate, destination, check, &state))
            }
            return try publish(candidate, to: destination, over: publication, check, &state)
        }
    }

    /// The results of a check of the origin, without the content.
    private struct Check: Sendable {
        var validators: [BoundValidators]
        var run: Int64?
        var at: WallTime
        var expires: WallTime?
    }

    /// The publication at the destination. From now on the pipeline owns the destination.
    func publication(
        for destination: CacheDestination, _ state: inout PipelineEntry.State
    ) throws(CacheError) -> IndexedPublication? {
        let publication = try verifiedPublication(of: destination.pipeline, &state)
        try claim(destination)
        return publication?.file == destination.file ? publication : nil
    }

    private func check(_ candidate: Candidate, _ destination: CacheDestination) throws(CacheError) {
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
        try onFiles { (files) throws(SystemCallError) in try files.unlink(candidate.path) }
        var shown = publication
        shown.generation.identity = try setAccess(of: publication, to: destination)
        shown.generation.truncated = candidate.truncated
        shown.generation.contentExpires = candidate.contentExpires
        if candidate.isCheck { shown.pipeline.originDigest = nil }
        let (row, known) = (shown.generation, shown.pipeline)
        try transaction { (index) throws(SQLiteError) in
            if row != publication.generation { try index.update(row, of: known.id) }
            if known.originDigest != publication.pipeline.originDigest { try index.setOriginDigest(nil, of: known.id) }
            try index.put(check.validators, for: row.content.digest, of: known.id)
            if candidate.isCheck {
                try index.recordSuccess(of: known.id, candidate.digest, at: check.at, expires: check.expires)
            }
        }
        return shown.generation(path: layout.reader(publication.file), revision: state.nextRevision())
    }

    /// The current generation stays although the origin has other content, whose digest is recorded.
    private func decline(
        _ candidate: Candidate, for publication: IndexedPublication, _ destination: CacheDestination, _ check: Check,
        _ state: inout PipelineEntry.State
    ) throws(CacheError) -> CommitOutcome {
        try onFiles { (files) throws(SystemCallError) in try files.unlink(candidate.path) }
        var shown = publication
        shown.generation.identity = try setAccess(of: publication, to: destination)
        shown.pipeline.originDigest = candidate.digest
        let (row, id) = (shown.generation, publication.pipeline.id)
        try transaction { (index) throws(SQLiteError) in
            if row != publication.generation { try index.update(row, of: id) }
            try index.setOriginDigest(candidate.digest, of: id)
            try index.dropValidators(of: id)
            try index.put(check.validators, for: candidate.digest, of: id)
            try index.recordSuccess(of: id, candidate.digest, at: check.at, expires: check.expires)
        }
        return .declined(
            shown.generation(path: layout.reader(publication.file), revision: state.nextRevision()),
            isNew: publication.originDigest != candidate.digest)
    }

    /// The current generation stays. The candidate is not from a check, so it does not show what the origin has.
    private func drop(
        _ candidate: Candidate, for publication: IndexedPublication, _ state: inout PipelineEntry.State
    ) throws(CacheError) -> CurrentGeneration {
        try onFiles { (files) throws(SystemCallError) in try files.unlink(candidate.path) }
        return publication.generation(path: layout.reader(publication.file), revision: state.nextRevision())
    }

    /// Sets the mode and group of the published file: a changed configuration takes effect before there is new content.
    /// Does nothing if there is no copy, or if it has another name.
    package func setAccess(_ destination: CacheDestination) throws(CacheError) {
        try entry(destination.pipeline).state.withLock { (state) throws(CacheError) in
            guard let publication = try keptPublication(of: destination.pipeline, &state),
                publication.file == destination.file
            else {
                return
            }
            var generation = publication.generation
            generation.identity = try setAccess(of: publication, to: destination)
            guard generation.identity != publication.generation.identity else { return }
            let (row, id) = (generation, publication.pipeline.id)
            try withIndex { (index) throws(SQLiteError) in try index.update(row, of: id) }
        }
    }

    /// Returns the new identity of the published file: a change of the mode changes the time of the status change.
    func setAccess(of publication: IndexedPublication, to destination: CacheDestination) throws(CacheError)
        -> FileIdentity
    {
        let reader = place(of: publication)
        let content = publication.generation.content
        let set = destination.isSet ? try setName(of: content, in: destination.pipeline) : content
        return try onFiles { (files) throws(SystemCallError) in
            guard let status = try files.status(reader) else { return publication.generation.identity }
            if destination.isMet(by: status) { return status.identity }
            try self.setAccessOfSets(destination, set, files)
            try files.setAccess(of: reader, status, to: destination)
            return try files.status(reader)?.identity ?? status.identity
        }
    }

    private func publish(
        _ candidate: Candidate, to destination: CacheDestination, over publication: IndexedPublication?, _ check: Check,
        _ state: inout PipelineEntry.State
    ) throws(CacheError) -> CommitOutcome {
        try freeSpace(for: candidate.size, SpaceRequest(destination, holdsLock: true))
        try finish(candidate, destination)
        let (pipeline, previous) = try transaction { (index) throws(SQLiteError) in
            let pipeline = try index.ensurePipeline(destination.pipeline)
            try index.put(check.validators, for: candidate.digest, of: pipeline.id)
            // If a generation is pinned, the pinned content is published, and only a check shows what the origin has.
            if pipeline.originDigest != nil, candidate.isCheck || pipeline.pin == nil {
                try index.setOriginDigest(nil, of: pipeline.id)
            }
            return (pipeline, try index.publication(of: destination.pipeline)?.generation)
        }
        // The content is that of the generation in the index, whose published file is missing: the generation keeps its
        // number. A pinned generation also does.
        let restored = previous?.content.digest == candidate.digest ? previous : nil
        let pinned = pipeline.pin.flatMap { $0.content.digest == candidate.digest ? $0.content : nil }
        let content = StoredContent(
            number: restored?.content.number ?? pinned?.number ?? IndexBounds.next(after: pipeline.lastNumber),
            digest: candidate.digest)
        let generation = IndexedGeneration(
            content: content, committedAt: restored?.committedAt ?? check.at, run: restored?.run ?? check.run,
            identity: .none, truncated: candidate.truncated, contentExpires: candidate.contentExpires)
        try keepAccess(destination, beside: publication?.status)
        let result = try place(candidate, as: generation, of: pipeline, destination, &state) {
            (index) throws(SQLiteError) in
            if candidate.isCheck {
                try index.recordSuccess(of: pipeline.id, candidate.digest, at: check.at, expires: check.expires)
            }
        }
        return restored == nil && pinned == nil ? .changed(result) : .restored(result)
    }

    /// Step 1, after the checks.
    func finish(_ candidate: Candidate, _ destination: CacheDestination) throws(CacheError) {
        try onFiles { (files) throws(SystemCallError) in
            if let group = destination.group {
                try files.setGroup(group, of: candidate.descriptor, path: candidate.path)
            }
            // After the group: a change of owner clears set-id bits.
            try files.setMode(destination.mode, of: candidate.descriptor, path: candidate.path)
            try files.synchronize(candidate.descriptor, path: candidate.path)
        }
    }

    /// Steps 3 to 7: publishes this generation, whose content is in the candidate.
    ///
    /// - Parameters:
    ///   - isDurable: the index's transaction must survive a power cut too.
    ///   - update: further changes in the same transaction.
    func place(
        _ candidate: Candidate, as new: IndexedGeneration, of pipeline: IndexedPipeline,
        _ destination: CacheDestination, _ state: inout PipelineEntry.State, isDurable: Bool = false,
        _ update: (inout CacheIndex) throws(SQLiteError) -> Void
    ) throws(CacheError) -> CurrentGeneration {
        let content = new.content
        if destination.isSet { try makeSet(content, of: pipeline.name, from: candidate.path) }
        let set = destination.isSet ? try setName(of: content, in: pipeline.name) : content
        // The directory that readers saw before.
        let previous = destination.link.flatMap { try? shownSet(of: pipeline.name, at: $0) }
        state.isSuspect = true
        do throws(CacheError) {
            var generation = new
            generation.identity = try onFiles { (files) throws(SystemCallError) in
                try self.rename(candidate, to: content, set, destination, files)
            }
            let row = generation
            let committed = try contentTransaction(isDurable: isDurable, of: candidate.token) {
                (index) throws(SQLiteError) -> (surplus: [StoredContent], publication: IndexedPublication?)? in
                // A reload may have assigned another file, or changed the pipeline from one file to several files or
                // the reverse.
                guard try index.isAssigned(destination) else { return nil }
                try index.put(row, of: pipeline.id)
                try index.setCurrent(content, of: pipeline.id)
                try update(&index)
                let surplus = try index.forgetGenerations(
                    of: pipeline.id, keep: destination.keep, current: content.number)
                return (surplus, try index.publication(of: destination.pipeline))
            }
            guard let (surplus, publication) = committed else { throw CacheError.reassigned(destination.pipeline) }
            state.isSuspect = false
            for old in surplus {
                // The commit is complete even if this fails; the next start finds remaining files.
                try? fileSystem.unlink(layout.generation(old, of: destination.pipeline))
            }
            if destination.isSet { sweepSets(of: pipeline, previous: previous) }
            if !pipeline.formerSets.isEmpty { try? removeFormerSets(of: pipeline) }
            let path = layout.reader(destination.file)
            let revision = state.nextRevision()
            return publication?.generation(path: path, revision: revision) ?? row.generation(path: path)
        } catch {
            // The index must agree with the generation that readers see now. If that fails too, the pipeline stays
            // suspect, and the next access retries it.
            do throws(CacheError) {
                _ = try reconcile(destination.pipeline)
                state.isSuspect = false
            } catch _ {
                // The first error is the cause; this error occurs again at the next attempt.
            }
            throw error
        }
    }

    /// Steps 3 to 5. Returns the new identity of the published file.
    private func rename(
        _ candidate: Candidate, to content: StoredContent, _ set: StoredContent, _ destination: CacheDestination,
        _ files: any FileSystem
    ) throws(SystemCallError) -> FileIdentity {
        let stored = layout.generation(content, of: destination.pipeline)
        let reader = layout.reader(destination.file)
        let failures = currentFlush.failures
        func show() throws(SystemCallError) {
            if let link = destination.link {
                _ = try showSet(set, of: destination.pipeline, at: link, files)
            }
            try link(stored, at: reader, by: candidate.token, files)
        }
        try files.rename(candidate.path, to: stored)
        do throws(SystemCallError) {
            try show()
        } catch  where error.isMissing {
            // Only the directory `current/` was removed: no other code makes it again while the daemon runs.
            try makeDirectories(for: destination.pipeline, files)
            try show()
        }
        try files.synchronizeDirectory(layout.generations(of: destination.pipeline))
        try currentFlush.perform(since: failures) { () throws(SystemCallError) in
            try files.synchronizeDirectory(layout.current)
        }
        guard let status = try files.status(reader) else {
            throw SystemCallError(call: "lstat", path: reader, errno: SystemCallError.missing)
        }
        return status.identity
    }
}

extension CacheIndex {
    /// Whether the pipeline still has this file, and still keeps one file or several files as the destination says.
    mutating func isAssigned(_ destination: CacheDestination) throws(SQLiteError) -> Bool {
        try pipeline(destination.pipeline).map { $0.file == destination.file && $0.isSet == destination.isSet } ?? false
    }

    /// Forgets the oldest generations beyond `keep`. Returns their content, which the caller removes.
    fileprivate mutating func forgetGenerations(
        of pipeline: Int64, keep: Int, current: Int64
    ) throws(SQLiteError) -> [StoredContent] {
        let old = try generations(of: pipeline).map(\.content).filter { $0.number != current }
        let surplus = Array(old.dropLast(max(0, keep - 1)))
        for content in surplus { try forget(generation: content.number, of: pipeline) }
        return surplus
    }
}
