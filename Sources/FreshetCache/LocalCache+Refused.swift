import Synchronization

/// Content that a check refused, and which is kept aside for a look.
package struct RefusedCandidate: Hashable, Sendable {
    package var digest: ContentDigest
    /// Bytes.
    package var size: Int64
    /// When it was refused last.
    package var refusedAt: WallTime
    /// The check's words.
    package var reason: String
}

/// What became of content that a check refused.
package enum RefusalOutcome: Hashable, Sendable {
    /// It is kept aside, for ``CacheLimits/refusedAge``.
    case kept(RefusedCandidate)
    /// The operator has accepted this very content before: it was committed.
    case accepted(CommitOutcome)
    /// It is the copy that readers have: the check is another one than it was.
    case isCopy
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
    ) throws(CacheError) -> RefusalOutcome {
        try finish { (candidate) throws(CacheError) in
            var candidate = candidate
            candidate.truncated = truncated
            if try cache.isAccepted(candidate.digest, of: destination.pipeline) {
                return .accepted(
                    try cache.commit(
                        candidate, to: destination, validators: validators, run: nil, at: now, expires: expires))
            }
            let refusal = IndexedRefusal(
                digest: candidate.digest, size: candidate.size, refusedAt: now, reason: reason, truncated: truncated,
                expires: expires, validators: validators.first)
            return try cache.setAside(candidate, refusal, for: destination)
        }
    }
}

/// What checks refused.
extension LocalCache {
    /// What was refused last of a pipeline, if that is kept aside still.
    package func refused(_ pipeline: String, at now: WallTime) throws(CacheError) -> RefusedCandidate? {
        try CacheName.check(pipeline)
        let known = try withIndex { (index) throws(SQLiteError) -> IndexedRefusal? in
            guard let row = try index.pipeline(pipeline) else { return nil }
            return try index.refused(of: row.id)
        }
        guard let known, known.isKept(at: now) else { return nil }
        return known.candidate
    }

    /// Opens what was refused last, as ``open(_:of:for:)`` does a generation.
    ///
    /// - Returns: nil if the reader may not have it.
    /// - Throws: ``CacheError/noCandidate`` if nothing is kept aside, or if its file is not what it was.
    package func openRefused(
        of pipeline: String, for reader: FileReader, at now: WallTime
    ) throws(CacheError) -> StoredGeneration? {
        try CacheName.check(pipeline)
        let (row, known) = try withIndex { (index) throws(SQLiteError) -> (IndexedPipeline?, IndexedRefusal?) in
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
            let generation = try publish(known, as: row, destination, &state, at: now)
            return RollbackOutcome(generation: generation, replaced: offer?.generation.content.number)
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
        _ candidate: Candidate, _ refusal: IndexedRefusal, for destination: CacheDestination
    ) throws(CacheError) -> RefusalOutcome {
        try entry(destination.pipeline).state.withLock { (state) throws(CacheError) in
            let offer = try offer(for: destination, &state)
            if offer?.generation.content.digest == candidate.digest {
                try onFiles { (files) throws(SystemCallError) in try files.unlink(candidate.path) }
                return .isCopy
            }
            // Who may read the copy may read what would have become of it.
            try finish(candidate, destination)
            try onFiles { (files) throws(SystemCallError) in
                try files.rename(candidate.path, to: layout.refused(candidate.digest, of: destination.pipeline))
            }
            let before = try transaction { (index) throws(SQLiteError) in
                let row = try index.ensurePipeline(destination.pipeline)
                let before = try index.refused(of: row.id)
                try index.setRefused(refusal, of: row.id)
                return before
            }
            if let before, before.digest != candidate.digest { removeRefused(before.digest, of: destination.pipeline) }
            return .kept(refusal.candidate)
        }
    }

    /// What is left over is removed at the next start.
    func removeRefused(_ digest: ContentDigest, of pipeline: String) {
        try? fileSystem.unlink(layout.refused(digest, of: pipeline))
    }

    /// Forgets what has been kept aside for long enough.
    func dropOldRefusals(of pipeline: String, at now: WallTime) throws(CacheError) {
        let old = try withIndex { (index) throws(SQLiteError) -> ContentDigest? in
            guard let row = try index.pipeline(pipeline), let known = try index.refused(of: row.id),
                !known.isKept(at: now)
            else { return nil }
            try index.setRefused(nil, of: row.id)
            return known.digest
        }
        if let old { removeRefused(old, of: pipeline) }
    }

    private func publish(
        _ known: IndexedRefusal, as row: IndexedPipeline, _ destination: CacheDestination,
        _ state: inout PipelineEntry.State, at now: WallTime
    ) throws(CacheError) -> Generation {
        let path = layout.refused(known.digest, of: destination.pipeline)
        guard try fileSystem.digest(of: path) == known.digest else { throw .noCandidate }
        let descriptor: Int32
        do throws(SystemCallError) {
            descriptor = try fileSystem.openFile(path)
        } catch {
            throw .fileSystem(error)
        }
        defer { fileSystem.close(descriptor) }
        let token = makeToken()
        defer { release(token) }
        var candidate = Candidate(
            descriptor: descriptor, path: path, token: token, digest: known.digest, size: known.size)
        candidate.truncated = known.truncated
        try finish(candidate, destination)
        let validators = [known.validators].compactMap(\.self)
        // Where they do not count yet: see the commit's step 2.
        try transaction { (index) throws(SQLiteError) in
            try index.put(validators, for: known.digest, of: row.id)
            if row.originDigest != nil { try index.setOriginDigest(nil, of: row.id) }
        }
        let generation = IndexedGeneration(
            content: StoredContent(number: row.lastNumber + 1, digest: known.digest), committedAt: now, run: nil,
            identity: .none, truncated: known.truncated)
        return try place(candidate, as: generation, of: row, destination, &state, isDurable: true) {
            (index) throws(SQLiteError) in
            try index.accept(known.digest, of: row.id)
            try index.setRefused(nil, of: row.id)
            // When it was refused, all of the source was asked for.
            try index.recordSuccess(of: row.id, known.digest, at: known.refusedAt, expires: known.expires)
        }
    }
}

extension IndexedRefusal {
    /// A clock that was set back makes nothing older.
    func isKept(at now: WallTime) -> Bool {
        now.nanoseconds - refusedAt.nanoseconds < CacheLimits.refusedAge.components.seconds * 1_000_000_000
    }
}
