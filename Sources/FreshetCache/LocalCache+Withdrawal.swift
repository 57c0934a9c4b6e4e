import Synchronization

/// What came of withdrawing a copy.
package enum WithdrawalOutcome: Hashable, Sendable {
    /// Readers find it no more, and it is kept.
    case withdrawn(Generation)
    /// It was not whole: readers find it no more, and nothing of it is kept that could come back.
    case damaged(Generation)
    /// There is nothing, or it is pinned, or it was moot.
    case left

    /// What is withdrawn and kept.
    package var kept: Generation? { if case .withdrawn(let generation) = self { generation } else { nil } }
}

/// Copies that readers are not to find, since they are too old for them.
///
/// The content of one stays, as the current generation's; its file goes. That it is withdrawn is in the index before the
/// file goes, and that it is not any more before the file comes back, both so that a power cut does not take it: whatever a
/// crash leaves, the index says what readers are to find, and the next start does the rest.
extension LocalCache {
    /// Takes away what readers find of a pipeline.
    ///
    /// - Parameter isMoot: asked when nothing else can happen to the copy before it is done; true: it is left as it is.
    package func withdraw(
        _ pipeline: String, at now: WallTime, unless isMoot: () -> Bool = { false }
    ) throws(CacheError) -> WithdrawalOutcome {
        try CacheName.check(pipeline)
        return try entry(pipeline).state.withLock { (state) throws(CacheError) -> WithdrawalOutcome in
            // Index and files agree before. A copy that is not whole is not to be put back by anybody either.
            let whole = try keptOffer(of: pipeline, &state)
            let row = try withIndex { (index) throws(SQLiteError) in try index.pipeline(pipeline) }
            guard let row, let file = row.file, row.current != nil, row.pin == nil, !isMoot() else { return .left }
            // Should it fail anywhere from here on, whoever asks next tries again.
            state.isSuspect = true
            let offer = try sharedDurableTransaction { (index) throws(SQLiteError) in
                // Written anew also if an attempt before this one did: its word may not be on the disk.
                try index.setWithdrawn(row.withdrawnAt ?? now, of: row.id)
                return try index.offer(of: pipeline)
            }
            // As with a commit, the link is seen before the stamp.
            if let link = row.link { try hideSet(of: pipeline, at: link) }
            try hide(file)
            state.isSuspect = false
            if let whole { try noteLoss(of: whole) }
            if let known = try keptOffer(of: pipeline, &state) {
                return .withdrawn(known.generation(path: layout.reader(known.file), turn: state.takeTurn()))
            }
            guard let offer else { return .left }
            return .damaged(offer.generation(path: layout.reader(file), turn: state.takeTurn()))
        }
    }

    /// Has readers find again what was withdrawn: the same generation, with the mode and group that are configured now.
    ///
    /// - Returns: what is offered; nil: nothing is kept, or what is kept is not whole.
    package func putBack(_ destination: CacheDestination) throws(CacheError) -> Generation? {
        try CacheName.check(destination.pipeline)
        try CacheName.check(destination.file)
        return try entry(destination.pipeline).state.withLock { (state) throws(CacheError) in
            try claim(destination)
            guard let known = try keptOffer(of: destination.pipeline, &state) else { return nil }
            let path = layout.reader(known.file)
            // Also if it was there: whoever asks has not heard of that.
            let shown = known.isWithdrawn ? try show(known, at: destination, &state) : known
            return shown.generation(path: path, turn: state.takeTurn())
        }
    }

    /// Whether what readers find of the pipeline, or would if it were not withdrawn, is there and whole.
    package func keepsCopy(_ pipeline: String) throws(CacheError) -> Bool {
        try CacheName.check(pipeline)
        return try keptOffer(of: pipeline) != nil
    }

    /// Takes a name away from readers, whatever it is: one of the cache's own goes, and so does what a commit would replace.
    func hide(_ file: String) throws(CacheError) {
        let path = layout.reader(file)
        try onFiles { (files) throws(SystemCallError) in
            guard let status = try files.status(path) else { return }
            if status.isDirectory { try self.takeAway(path, files) } else { try files.unlink(path) }
            try self.synchronizeCurrent(files)
        }
    }

    // MARK: Inside

    /// Many copies expire at one time, when the way to their origins is gone: they share the flush, as commits do.
    private func synchronizeCurrent(_ files: any FileSystem) throws(SystemCallError) {
        try currentFlush.perform { () throws(SystemCallError) in try files.synchronizeDirectory(layout.current) }
    }

    /// A file that has lost a name has changed in nothing else: its content need not be read for that.
    private func noteLoss(of whole: IndexedPublication) throws(CacheError) {
        let stored = layout.generation(whole.generation.content, of: whole.pipeline.name)
        guard let status = try onFiles({ (files) throws(SystemCallError) in try files.status(stored) }) else { return }
        var generation = whole.generation
        generation.identity.changed = status.identity.changed
        guard generation.identity == status.identity, generation != whole.generation else { return }
        let (row, id) = (generation, whole.pipeline.id)
        try withIndex { (index) throws(SQLiteError) in try index.update(row, of: id) }
    }

    /// Gives withdrawn content its name for readers again.
    private func show(
        _ known: IndexedPublication, at destination: CacheDestination, _ state: inout PipelineEntry.State
    ) throws(CacheError) -> IndexedPublication {
        let (content, pipeline) = (known.generation.content, known.pipeline.name)
        let stored = layout.generation(content, of: pipeline)
        try onFiles { (files) throws(SystemCallError) in try self.makeDirectories(for: pipeline, files) }
        // Before anybody sees it.
        _ = try setAccess(of: known, to: destination)
        if destination.isSet { try makeSet(content, of: pipeline, from: stored) }
        state.isSuspect = true
        do throws(CacheError) {
            try sharedDurableTransaction { (index) throws(SQLiteError) in
                try index.setWithdrawn(nil, of: known.pipeline.id)
            }
            let token = makeToken()
            defer { release(token) }
            var shown = known
            shown.pipeline.withdrawnAt = nil
            shown.generation.identity = try onFiles { (files) throws(SystemCallError) in
                let reader = self.layout.reader(known.file)
                if let link = destination.link {
                    _ = try self.showSet(content, of: pipeline, at: link, files)
                }
                try files.replace(reader, withLinkTo: stored, by: self.layout.readerTemporary(token))
                try self.synchronizeCurrent(files)
                guard let status = try files.status(reader) else {
                    throw SystemCallError(call: "lstat", path: reader, errno: SystemCallError.missing)
                }
                return status.identity
            }
            let generation = shown.generation
            try withIndex { (index) throws(SQLiteError) in try index.update(generation, of: known.pipeline.id) }
            state.isSuspect = false
            return shown
        } catch {
            // What the index says is done if it can be; if not, the next who asks tries again.
            do throws(CacheError) {
                _ = try reconcile(pipeline)
                state.isSuspect = false
            } catch _ {
                // The first error is the cause; this one comes back with the next try.
            }
            throw error
        }
    }
}
