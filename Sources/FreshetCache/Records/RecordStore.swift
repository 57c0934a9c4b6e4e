package import FreshetModel

/// The records about pipelines that the index keeps besides their content: checks, runs, budgets, parameters, small
/// values, and parts of snapshots, with which the next run can make a conditional request for each. Readers do not use
/// parts: if they are lost, they are fetched again.
package struct RecordStore: Sendable {
    let context: CacheContext
    let verifier: PublicationVerifier
    let rejected: RejectedFiles

    /// Records that the origin confirmed the content (a 304, or a command or file without changes).
    ///
    /// - Parameters:
    ///   - asked: the validators of the request. If they no longer belong to the content that the copy is compared
    ///     with, because the copy was unpinned or rolled back meanwhile, the response is ignored.
    ///   - validators: the validators of the response; they replace those of the same URLs.
    ///   - expires: when the content stops being fresh, as the origin states; replaces the earlier value.
    /// - Returns: the current generation, which may still be withdrawn (see ``putBack(_:)``), if the response confirmed
    ///   it or it is held back. Nil, and nothing is recorded, if it no longer exists: the request must be repeated.
    package func recordUnchanged(
        _ pipeline: String, asked: BoundValidators? = nil, validators: [BoundValidators] = [], expires: WallTime? = nil,
        at now: WallTime
    ) throws(CacheError) -> CurrentGeneration? {
        guard try verifier.keptPublication(of: pipeline) != nil else { return nil }
        defer { if !validators.isEmpty { context.knownEntry(pipeline)?.forget() } }
        return try context.transaction { (index) throws(SQLiteError) in
            // Read again: this method does not hold the pipeline's lock, so the copy may be another one by now.
            guard let publication = try index.publication(of: pipeline) else { return nil }
            let id = publication.pipeline.id
            if let asked,
                try index.validators.row(boundTo: asked.binding, for: publication.checkedDigest, of: id)
                    != asked.validators
            {
                return nil
            }
            try index.validators.put(validators, for: publication.checkedDigest, of: id)
            try index.pipelines.recordSuccess(of: id, publication.checkedDigest, at: now, expires: expires)
            return publication.generation(at: context.layout.location(publication.file))
        }
    }

    /// Appends a run to the records that the index gets with the next transaction, or by ``storeDeferred(at:)``. Never
    /// waits.
    ///
    /// - Returns: how many records wait then; nil: too many, and this one was not appended.
    package func append(_ run: RunRecord) -> Int? {
        CacheName.error(in: run.pipeline) == nil ? context.index.deferred.append(.run(run)) : 0
    }

    /// Stores the waiting records, and removes rejected content whose time is over.
    ///
    /// - Returns: how many records still wait; and whether the reason is that another process has locked the index, or
    ///   that there is no space. Otherwise they are new.
    @discardableResult
    package func storeDeferred(at now: WallTime) throws(CacheError) -> (waiting: Int, isObstructed: Bool) {
        context.index.writer.endBlock()
        let names = try context.withIndex { (index) throws(SQLiteError) in try index.rejected.pipelines(over: now) }
        for name in names { try rejected.dropOld(of: name, at: now) }
        return (waiting, context.index.writer.isBlocked)
    }

    /// How many records wait.
    package var waiting: Int { context.index.deferred.count }

    /// Records a failed attempt.
    ///
    /// - Parameter retryAfter: until when the origin wants no further request; it survives a power cut. Nil keeps the
    ///   value of an earlier attempt; a success clears it.
    package func recordFailure(
        _ pipeline: String, at now: WallTime, retryAfter: WallTime? = nil
    ) throws(CacheError) {
        try CacheName.check(pipeline)
        try context.transaction(isDurable: retryAfter != nil) { (index) throws(SQLiteError) in
            let id = try index.pipelines.ensure(pipeline).id
            try index.pipelines.recordFailure(of: id, at: now, retryAfter: retryAfter)
        }
    }

    /// Forgets the `Retry-After`, because the origin was changed.
    package func forgetRetryAfter(_ pipeline: String) throws(CacheError) {
        try CacheName.check(pipeline)
        try context.transaction { (index) throws(SQLiteError) in
            try index.pipelines.forgetRetryAfter(of: try index.pipelines.ensure(pipeline).id)
        }
    }

    /// The state of attempts. The last success counts only while its content exists.
    package func refreshState(_ pipeline: String) throws(CacheError) -> RefreshState {
        var state = try context.withIndex { (index) throws(SQLiteError) in
            try index.pipelines.refreshState(of: pipeline)
        }
        if state?.lastSuccess != nil, try verifier.keptPublication(of: pipeline) == nil { state?.forgetSuccess() }
        return state ?? RefreshState()
    }

    /// The stored state of a pipeline; nil if the pipeline is not in the index.
    ///
    /// - Parameter key: the key of the small value that is the binding of the copy.
    package func memory(_ pipeline: String, key: String) throws(CacheError) -> PersistentState? {
        let found = try context.withIndex { (index) throws(SQLiteError) in
            try index.pipelineStates.row(of: pipeline, key: key)
        }
        guard let found else { return nil }
        var memory = try memory(found)
        memory.requests =
            try context.withIndex { (index) throws(SQLiteError) in try index.requests.all(of: pipeline) }[pipeline]
            ?? []
        memory.parameters =
            try context.withIndex { (index) throws(SQLiteError) in try index.parameters.all(of: pipeline) }[pipeline]
            ?? [:]
        memory.pages =
            try context.withIndex { (index) throws(SQLiteError) in try index.parts.pages(of: pipeline) }[pipeline] ?? []
        memory.rejected =
            try context.withIndex { (index) throws(SQLiteError) in try index.rejected.row(of: found.pipeline.id) }?
            .candidate
        return memory
    }

    /// The same for all pipelines, with one access to the index.
    ///
    /// - Returns: the stored states, and the names of the pipelines whose state cannot be read, for example because the
    ///   directory of their file is not readable. All other pipelines have no stored state.
    package func memories(
        key: String
    ) throws(CacheError) -> (states: [String: PersistentState], unreadable: Set<String>) {
        finish(try indexedMemories(key: key, among: []))
    }

    /// Reads the stored states of all pipelines without a look at their files.
    ///
    /// - Parameter compared: the rows of pipelines whose published file is, or will be, compared with the index; nil:
    ///   all that have one published file.
    func indexedMemories(key: String, among compared: Set<Int64>?) throws(CacheError) -> IndexedMemories {
        var memories = IndexedMemories()
        try context.withIndex { (index) throws(SQLiteError) in
            memories.changes = index.database.totalChanges
            memories.rejected = Dictionary(try index.rejected.all().map { ($0.pipeline, $0.rejection.candidate) }) {
                first, _ in first
            }
            try index.pipelineStates.walk(key: key) { indexed in
                guard let copy = indexed.publication, !copy.isWithdrawn, !copy.pipeline.isSet,
                    compared?.contains(copy.pipeline.id) ?? true
                else { return memories.others.append(indexed) }
                memories.compared.append(copy.pipeline.id)
                var state = memory(indexed, copy)
                if !memories.rejected.isEmpty { state.rejected = memories.rejected[indexed.pipeline.id] }
                memories.states[indexed.pipeline.name] = state
            }
            memories.requests = try index.requests.all()
            memories.parameters = try index.parameters.all()
            memories.pages = try index.parts.pages()
        }
        return memories
    }

    /// Adds the states whose files have to be looked at. This may take the locks of their pipelines.
    func finish(
        _ memories: consuming IndexedMemories
    ) -> (states: [String: PersistentState], unreadable: Set<String>) {
        var result = memories.states
        // Otherwise the first change would copy all of them.
        memories.states = [:]
        var unreadable: Set<String> = []
        result.reserveCapacity(result.count + memories.others.count)
        for indexed in memories.others {
            guard var state = try? memory(indexed) else {
                unreadable.insert(indexed.pipeline.name)
                continue
            }
            if !memories.rejected.isEmpty { state.rejected = memories.rejected[indexed.pipeline.id] }
            result[indexed.pipeline.name] = state
        }
        for (name, requests) in memories.requests { result[name]?.requests = requests }
        for (name, parameters) in memories.parameters { result[name]?.parameters = parameters }
        for (name, pages) in memories.pages { result[name]?.pages = pages }
        return (result, unreadable)
    }

    private func memory(_ indexed: IndexedPipelineState) throws(CacheError) -> PersistentState {
        let publication: IndexedPublication?
        var copyError: String?
        do throws(CacheError) {
            publication = try self.publication(indexed)
        } catch  where error.isFullIndex {
            let isPublished = indexed.pipeline.file.map { context.layout.reader($0) }.map { path in
                (try? context.onFiles { (files) throws(SystemCallError) in try files.status(path) }) != .some(nil)
            }
            copyError =
                (isPublished == true ? "published, but not recorded yet: " : "not published: ") + error.description
            // The copy cannot be compared with the index, which is tried again. What else is stored counts: the end of
            // a Retry-After, budgets, parameters.
            publication = nil
        }
        var state = memory(indexed, publication)
        state.copyError = copyError
        return state
    }

    /// - Parameter publication: the copy, as far as it is undamaged.
    private func memory(_ indexed: IndexedPipelineState, _ publication: IndexedPublication?) -> PersistentState {
        var attempts = indexed.attempts
        if publication == nil { attempts.forgetSuccess() }
        var state = PersistentState(
            generation: publication.map { $0.generation(at: context.layout.location($0.file)) },
            lastCheck: attempts.lastSuccess, expires: attempts.expires, retryAfter: attempts.retryAfter,
            lastRun: UInt64(clamping: indexed.lastRun),
            binding: indexed.value.map { String(decoding: $0, as: UTF8.self) })
        state.lastRunRecord = indexed.lastRunRecord
        return state
    }

    private func publication(_ indexed: IndexedPipelineState) throws(CacheError) -> IndexedPublication? {
        if let known = indexed.publication { return try verifier.kept(known) }
        // Without content, only the remains of a failed commit can be found.
        return context.isSuspect(indexed.pipeline.name)
            ? try verifier.keptPublication(of: indexed.pipeline.name) : nil
    }

    /// Stores the requests that count against a pipeline's budget, in the place of the previous ones. A power cut may
    /// undo the last seconds.
    ///
    /// - Parameter requests: at most ``CacheLimits/spentPerPipeline``; older requests beyond that are left out.
    package func recordRequests(_ pipeline: String, _ requests: [RequestBurst]) throws(CacheError) {
        try CacheName.check(pipeline)
        try context.transaction { (index) throws(SQLiteError) in
            try index.requests.set(
                requests.suffix(CacheLimits.spentPerPipeline), of: try index.pipelines.ensure(pipeline).id)
        }
    }

    /// Stores the parameters that are set for a pipeline, in the place of the previous ones. A power cut may undo the
    /// last seconds.
    ///
    /// - Parameter settings: returns names and values; called with the index locked, so that the newest of concurrent
    ///   calls is stored last.
    package func recordParameters(_ pipeline: String, _ settings: () -> [String: String]) throws(CacheError) {
        try CacheName.check(pipeline)
        try context.transaction { (index) throws(SQLiteError) in
            try index.parameters.set(settings(), of: try index.pipelines.ensure(pipeline).id)
        }
    }

    /// Stores a run. Runs beyond the newest ``CacheLimits/runsPerPipeline`` are not returned any more, and are deleted.
    package func record(_ run: RunRecord) throws(CacheError) {
        try CacheName.check(run.pipeline)
        try context.transaction { (index) throws(SQLiteError) in
            let id = try index.pipelines.ensureID(run.pipeline)
            try index.runs.put(run, of: id)
            try index.history.setCauses(of: run, of: id)
        }
        try rejected.dropOld(of: run.pipeline, at: run.ended)
    }

    /// The newest runs, newest first.
    package func runs(
        _ pipeline: String, limit: Int = CacheLimits.runsPerPipeline
    ) throws(CacheError) -> [RunRecord] {
        try context.withIndex { (index) throws(SQLiteError) in try index.runs.newest(max(0, limit), of: pipeline) }
    }

    /// A small value that is kept across restarts; nil if the pipeline has no value of this key.
    package func state(_ pipeline: String, key: String) throws(CacheError) -> [UInt8]? {
        try context.withIndex { (index) throws(SQLiteError) in try index.state.value(key, of: pipeline) }
    }

    /// The small values of this key, of all pipelines that have such a value.
    package func states(key: String) throws(CacheError) -> [String: [UInt8]] {
        try context.withIndex { (index) throws(SQLiteError) in try index.state.all(key) }
    }

    /// Sets a small value, or removes it with nil.
    ///
    /// - Parameter isDurable: whether it must survive a power cut; otherwise a power cut may undo the last seconds.
    /// - Throws: ``CacheError/stateLimit(key:)`` beyond the limits in ``CacheLimits``.
    package func setState(
        _ pipeline: String, key: String, to value: [UInt8]?, isDurable: Bool = false
    ) throws(CacheError) {
        try CacheName.check(pipeline)
        guard !key.isEmpty, key.utf8.count <= CacheLimits.stateKeyBytes,
            value?.count ?? 0 <= CacheLimits.stateValueBytes
        else { throw .stateLimit(key: key) }
        let isStored = try context.transaction(isDurable: isDurable) { (index) throws(SQLiteError) in
            try index.state.set(value, for: key, of: try index.pipelines.ensure(pipeline).id)
        }
        if !isStored { throw .stateLimit(key: key) }
    }

    // MARK: Parts

    /// The size of the values after which ``parts(_:of:)`` ends.
    package static let partsTogetherBytes = 1 << 20

    /// Parts of a pipeline's last snapshot, in the order of their names; nil if there is no part of this name. The answer
    /// has at least one part and ends after the part with which the values and items exceed ``partsTogetherBytes``.
    package func parts(_ names: [String], of pipeline: String) throws(CacheError) -> [StoredPart?] {
        try context.reading { (index) throws(SQLiteError) in
            var parts: [StoredPart?] = []
            var bytes = 0
            for name in names {
                let part = try index.parts.row(name, of: pipeline)
                parts.append(part)
                bytes += (part?.value.count ?? 0) + (part?.pages?.items.count ?? 0)
                if bytes > Self.partsTogetherBytes { break }
            }
            return parts
        }
    }

    /// A part of a pipeline's last snapshot; nil if there is no part of this name.
    package func part(_ name: String, of pipeline: String) throws(CacheError) -> StoredPart? {
        try parts([name], of: pipeline).first ?? nil
    }

    /// Stores new parts, and deletes all other parts for which `isKept` is false.
    package func keepParts(
        of pipeline: String, new: [String: StoredPart], and isKept: (_ name: String) -> Bool
    ) throws(CacheError) {
        try CacheName.check(pipeline)
        try context.transaction { (index) throws(SQLiteError) in
            let row = try index.pipelines.ensure(pipeline).id
            for name in try index.parts.names(of: row) where new[name] == nil && !isKept(name) {
                try index.parts.forget(name, of: row)
            }
            for (name, part) in new { try index.parts.put(part, as: name, of: row) }
        }
    }
}

/// The stored states of all pipelines, as the index has them.
struct IndexedMemories: Sendable {
    /// The states of pipelines whose published file need not be looked at.
    var states: [String: PersistentState] = [:]
    /// The rows of these pipelines.
    var compared: [Int64] = []
    var others: [IndexedPipelineState] = []
    var requests: [String: [RequestBurst]] = [:]
    var parameters: [String: [String: String]] = [:]
    var pages: [String: [StoredPagesState]] = [:]
    var rejected: [Int64: RejectedCandidate] = [:]
    /// See ``SQLiteDatabase/totalChanges``: with another number, the rows may be others.
    var changes: Int64 = 0
}
