import Synchronization

extension LocalCache {
    /// Commits a candidate; the caller closes its descriptor. In any case the candidate's name is gone afterwards, or
    /// is left to the next start if the system refuses even that.
    ///
    /// The order, and what a crash after each step leaves (``Reconciliation`` mends it):
    ///
    /// 1. checks; group, mode, fsync of the content: a candidate, which is removed
    /// 2. the new content's validators into the index, where they do not count yet: the same
    /// 3. the candidate gets its name among the generations: content that nobody saw, which is removed
    /// 4. a further link, renamed over the reader's file: readers see the new generation, and the index follows
    /// 5. fsync of both directories
    /// 6. the index, in one transaction: the new generation is current
    /// 7. content beyond `keep` is removed: what is left over is known again, and removed by a later commit
    func commit(
        _ candidate: Candidate, to destination: CacheDestination, validators: [Validators], run: Int64?,
        at now: WallTime, expires: WallTime?
    ) throws(CacheError) -> CommitOutcome {
        do throws(CacheError) {
            try check(candidate, destination)
            return try entry(destination.pipeline).state.withLock { (state) throws(CacheError) in
                let offer = try verifiedOffer(of: destination.pipeline, &state)
                try claim(destination)
                if let offer, offer.file == destination.file, offer.generation.content.digest == candidate.digest {
                    return .unchanged(try confirm(offer, candidate, destination, validators, at: now, expires: expires))
                }
                return try publish(candidate, to: destination, validators, run: run, at: now, expires: expires, &state)
            }
        } catch {
            try? fileSystem.unlink(candidate.path)
            throw error
        }
    }

    private func check(_ candidate: Candidate, _ destination: CacheDestination) throws(CacheError) {
        if candidate.size < destination.minimumBytes {
            throw candidate.size == 0
                ? .empty : .tooSmall(bytes: candidate.size, minimum: destination.minimumBytes)
        }
        try checkSpace()
    }

    /// The content is what readers have: nothing is renamed. Only a mode or group that was configured anew is set.
    private func confirm(
        _ offer: IndexedOffer, _ candidate: Candidate, _ destination: CacheDestination, _ validators: [Validators],
        at now: WallTime, expires: WallTime?
    ) throws(CacheError) -> Generation {
        try onFiles { (files) throws(SystemCallError) in try files.unlink(candidate.path) }
        var generation = offer.generation
        generation.identity = try setAccess(of: offer, to: destination)
        generation.truncated = candidate.truncated
        let (row, id) = (generation, offer.pipeline.id)
        try transaction { (index) throws(SQLiteError) in
            if row != offer.generation { try index.put(row, of: id) }
            try index.put(validators, for: row.content.digest, of: id)
            if candidate.isCheck { try index.recordSuccess(of: id, at: now, expires: expires) }
        }
        return row.generation(path: layout.reader(offer.file))
    }

    /// Gives the copy that readers have the mode and group of a destination: what was configured anew need not wait for
    /// new content. Without a copy, or with one of another name, there is nothing to do.
    package func setAccess(_ destination: CacheDestination) throws(CacheError) {
        try entry(destination.pipeline).state.withLock { (state) throws(CacheError) in
            guard let offer = try verifiedOffer(of: destination.pipeline, &state), offer.file == destination.file else {
                return
            }
            var generation = offer.generation
            generation.identity = try setAccess(of: offer, to: destination)
            guard generation.identity != offer.generation.identity else { return }
            let (row, id) = (generation, offer.pipeline.id)
            try withIndex { (index) throws(SQLiteError) in try index.put(row, of: id) }
        }
    }

    /// Returns what the reader's file is now: a change of its mode is a change of its status.
    private func setAccess(of offer: IndexedOffer, to destination: CacheDestination) throws(CacheError) -> FileIdentity
    {
        let reader = layout.reader(offer.file)
        return try onFiles { (files) throws(SystemCallError) in
            guard let status = try files.status(reader) else { return offer.generation.identity }
            let group = destination.group ?? status.group
            if status.mode == destination.mode, status.group == group { return status.identity }
            let descriptor = try files.openFile(reader)
            defer { files.close(descriptor) }
            // What is taken away goes first: between the two calls nobody has a right that neither mode gives.
            try files.setMode(status.mode & destination.mode, of: descriptor, path: reader)
            if status.group != group { try files.setGroup(group, of: descriptor, path: reader) }
            try files.setMode(destination.mode, of: descriptor, path: reader)
            return try files.status(reader)?.identity ?? status.identity
        }
    }

    private func publish(
        _ candidate: Candidate, to destination: CacheDestination, _ validators: [Validators], run: Int64?,
        at now: WallTime, expires: WallTime?, _ state: inout PipelineEntry.State
    ) throws(CacheError) -> CommitOutcome {
        try onFiles { (files) throws(SystemCallError) in
            if let group = destination.group {
                try files.setGroup(group, of: candidate.descriptor, path: candidate.path)
            }
            // After the group: a change of owner clears set-id bits.
            try files.setMode(destination.mode, of: candidate.descriptor, path: candidate.path)
            try files.synchronize(candidate.descriptor, path: candidate.path)
        }
        let (pipeline, previous) = try transaction { (index) throws(SQLiteError) in
            let pipeline = try index.ensurePipeline(destination.pipeline)
            try index.put(validators, for: candidate.digest, of: pipeline.id)
            return (pipeline, try index.offer(of: destination.pipeline)?.generation)
        }
        // The index's generation again, whose file readers have lost: it keeps its number.
        let restored = previous?.content.digest == candidate.digest ? previous : nil
        let content = StoredContent(
            number: restored?.content.number ?? pipeline.lastNumber + 1, digest: candidate.digest)
        let generation: IndexedGeneration
        state.isSuspect = true
        do throws(CacheError) {
            let identity = try onFiles { (files) throws(SystemCallError) in
                try self.rename(candidate, to: content, destination, files)
            }
            generation = IndexedGeneration(
                content: content, committedAt: restored?.committedAt ?? now, run: restored?.run ?? run,
                identity: identity, truncated: candidate.truncated)
            let surplus = try transaction { (index) throws(SQLiteError) in
                try index.put(generation, of: pipeline.id)
                try index.setCurrent(content, of: pipeline.id)
                if candidate.isCheck { try index.recordSuccess(of: pipeline.id, at: now, expires: expires) }
                return try index.forgetGenerations(of: pipeline.id, keep: destination.keep, current: content.number)
            }
            state.isSuspect = false
            for old in surplus {
                // The commit stands whether or not this works; what stays is found at the next start.
                try? fileSystem.unlink(layout.generation(old, of: destination.pipeline))
            }
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
        let result = generation.generation(path: layout.reader(destination.file))
        return restored == nil ? .changed(result) : .restored(result)
    }

    /// Steps 3 to 5. Returns what the reader's file is now.
    private func rename(
        _ candidate: Candidate, to content: StoredContent, _ destination: CacheDestination, _ files: any FileSystem
    ) throws(SystemCallError) -> FileIdentity {
        let stored = layout.generation(content, of: destination.pipeline)
        let reader = layout.reader(destination.file)
        try files.rename(candidate.path, to: stored)
        do throws(SystemCallError) {
            try files.replace(reader, withLinkTo: stored, by: layout.readerTemporary(candidate.token))
        } catch  where error.isMissing {
            // The readers' directory alone was removed: nothing else would make it again while the daemon runs.
            try makeDirectories(for: destination.pipeline, files)
            try files.replace(reader, withLinkTo: stored, by: layout.readerTemporary(candidate.token))
        }
        try files.synchronizeDirectory(layout.generations(of: destination.pipeline))
        try files.synchronizeDirectory(layout.current)
        guard let status = try files.status(reader) else {
            throw SystemCallError(call: "lstat", path: reader, errno: SystemCallError.missing)
        }
        return status.identity
    }
}

extension CacheIndex {
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
