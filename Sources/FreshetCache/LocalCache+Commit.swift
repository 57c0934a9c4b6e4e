import Synchronization

extension LocalCache {
    /// Commits a candidate; the caller closes its descriptor and, if this fails, removes its name.
    ///
    /// The order, and what a crash after each step leaves (``Reconciliation`` mends it):
    ///
    /// 1. checks; room, for which old content goes; group, mode, fsync of the content: a candidate, which is removed
    /// 2. the new content's validators into the index, where they do not count yet, and that what the origin has is no
    ///    longer held back: the same
    /// 3. the candidate gets its name among the generations: content that nobody saw, which is removed
    ///    (of several files, before that: the directory that has them; afterwards: the link that leads there)
    /// 4. a further link, renamed over the reader's file: readers see the new generation, and the index follows
    /// 5. fsync of both directories
    /// 6. the index, in one transaction: the new generation is current
    /// 7. content beyond `keep` is removed: what is left over is known again, and removed by a later commit
    func commit(
        _ candidate: Candidate, to destination: CacheDestination, validators: [Validators], run: Int64?,
        at now: WallTime, expires: WallTime?
    ) throws(CacheError) -> CommitOutcome {
        try check(candidate, destination)
        return try entry(destination.pipeline).state.withLock { (state) throws(CacheError) in
            defer { try? forgetRefusal(of: destination.pipeline, ofContent: candidate.digest) }
            let offer = try offer(for: destination, &state)
            let check = Check(validators: validators, run: run, at: now, expires: expires)
            // A further page of what is withdrawn makes it no younger.
            if !candidate.isCheck, offer == nil, let kept = try keptOffer(of: destination.pipeline, &state),
                kept.isWithdrawn
            {
                return .unchanged(try drop(candidate, for: kept, &state))
            }
            if let stays = try held(back: candidate, to: destination, offer, &state) {
                guard candidate.isCheck else { return .unchanged(try drop(candidate, for: stays, &state)) }
                return try decline(candidate, for: stays, destination, check, &state)
            }
            if let offer, offer.generation.content.digest == candidate.digest {
                return .unchanged(try confirm(offer, candidate, destination, check, &state))
            }
            return try publish(candidate, to: destination, over: offer, check, &state)
        }
    }

    /// What came of asking the origin, besides the content.
    private struct Check: Sendable {
        var validators: [Validators]
        var run: Int64?
        var at: WallTime
        var expires: WallTime?
    }

    /// What is offered at the destination, which the pipeline owns from now on.
    func offer(
        for destination: CacheDestination, _ state: inout PipelineEntry.State
    ) throws(CacheError) -> IndexedPublication? {
        let offer = try verifiedOffer(of: destination.pipeline, &state)
        try claim(destination)
        return offer?.file == destination.file ? offer : nil
    }

    private func check(_ candidate: Candidate, _ destination: CacheDestination) throws(CacheError) {
        if candidate.size < destination.minimumBytes {
            throw candidate.size == 0
                ? .empty : .tooSmall(bytes: candidate.size, minimum: destination.minimumBytes)
        }
    }

    /// The content is what readers have: nothing is renamed. Only a mode or group that was configured anew is set.
    private func confirm(
        _ offer: IndexedPublication, _ candidate: Candidate, _ destination: CacheDestination, _ check: Check,
        _ state: inout PipelineEntry.State
    ) throws(CacheError) -> Generation {
        try onFiles { (files) throws(SystemCallError) in try files.unlink(candidate.path) }
        var shown = offer
        shown.generation.identity = try setAccess(of: offer, to: destination)
        shown.generation.truncated = candidate.truncated
        shown.generation.contentExpires = candidate.contentExpires
        if candidate.isCheck { shown.pipeline.originDigest = nil }
        let (row, known) = (shown.generation, shown.pipeline)
        try transaction { (index) throws(SQLiteError) in
            if row != offer.generation { try index.update(row, of: known.id) }
            if known.originDigest != offer.pipeline.originDigest { try index.setOriginDigest(nil, of: known.id) }
            try index.put(check.validators, for: row.content.digest, of: known.id)
            if candidate.isCheck {
                try index.recordSuccess(of: known.id, candidate.digest, at: check.at, expires: check.expires)
            }
        }
        return shown.generation(path: layout.reader(offer.file), turn: state.takeTurn())
    }

    /// What readers have stays, although the origin has other content: that it has is remembered.
    private func decline(
        _ candidate: Candidate, for offer: IndexedPublication, _ destination: CacheDestination, _ check: Check,
        _ state: inout PipelineEntry.State
    ) throws(CacheError) -> CommitOutcome {
        try onFiles { (files) throws(SystemCallError) in try files.unlink(candidate.path) }
        var shown = offer
        shown.generation.identity = try setAccess(of: offer, to: destination)
        shown.pipeline.originDigest = candidate.digest
        let (row, id) = (shown.generation, offer.pipeline.id)
        try transaction { (index) throws(SQLiteError) in
            if row != offer.generation { try index.update(row, of: id) }
            try index.setOriginDigest(candidate.digest, of: id)
            try index.dropValidators(of: id)
            try index.put(check.validators, for: candidate.digest, of: id)
            try index.recordSuccess(of: id, candidate.digest, at: check.at, expires: check.expires)
        }
        return .declined(
            shown.generation(path: layout.reader(offer.file), turn: state.takeTurn()),
            isNews: offer.originDigest != candidate.digest)
    }

    /// What readers have stays. The candidate came of no check, and so says nothing of what the origin has.
    private func drop(
        _ candidate: Candidate, for offer: IndexedPublication, _ state: inout PipelineEntry.State
    ) throws(CacheError) -> Generation {
        try onFiles { (files) throws(SystemCallError) in try files.unlink(candidate.path) }
        return offer.generation(path: layout.reader(offer.file), turn: state.takeTurn())
    }

    /// Gives the copy that readers have the mode and group of a destination: what was configured anew need not wait for
    /// new content. Without a copy, or with one of another name, there is nothing to do.
    package func setAccess(_ destination: CacheDestination) throws(CacheError) {
        try entry(destination.pipeline).state.withLock { (state) throws(CacheError) in
            guard let offer = try keptOffer(of: destination.pipeline, &state), offer.file == destination.file else {
                return
            }
            var generation = offer.generation
            generation.identity = try setAccess(of: offer, to: destination)
            guard generation.identity != offer.generation.identity else { return }
            let (row, id) = (generation, offer.pipeline.id)
            try withIndex { (index) throws(SQLiteError) in try index.update(row, of: id) }
        }
    }

    /// Returns what the reader's file is now: a change of its mode is a change of its status.
    func setAccess(of offer: IndexedPublication, to destination: CacheDestination) throws(CacheError) -> FileIdentity {
        let reader = place(of: offer)
        return try onFiles { (files) throws(SystemCallError) in
            guard let status = try files.status(reader) else { return offer.generation.identity }
            if destination.isMet(by: status) { return status.identity }
            try self.setAccessOfSets(destination, offer.generation.content, files)
            try files.setAccess(of: reader, status, to: destination)
            return try files.status(reader)?.identity ?? status.identity
        }
    }

    private func publish(
        _ candidate: Candidate, to destination: CacheDestination, over offer: IndexedPublication?, _ check: Check,
        _ state: inout PipelineEntry.State
    ) throws(CacheError) -> CommitOutcome {
        try makeRoom(for: candidate.size, SpaceRequest(destination, holdsLock: true))
        try finish(candidate, destination)
        let (pipeline, previous) = try transaction { (index) throws(SQLiteError) in
            let pipeline = try index.ensurePipeline(destination.pipeline)
            try index.put(check.validators, for: candidate.digest, of: pipeline.id)
            // Where it is pinned, what is published is the pinned content, and only a check knows what the origin has.
            if pipeline.originDigest != nil, candidate.isCheck || pipeline.pin == nil {
                try index.setOriginDigest(nil, of: pipeline.id)
            }
            return (pipeline, try index.offer(of: destination.pipeline)?.generation)
        }
        // The index's generation again, whose file readers have lost: it keeps its number. So does a pinned one.
        let restored = previous?.content.digest == candidate.digest ? previous : nil
        let pinned = pipeline.pin.flatMap { $0.content.digest == candidate.digest ? $0.content : nil }
        let content = StoredContent(
            number: restored?.content.number ?? pinned?.number ?? IndexBounds.next(after: pipeline.lastNumber),
            digest: candidate.digest)
        let generation = IndexedGeneration(
            content: content, committedAt: restored?.committedAt ?? check.at, run: restored?.run ?? check.run,
            identity: .none, truncated: candidate.truncated, contentExpires: candidate.contentExpires)
        try keepAccess(destination, beside: offer?.status)
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

    /// Steps 3 to 7: what readers see becomes this generation, of which the candidate has the content.
    ///
    /// - Parameters:
    ///   - isDurable: the index's transaction survives a power cut too.
    ///   - note: what goes into the same transaction.
    func place(
        _ candidate: Candidate, as new: IndexedGeneration, of pipeline: IndexedPipeline,
        _ destination: CacheDestination, _ state: inout PipelineEntry.State, isDurable: Bool = false,
        _ note: (inout CacheIndex) throws(SQLiteError) -> Void
    ) throws(CacheError) -> Generation {
        let content = new.content
        if destination.isSet { try makeSet(content, of: pipeline.name, from: candidate.path) }
        // What readers were led to before.
        let previous = destination.link.flatMap { try? shownSet(of: pipeline.name, at: $0) }
        state.isSuspect = true
        do throws(CacheError) {
            var generation = new
            generation.identity = try onFiles { (files) throws(SystemCallError) in
                try self.rename(candidate, to: content, destination, files)
            }
            let row = generation
            let noted = try contentTransaction(isDurable: isDurable, of: candidate.token) {
                (index) throws(SQLiteError) -> (surplus: [StoredContent], offer: IndexedPublication?)? in
                // A reload may have given it another file since, or had it keep the other kind of content.
                guard try index.isStill(destination) else { return nil }
                try index.put(row, of: pipeline.id)
                try index.setCurrent(content, of: pipeline.id)
                try note(&index)
                let surplus = try index.forgetGenerations(
                    of: pipeline.id, keep: destination.keep, current: content.number)
                return (surplus, try index.offer(of: destination.pipeline))
            }
            guard let (surplus, offer) = noted else { throw CacheError.reassigned(destination.pipeline) }
            state.isSuspect = false
            for old in surplus {
                // The commit stands whether or not this works; what stays is found at the next start.
                try? fileSystem.unlink(layout.generation(old, of: destination.pipeline))
            }
            if destination.isSet { sweepSets(of: pipeline, previous: previous) }
            if !pipeline.formerSets.isEmpty { try? removeFormerSets(of: pipeline) }
            let path = layout.reader(destination.file)
            let turn = state.takeTurn()
            return offer?.generation(path: path, turn: turn) ?? row.generation(path: path)
        } catch {
            // Whichever whole generation readers see now, the index shall say the same. If that fails as well, the
            // pipeline stays suspect, and the next who asks tries again.
            do throws(CacheError) {
                _ = try reconcile(destination.pipeline)
                state.isSuspect = false
            } catch _ {
                // The first error is the cause; this one comes back with the next try.
            }
            throw error
        }
    }

    /// Steps 3 to 5. Returns what the reader's file is now.
    private func rename(
        _ candidate: Candidate, to content: StoredContent, _ destination: CacheDestination, _ files: any FileSystem
    ) throws(SystemCallError) -> FileIdentity {
        let stored = layout.generation(content, of: destination.pipeline)
        let reader = layout.reader(destination.file)
        let failures = currentFlush.failures
        func show() throws(SystemCallError) {
            if let link = destination.link {
                _ = try showSet(content, of: destination.pipeline, at: link, files)
            }
            try files.replace(reader, withLinkTo: stored, by: layout.readerTemporary(candidate.token))
        }
        try files.rename(candidate.path, to: stored)
        do throws(SystemCallError) {
            try show()
        } catch  where error.isMissing {
            // The readers' directory alone was removed: nothing else would make it again while the daemon runs.
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
    /// Whether the pipeline has this file, and keeps one or several as this says.
    mutating func isStill(_ destination: CacheDestination) throws(SQLiteError) -> Bool {
        try pipeline(destination.pipeline).map { $0.file == destination.file && $0.isSet == destination.isSet } ?? false
    }

    /// Forgets the oldest generations beyond `keep`; returns their content, which is to be removed.
    fileprivate mutating func forgetGenerations(
        of pipeline: Int64, keep: Int, current: Int64
    ) throws(SQLiteError) -> [StoredContent] {
        let old = try generations(of: pipeline).map(\.content).filter { $0.number != current }
        let surplus = Array(old.dropLast(max(0, keep - 1)))
        for content in surplus { try forget(generation: content.number, of: pipeline) }
        return surplus
    }
}
