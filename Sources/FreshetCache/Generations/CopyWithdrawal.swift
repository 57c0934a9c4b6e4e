package import FreshetModel
import Synchronization

/// Withdraws copies that are too old for readers.
///
/// The content of a withdrawn copy stays as the current generation; only the published file is removed. The withdrawal
/// is recorded in the index before the file is removed, and its end before the file is published again; both survive a
/// power cut. So after any crash the index shows what readers must find, and the next start does the rest.
package struct CopyWithdrawal: Sendable {
    let context: CacheContext
    let ownership: FileOwnership
    let verifier: PublicationVerifier
    let published: PublishedFiles
    let sets: FileSetStore
    let access: AccessRights
    let recovery: CacheRecovery

    /// Withdraws the copy of a pipeline.
    ///
    /// - Parameter isMoot: called with the pipeline's lock held; if it returns true, the copy is not changed.
    package func withdraw(
        _ pipeline: String, at now: WallTime, unless isMoot: () -> Bool = { false }
    ) throws(CacheError) -> WithdrawalOutcome {
        try CacheName.check(pipeline)
        return try context.entry(pipeline).withLock { (state) throws(CacheError) -> WithdrawalOutcome in
            // This makes index and files agree first. A damaged copy must not be published again either.
            let whole = try verifier.keptPublication(of: pipeline, &state)
            let row = try context.withIndex { (index) throws(SQLiteError) in try index.pipelines.row(pipeline) }
            guard let row, let file = row.file, row.current != nil, row.pin == nil, !isMoot() else { return .left }
            // If this fails from here on, the next access retries it.
            state.isSuspect = true
            let publication = try context.sharedDurableTransaction { (index) throws(SQLiteError) in
                // Written again even if an earlier attempt wrote it: that transaction may not have been flushed.
                try index.pipelines.setWithdrawn(row.withdrawnAt ?? now, of: row.id)
                return try index.publication(of: pipeline)
            }
            // As in a commit, the link changes before the stamp.
            if let link = row.link { try sets.hide(of: pipeline, at: link) }
            try published.hide(file)
            state.isSuspect = false
            if let whole { try recordLoss(of: whole) }
            if let known = try verifier.keptPublication(of: pipeline, &state) {
                return .withdrawn(
                    known.generation(at: context.layout.location(known.file), revision: state.nextRevision()))
            }
            guard let publication else { return .left }
            return .damaged(publication.generation(at: context.layout.location(file), revision: state.nextRevision()))
        }
    }

    /// Publishes a withdrawn copy again: the same generation, with the mode and group that are configured now.
    ///
    /// - Returns: the current generation; nil if no content is kept, or if it is damaged.
    package func putBack(_ destination: CacheDestination) throws(CacheError) -> CurrentGeneration? {
        try CacheName.check(destination.pipeline)
        try CacheName.check(destination.file)
        return try context.entry(destination.pipeline).withLock { (state) throws(CacheError) in
            try ownership.claim(destination)
            guard let known = try verifier.keptPublication(of: destination.pipeline, &state) else { return nil }
            let location = context.layout.location(known.file)
            // Also if it was published already: the caller does not know that.
            let shown = known.isWithdrawn ? try show(known, at: destination, &state) : known
            return shown.generation(at: location, revision: state.nextRevision())
        }
    }

    /// The most attempts to restore one published file.
    private static let restorations = 5

    /// Restores the published file if it was removed, replaced or changed by another program, and the generation has an
    /// undamaged file. No older generation takes its place: only a start or an examination does that.
    package func restoreCopy(of pipeline: String) throws(CacheError) -> CopyRestoration {
        try CacheName.check(pipeline)
        if try verifier.keptPublication(of: pipeline) != nil { return .found }
        return try context.entry(pipeline).withLock { (state) throws(CacheError) in
            if try verifier.keptPublication(of: pipeline, &state) != nil { return .found }
            let known = try context.withIndex { (index) throws(SQLiteError) in try index.publication(of: pipeline) }
            // It was withdrawn meanwhile, so readers do not find it.
            if known?.isWithdrawn == true { return .found }
            // Readers have not seen it under a name that was assigned since.
            guard let known, !known.generation.identity.isOfFormerName else { return .lost }
            let content = known.generation.content
            guard try context.fileSystem.digest(of: context.layout.generation(content, of: pipeline)) == content.digest
            else {
                return .lost
            }
            // Another program may remove the file again meanwhile.
            for _ in 0..<Self.restorations {
                state.isSuspect = true
                guard let publication = try verifier.verifiedPublication(of: pipeline, &state) else { continue }
                return .restored(
                    publication.generation(
                        at: context.layout.location(publication.file), revision: state.nextRevision()))
            }
            return .lost
        }
    }

    /// Whether the copy of the pipeline, published or withdrawn, exists and is undamaged.
    package func keepsCopy(_ pipeline: String) throws(CacheError) -> Bool {
        try CacheName.check(pipeline)
        return try verifier.keptPublication(of: pipeline) != nil
    }

    // MARK: Inside

    /// Updates the identity of a file that has lost a name: nothing else of it has changed, so its content need not be
    /// read.
    private func recordLoss(of whole: IndexedPublication) throws(CacheError) {
        let stored = context.layout.generation(whole.generation.content, of: whole.pipeline.name)
        guard let status = try context.onFiles({ (files) throws(SystemCallError) in try files.status(stored) }) else {
            return
        }
        var generation = whole.generation
        generation.identity.changed = status.identity.changed
        guard generation.identity == status.identity, generation != whole.generation else { return }
        let (row, id) = (generation, whole.pipeline.id)
        try recordIdentity(of: row, id)
    }

    /// Records the identity of a generation's file. Without space for it, the withdrawal or its end is complete
    /// nevertheless; the next start reads the content once more.
    private func recordIdentity(of row: IndexedGeneration, _ pipeline: Int64) throws(CacheError) {
        do throws(CacheError) {
            try context.withIndex { (index) throws(SQLiteError) in try index.update(row, of: pipeline) }
        } catch  where error.isFullIndex {
            // The verification of the copy tries again.
        }
    }

    /// Publishes withdrawn content again.
    private func show(
        _ known: IndexedPublication, at destination: CacheDestination, _ state: inout PipelineEntry.State
    ) throws(CacheError) -> IndexedPublication {
        let (content, pipeline) = (known.generation.content, known.pipeline.name)
        let stored = context.layout.generation(content, of: pipeline)
        try context.onFiles { (files) throws(SystemCallError) in try context.makeDirectories(for: pipeline, files) }
        // This must be before readers see it.
        _ = try access.set(of: known, to: destination)
        if destination.isSet { try sets.make(content, of: pipeline, from: stored) }
        let set = destination.isSet ? try sets.name(of: content, in: pipeline) : content
        state.isSuspect = true
        do throws(CacheError) {
            try context.sharedDurableTransaction { (index) throws(SQLiteError) in
                try index.pipelines.setWithdrawn(nil, of: known.pipeline.id)
            }
            let token = context.names.make()
            defer { context.names.release(token) }
            var shown = known
            shown.pipeline.withdrawnAt = nil
            shown.generation.identity = try context.onFiles { (files) throws(SystemCallError) in
                let reader = context.layout.reader(known.file)
                if let link = destination.link {
                    _ = try sets.show(set, of: pipeline, at: link, files)
                }
                try published.link(stored, at: reader, by: token, files)
                try published.synchronize(files)
                guard let status = try files.status(reader) else {
                    throw SystemCallError(call: "lstat", path: reader, errno: SystemCallError.missing)
                }
                return status.identity
            }
            try recordIdentity(of: shown.generation, known.pipeline.id)
            state.isSuspect = false
            return shown
        } catch {
            recovery.complete(pipeline, &state)
            throw error
        }
    }
}

/// The result of withdrawing a copy.
package enum WithdrawalOutcome: Hashable, Sendable {
    /// Readers no longer find the copy, and its content is kept.
    case withdrawn(CurrentGeneration)
    /// The copy was damaged: readers no longer find it, and no content of it is kept.
    case damaged(CurrentGeneration)
    /// There is no copy, or it is pinned, or the withdrawal was no longer necessary.
    case left

    /// The withdrawn generation, if it is kept.
    package var kept: CurrentGeneration? { if case .withdrawn(let generation) = self { generation } else { nil } }
}

/// The result of checking whether readers find a copy.
package enum CopyRestoration: Hashable, Sendable {
    /// Readers find the copy, or must not find it.
    case found
    /// Readers find the copy again.
    case restored(CurrentGeneration)
    /// Readers do not find the copy, and there is no undamaged file with its content.
    case lost
}
