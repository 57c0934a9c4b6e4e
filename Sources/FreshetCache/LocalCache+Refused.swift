import Synchronization

/// Content that a check refused, and which is kept aside for a look.
package struct RejectedCandidate: Hashable, Sendable {
    package var digest: ContentDigest
    /// Bytes.
    package var size: Int64
    /// When it was refused last.
    package var refusedAt: WallTime
    /// The check's words.
    package var reason: String

    /// From then on it is not kept.
    package var keptUntil: WallTime {
        WallTime(
            nanoseconds: refusedAt.nanoseconds.addingClamped(CacheLimits.refusedAge.components.seconds * 1_000_000_000))
    }
}

/// What became of content that a check refused.
package enum RejectionOutcome: Hashable, Sendable {
    /// It is kept aside, for ``CacheLimits/refusedAge``.
    case kept(RejectedCandidate)
    /// The operator has accepted this very content before: it was committed.
    case accepted(CommitOutcome)
    /// It is the copy that readers have: the check is another one than it was. Nothing is kept of it.
    case isCopy(ContentDigest)
}

extension PendingGeneration {
    /// Keeps the candidate aside, instead of what was refused before of this pipeline; it ends by that. Content that the
    /// operator has accepted once is committed, whatever the check says.
    ///
    /// - Parameters:
    ///   - reason: why it was refused, in words for people.
    ///   - others: as of ``commit(validators:truncated:isCheck:run:at:expires:)``.
    package func setAside(
        because reason: String, validators: [Validators] = [], truncated: Bool = false, at now: WallTime,
        expires: WallTime? = nil
    ) throws(CacheError) -> RejectionOutcome {
        try finish { (candidate) throws(CacheError) in
            var candidate = candidate
            candidate.truncated = truncated
            if try cache.isAccepted(candidate.digest, of: destination.pipeline) {
                return .accepted(
                    try cache.commit(
                        candidate, to: destination, validators: validators, run: nil, at: now, expires: expires))
            }
            let refusal = IndexedRejection(
                digest: candidate.digest, size: candidate.size, refusedAt: now, reason: reason, truncated: truncated,
                expires: expires, validators: validators.first)
            return try cache.setAside(candidate, refusal, for: destination)
        }
    }
}

/// What checks refused.
extension LocalCache {
    /// What was refused last of a pipeline, if that is kept aside still.
    package func refused(_ pipeline: String, at now: WallTime) throws(CacheError) -> RejectedCandidate? {
        try CacheName.check(pipeline)
        let known = try withIndex { (index) throws(SQLiteError) -> IndexedRejection? in
            guard let row = try index.pipeline(pipeline) else { return nil }
            return try index.refused(of: row.id)
        }
        guard let known, known.isKept(at: now) else { return nil }
        return known.candidate
    }

    /// Whether what was refused last is this, and its file is there still.
    package func keepsRefused(_ pipeline: String, _ digest: String, at now: WallTime) throws(CacheError) -> Bool {
        guard let known = try refused(pipeline, at: now), known.digest.description == digest else { return false }
        return try onFiles { (files) throws(SystemCallError) in
            try files.status(layout.refused(known.digest, of: pipeline))?.identity.size == known.size
        }
    }

    /// Whether the copy, also one that is withdrawn, is whole and has this digest, in hexadecimal digits.
    package func isCopy(_ pipeline: String, _ digest: String) throws(CacheError) -> Bool {
        try CacheName.check(pipeline)
        return try keptOffer(of: pipeline)?.generation.content.digest.description == digest
    }

    /// Opens what was refused last, as ``open(_:of:for:)`` does a generation.
    ///
    /// - Returns: nil if the reader may not have it.
    /// - Throws: ``CacheError/noCandidate`` if nothing is kept aside, or if its file is not what it was.
    package func openRefused(
        of pipeline: String, for reader: FileReader, at now: WallTime
    ) throws(CacheError) -> StoredGeneration? {
        try CacheName.check(pipeline)
        let (row, known) = try withIndex { (index) throws(SQLiteError) -> (IndexedPipeline?, IndexedRejection?) in
            guard let row = try index.pipeline(pipeline) else { return (nil, nil) }
            return (row, try index.refused(of: row.id))
        }
        guard let row, let known, known.isKept(at: now) else { throw .noCandidate }
        do throws(CacheError) {
            return try open(layout.refused(known.digest, of: pipeline), known.digest, offeredAt: row.file, for: reader)
        } catch .unreadable {
            throw .noCandidate
        }
    }

    /// Makes what a check refused the copy, as a new generation. What the check says of this content does not matter any
    /// more, as long as a generation of it is kept. It outlasts a power cut.
    ///
    /// - Parameter expected: how the digest begins of what is meant, in hexadecimal digits; nil: whatever is kept aside.
    /// - Throws: ``CacheError/noCandidate``, ``CacheError/otherCandidate(_:)``, ``CacheError/pinned(_:)``, and what a commit
    ///   does.
    package func accept(
        _ destination: CacheDestination, _ expected: String? = nil, at now: WallTime
    ) throws(CacheError) -> RollbackOutcome {
        try CacheName.check(destination.pipeline)
        try CacheName.check(destination.file)
        return try entry(destination.pipeline).state.withLock { (state) throws(CacheError) in
            let offer = try offer(for: destination, &state)
            let (row, known) = try withIndex { (index) throws(SQLiteError) in
                let row = try index.ensurePipeline(destination.pipeline)
                return (row, try index.refused(of: row.id))
            }
            guard let known, known.isKept(at: now) else { throw .noCandidate }
            if let expected, !known.digest.description.hasPrefix(expected.lowercased()) {
                throw .otherCandidate(known.digest)
            }
            if let pin = row.pin { throw .pinned(pin.content.number) }
            if let offer, offer.generation.content.digest == known.digest {
                // A check has let it pass since.
                try settle(known, of: row)
                return RollbackOutcome(generation: offer.generation(path: layout.reader(offer.file)), replaced: nil)
            }
            return try publish(
                known, as: row, destination, &state, replacing: offer?.generation.content.number, at: now)
        }
    }

    // MARK: Inside

    func isAccepted(_ digest: ContentDigest, of pipeline: String) throws(CacheError) -> Bool {
        try withIndex { (index) throws(SQLiteError) in
            guard let row = try index.pipeline(pipeline) else { return false }
            return try index.isAccepted(digest, of: row.id)
        }
    }

    fileprivate func setAside(
        _ candidate: Candidate, _ refusal: IndexedRejection, for destination: CacheDestination
    ) throws(CacheError) -> RejectionOutcome {
        try entry(destination.pipeline).state.withLock { (state) throws(CacheError) in
            let offer = try offer(for: destination, &state)
            if offer?.generation.content.digest == candidate.digest {
                try onFiles { (files) throws(SystemCallError) in try files.unlink(candidate.path) }
                return .isCopy(candidate.digest)
            }
            try makeRoom(for: candidate.size, SpaceRequest(destination, holdsLock: true, isRefusal: true))
            // Who may read the copy may read what would have become of it.
            try finish(candidate, destination)
            try onFiles { (files) throws(SystemCallError) in
                try files.rename(candidate.path, to: layout.refused(candidate.digest, of: destination.pipeline))
            }
            let (isNoted, before) = try contentTransaction(of: candidate.token) {
                (index) throws(SQLiteError) -> (Bool, IndexedRejection?) in
                // A reload may have given it another file since, or had it keep the other kind of content.
                guard try index.isStill(destination) else { return (false, nil) }
                let row = try index.ensurePipeline(destination.pipeline)
                let before = try index.refused(of: row.id)
                try index.setRefused(refusal, of: row.id)
                return (true, before)
            }
            guard isNoted else {
                removeRefused(candidate.digest, of: destination.pipeline)
                throw .reassigned(destination.pipeline)
            }
            if let before, before.digest != candidate.digest { removeRefused(before.digest, of: destination.pipeline) }
            return .kept(refusal.candidate)
        }
    }

    /// What is left over is removed at the next start.
    func removeRefused(_ digest: ContentDigest, of pipeline: String) {
        try? fileSystem.unlink(layout.refused(digest, of: pipeline))
        try? measure()
    }

    /// Forgets what has been kept aside for long enough.
    func dropOldRefusals(of pipeline: String, at now: WallTime) throws(CacheError) {
        try entry(pipeline).state.withLock { _ throws(CacheError) in
            try forgetRefusal(of: pipeline) { !$0.isKept(at: now) }
        }
    }

    /// What the origin has has passed the checks: it is nothing that was refused any more. The caller holds the
    /// pipeline's lock.
    func forgetRefusal(of pipeline: String, ofContent digest: ContentDigest) throws(CacheError) {
        try forgetRefusal(of: pipeline) { $0.digest == digest }
    }

    private func forgetRefusal(
        of pipeline: String, if isOver: (IndexedRejection) -> Bool
    ) throws(CacheError) {
        let over = try withIndex { (index) throws(SQLiteError) -> ContentDigest? in
            guard let row = try index.pipeline(pipeline), let known = try index.refused(of: row.id), isOver(known)
            else { return nil }
            try index.setRefused(nil, of: row.id)
            return known.digest
        }
        if let over { removeRefused(over, of: pipeline) }
    }

    /// It is accepted, and not kept aside any more.
    private func settle(_ known: IndexedRejection, of row: IndexedPipeline) throws(CacheError) {
        try transaction(isDurable: true) { (index) throws(SQLiteError) in
            try index.accept(known.digest, of: row.id)
            try index.setRefused(nil, of: row.id)
        }
        removeRefused(known.digest, of: row.name)
    }

    private func publish(
        _ known: IndexedRejection, as row: IndexedPipeline, _ destination: CacheDestination,
        _ state: inout PipelineEntry.State, replacing current: Int64?, at now: WallTime
    ) throws(CacheError) -> RollbackOutcome {
        let success = try withIndex { (index) throws(SQLiteError) in
            try index.refreshState(of: destination.pipeline)?.lastSuccess
        }
        // Nothing was found at the origin since: it is a check that succeeds late. Else it has other content, which is held
        // back as after a rollback.
        let isNewest = success.map { $0 <= known.refusedAt } ?? true
        let origin = isNewest ? nil : row.originDigest ?? row.checkDigest
        // Before readers see it, so that no crash makes the next check undo it; the validators do not count yet.
        try transaction(isDurable: true) { (index) throws(SQLiteError) in
            try index.setOriginDigest(origin, of: row.id)
            try index.put([known.validators].compactMap(\.self), for: known.digest, of: row.id)
            try index.accept(known.digest, of: row.id)
        }
        let generation = IndexedGeneration(
            content: StoredContent(number: IndexBounds.next(after: row.lastNumber), digest: known.digest),
            committedAt: now, run: nil,
            identity: .none, truncated: known.truncated)
        let path = layout.refused(known.digest, of: destination.pipeline)
        let outcome: RollbackOutcome
        do throws(CacheError) {
            outcome = try self.outcome(of: generation.content, replacing: current, in: destination, &state) {
                (state) throws(CacheError) in
                try place(copyOf: path, as: generation, of: row, destination, &state) { (index) throws(SQLiteError) in
                    try index.setRefused(nil, of: row.id)
                    // When it was refused, all of the source was asked for.
                    if isNewest {
                        try index.recordSuccess(of: row.id, known.digest, at: known.refusedAt, expires: known.expires)
                    }
                }
            }
        } catch .unreadable {
            throw .noCandidate
        }
        if outcome.failure == nil { removeRefused(known.digest, of: destination.pipeline) }
        return outcome
    }
}

extension IndexedRejection {
    /// A clock that was set back makes nothing older.
    func isKept(at now: WallTime) -> Bool {
        now < candidate.keptUntil
    }
}
