import Synchronization

/// What came of a rollback.
package struct RollbackOutcome: Hashable, Sendable {
    /// The generation that is current now.
    package var generation: Generation
    /// The one that was current before; nil: none was, or it is the same.
    package var replaced: Int64?
    /// Why it is not known to outlast a power cut, although readers see it.
    package var failure: CacheError?
}

/// Which generation is current, by the operator's word.
extension LocalCache {
    /// Makes a generation that is kept the current one again, under its own number.
    ///
    /// It goes the way of a commit: its content is copied into a candidate, which proves its digest on the way and gives the
    /// copy the mode, the group and a time of modification of now, and the candidate is put into place. So readers see a whole
    /// generation at any instant, and what a crash leaves is what one of a commit leaves.
    ///
    /// What the origin had when it was last asked does not come back by itself: a check that finds it again declines it.
    /// Other content does. It outlasts a power cut.
    ///
    /// - Parameter number: nil: the newest one before the current one, whether readers have that or have lost its file.
    /// - Throws: ``CacheError/pinned(_:)``, ``CacheError/notKept(_:kept:)``, ``CacheError/damaged(_:)``, and what a commit does.
    package func rollBack(
        _ destination: CacheDestination, to number: Int64?
    ) throws(CacheError) -> RollbackOutcome {
        try CacheName.check(destination.pipeline)
        try CacheName.check(destination.file)
        return try entry(destination.pipeline).state.withLock { (state) throws(CacheError) in
            let offer = try offer(for: destination, &state)
            let (row, kept) = try withIndex { (index) throws(SQLiteError) in
                let row = try index.ensurePipeline(destination.pipeline)
                return (row, try index.generations(of: row.id))
            }
            if let pin = row.pin { throw .pinned(pin.content.number) }
            let current = offer?.generation.content.number
            let target =
                if let number { kept.first { $0.content.number == number } } else {
                    kept.last { $0.content.number < current ?? row.current ?? .max }
                }
            guard let target else { throw .notKept(number, kept: kept.map(\.content.number)) }
            if let offer, offer.generation.content == target.content {
                let path = layout.reader(offer.file)
                return RollbackOutcome(generation: offer.generation(path: path), replaced: nil)
            }
            // Before readers see another generation, so that no crash makes the next check undo it.
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

    /// Keeps the current copy from being replaced, until ``unpin(_:)``. It outlasts a power cut.
    ///
    /// - Returns: the generation; and whether it was pinned before.
    /// - Throws: ``CacheError/nothingOffered``.
    package func pin(
        _ pipeline: String, at now: WallTime
    ) throws(CacheError) -> (generation: Generation, wasPinned: Bool) {
        try entry(pipeline).state.withLock { (state) throws(CacheError) in
            guard var offer = try verifiedOffer(of: pipeline, &state) else { throw .nothingOffered }
            let path = layout.reader(offer.file)
            if offer.pipeline.pin != nil { return (offer.generation(path: path), true) }
            offer.pipeline.pin = IndexedPin(content: offer.generation.content, since: now)
            let (row, content) = (offer.pipeline, offer.generation.content)
            let isKept = try transaction(isDurable: true) { (index) throws(SQLiteError) in
                // A reload that has the pipeline keep the other kind of content forgets this one, and what it is pinned at.
                guard try index.generation(content.number, of: row.id)?.content == content else { return false }
                try index.setPin(row.pin, of: row.id)
                return true
            }
            guard isKept else { throw .nothingOffered }
            return (offer.generation(path: path, turn: state.takeTurn()), false)
        }
    }

    /// Lets what the origin has become the copy again, at the next check; also what a rollback or the pin held back.
    ///
    /// - Returns: what is offered, nil if nothing is; and whether it was pinned.
    package func unpin(_ pipeline: String) throws(CacheError) -> (generation: Generation?, wasPinned: Bool) {
        try entry(pipeline).state.withLock { (state) throws(CacheError) in
            var offer = try verifiedOffer(of: pipeline, &state)
            let known = try withIndex { (index) throws(SQLiteError) in try index.pipeline(pipeline) }
            guard let known, known.pin != nil else {
                return (offer.map { $0.generation(path: layout.reader($0.file)) }, false)
            }
            try transaction(isDurable: true) { (index) throws(SQLiteError) in
                try index.setPin(nil, of: known.id)
                try index.setOriginDigest(nil, of: known.id)
                // With those of what the origin has, it would say that nothing changed.
                try index.dropValidators(of: known.id)
            }
            offer?.pipeline.pin = nil
            offer?.pipeline.originDigest = nil
            let turn = state.takeTurn()
            return (offer.map { $0.generation(path: layout.reader($0.file), turn: turn) }, true)
        }
    }

    // MARK: Inside

    /// What has come of the operator's choice. What failed when readers saw it already is told as done, with its failure:
    /// nobody else would tell of it before the next check.
    func outcome(
        of content: StoredContent, replacing current: Int64?, in destination: CacheDestination,
        _ state: inout PipelineEntry.State,
        _ body: (inout PipelineEntry.State) throws(CacheError) -> Generation
    ) throws(CacheError) -> RollbackOutcome {
        do throws(CacheError) {
            return RollbackOutcome(generation: try body(&state), replaced: current)
        } catch {
            let offer: IndexedPublication?
            do throws(CacheError) {
                offer = try verifiedOffer(of: destination.pipeline, &state)
            } catch _ {
                offer = nil
            }
            guard let offer, offer.generation.content == content else { throw error }
            let generation = offer.generation(path: layout.reader(offer.file), turn: state.takeTurn())
            return RollbackOutcome(generation: generation, replaced: current, failure: error)
        }
    }

    /// What readers are to keep although there is other content, put into place if need be; nil: nothing is.
    ///
    /// - Throws: ``CacheError/pinnedGone(_:)``.
    func held(
        back candidate: Candidate, to destination: CacheDestination, _ offer: IndexedPublication?,
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
        if let offer, offer.generation.content.number == number { return offer }
        do throws(CacheError) {
            guard let known, row.pin.map({ $0.content == known.content }) ?? true else { throw .damaged(number) }
            _ = try putBack(known, of: row, destination, &state) { _ in }
        } catch .damaged {
            if row.pin != nil { throw .pinnedGone(number) }
            return nil
        }
        return try withIndex { (index) throws(SQLiteError) in try index.offer(of: destination.pipeline) }
    }

    /// Puts the content of a generation that is kept where readers look, in a file of its own.
    private func putBack(
        _ target: IndexedGeneration, of row: IndexedPipeline, _ destination: CacheDestination,
        _ state: inout PipelineEntry.State, _ note: (inout CacheIndex) throws(SQLiteError) -> Void
    ) throws(CacheError) -> Generation {
        var new = target
        new.identity = .none
        do throws(CacheError) {
            return try place(
                copyOf: layout.generation(target.content, of: destination.pipeline), as: new, of: row, destination,
                &state, note)
        } catch .unreadable {
            throw .damaged(target.content.number)
        }
    }

    /// Puts a copy of content that the cache keeps where readers look, as a generation, once its digest was found right.
    /// It outlasts a power cut.
    ///
    /// - Throws: ``CacheError/unreadable`` if it is not there as it was; and what a commit does.
    func place(
        copyOf path: String, as new: IndexedGeneration, of row: IndexedPipeline, _ destination: CacheDestination,
        _ state: inout PipelineEntry.State, _ note: (inout CacheIndex) throws(SQLiteError) -> Void
    ) throws(CacheError) -> Generation {
        var whole = destination
        // What was accepted once is not measured again.
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
            try makeRoom(for: candidate.size, pending.asker)
            try finish(candidate, destination)
            var candidate = candidate
            candidate.truncated = new.truncated
            let copy = try onFiles { (files) throws(SystemCallError) in
                try files.status(self.layout.reader(destination.file))
            }
            try keepAccess(destination, beside: copy)
            return try place(candidate, as: new, of: row, destination, &state, isDurable: true, note)
        }
    }
}
