extension LocalCache {
    /// The origin confirmed the content (a 304, or a command or file that had nothing new).
    ///
    /// - Parameters:
    ///   - asked: what the request was made conditional with. If that does not belong to what the copy is compared with any
    ///     more, since it was unpinned or rolled back meanwhile, the answer says nothing of it.
    ///   - validators: what came with the answer; they replace those of the same URLs.
    ///   - expires: when the content stops being fresh by its origin's word, instead of what was said before.
    /// - Returns: the generation that is offered, or withdrawn still (see ``putBack(_:)``), if it is what was confirmed, or was
    ///   to stay whatever is. Nil, and nothing is recorded, if it has gone meanwhile: the request is to be made again.
    package func recordUnchanged(
        _ pipeline: String, asked: Validators? = nil, validators: [Validators] = [], expires: WallTime? = nil,
        at now: WallTime
    ) throws(CacheError) -> Generation? {
        guard try keptOffer(of: pipeline) != nil else { return nil }
        return try transaction { (index) throws(SQLiteError) in
            // Read again: this is no turn of the pipeline's, and its copy may be another one by now.
            guard let offer = try index.offer(of: pipeline) else { return nil }
            let id = offer.pipeline.id
            if let asked, try index.validators(url: asked.url, for: offer.checkedDigest, of: id) != asked { return nil }
            try index.put(validators, for: offer.checkedDigest, of: id)
            try index.recordSuccess(of: id, offer.checkedDigest, at: now, expires: expires)
            return offer.generation(path: self.layout.reader(offer.file))
        }
    }

    /// An attempt that brought nothing.
    ///
    /// - Parameter retryAfter: until when the origin wants no further request; it outlasts a power cut. Nil leaves what an
    ///     earlier attempt recorded; a success clears it.
    package func recordFailure(
        _ pipeline: String, at now: WallTime, retryAfter: WallTime? = nil
    ) throws(CacheError) {
        try CacheName.check(pipeline)
        try transaction(isDurable: retryAfter != nil) { (index) throws(SQLiteError) in
            let id = try index.ensurePipeline(pipeline).id
            try index.recordFailure(of: id, at: now, retryAfter: retryAfter)
        }
    }

    /// The origin is another one, which has asked for nothing.
    package func forgetRetryAfter(_ pipeline: String) throws(CacheError) {
        try CacheName.check(pipeline)
        try transaction { (index) throws(SQLiteError) in
            try index.forgetRetryAfter(of: try index.ensurePipeline(pipeline).id)
        }
    }

    /// What was remembered of attempts. The last success counts only while its content is still there.
    package func refreshState(_ pipeline: String) throws(CacheError) -> RefreshState {
        var state = try withIndex { (index) throws(SQLiteError) in try index.refreshState(of: pipeline) }
        if state?.lastSuccess != nil, try keptOffer(of: pipeline) == nil { state?.forgetSuccess() }
        return state ?? RefreshState()
    }

    /// What is remembered of a pipeline, and the small value of this key; nil if the pipeline is not known.
    package func memory(_ pipeline: String, key: String) throws(CacheError) -> StoredPipelineState? {
        let found = try withIndex { (index) throws(SQLiteError) in try index.memory(of: pipeline, key: key) }
        guard let found else { return nil }
        var memory = try memory(found)
        memory.requests =
            try withIndex { (index) throws(SQLiteError) in try index.requests(of: pipeline) }[pipeline] ?? []
        memory.parameters =
            try withIndex { (index) throws(SQLiteError) in try index.parameters(of: pipeline) }[pipeline] ?? [:]
        memory.pages = try withIndex { (index) throws(SQLiteError) in try index.pages(of: pipeline) }[pipeline] ?? []
        memory.refused =
            try withIndex { (index) throws(SQLiteError) in try index.refused(of: found.pipeline.id) }?.candidate
        return memory
    }

    /// The same of all pipelines, with one look into the index. What of one cannot be had (its file's directory cannot
    /// be read) is not there.
    package func memories(key: String) throws(CacheError) -> [String: StoredPipelineState] {
        let (found, requests, parameters, pages, refused) = try withIndex { (index) throws(SQLiteError) in
            (
                try index.memories(key: key), try index.requests(), try index.parameters(), try index.pages(),
                Dictionary(try index.refused().map { ($0.pipeline, $0.refusal.candidate) }) { first, _ in first }
            )
        }
        var result: [String: StoredPipelineState] = [:]
        result.reserveCapacity(found.count)
        for indexed in found {
            result[indexed.pipeline.name] = try? memory(indexed)
            result[indexed.pipeline.name]?.refused = refused[indexed.pipeline.id]
        }
        for (name, requests) in requests { result[name]?.requests = requests }
        for (name, parameters) in parameters { result[name]?.parameters = parameters }
        for (name, pages) in pages { result[name]?.pages = pages }
        return result
    }

    private func memory(_ indexed: IndexedPipelineState) throws(CacheError) -> StoredPipelineState {
        let name = indexed.pipeline.name
        var attempts = indexed.attempts
        // Without content only a commit that failed half-way leaves something to look for.
        let offer =
            if let known = indexed.offer { try kept(known) } else if isSuspect(name) { try keptOffer(of: name) } else {
                IndexedPublication?.none
            }
        if offer == nil { attempts.forgetSuccess() }
        return StoredPipelineState(
            current: offer.map { $0.generation(path: layout.reader($0.file)) }, attempts: attempts,
            lastRun: indexed.lastRun, lastRunRecord: indexed.lastRunRecord, value: indexed.value)
    }

    /// Remembers what was spent of a pipeline's budget of requests, instead of what was remembered before. A power cut
    /// may take the last seconds of it.
    ///
    /// - Parameter requests: at most ``CacheLimits/spentPerPipeline``; older ones beyond that are left out.
    package func recordRequests(_ pipeline: String, _ requests: [RequestBurst]) throws(CacheError) {
        try CacheName.check(pipeline)
        try transaction { (index) throws(SQLiteError) in
            try index.setRequests(
                requests.suffix(CacheLimits.spentPerPipeline), of: try index.ensurePipeline(pipeline).id)
        }
    }

    /// Remembers what is set of a pipeline's parameters, instead of what was remembered before. A power cut may take the
    /// last seconds of it.
    ///
    /// - Parameter settings: names and values; asked when they are written down, with the index held, so that of calls at
    ///   the same time the newest stays.
    package func recordParameters(_ pipeline: String, _ settings: () -> [String: String]) throws(CacheError) {
        try CacheName.check(pipeline)
        try transaction { (index) throws(SQLiteError) in
            try index.setParameters(settings(), of: try index.ensurePipeline(pipeline).id)
        }
    }

    /// Remembers a run; the oldest beyond ``CacheLimits/runsPerPipeline`` is forgotten.
    package func record(_ run: RunRecord) throws(CacheError) {
        try CacheName.check(run.pipeline)
        try transaction { (index) throws(SQLiteError) in
            let id = try index.ensurePipeline(run.pipeline).id
            try index.put(run, of: id)
            try index.rememberCauses(of: run, of: id)
        }
        try dropOldRefusals(of: run.pipeline, at: run.finished)
    }

    /// The newest runs, newest first.
    package func runs(
        _ pipeline: String, limit: Int = CacheLimits.runsPerPipeline
    ) throws(CacheError) -> [RunRecord] {
        try withIndex { (index) throws(SQLiteError) in try index.runs(of: pipeline, limit: max(0, limit)) }
    }

    /// A small value that the pipeline keeps across restarts; nil if it has none of that name.
    package func state(_ pipeline: String, key: String) throws(CacheError) -> [UInt8]? {
        try withIndex { (index) throws(SQLiteError) in try index.state(key, of: pipeline) }
    }

    /// The small values of this key, of all pipelines that have one.
    package func states(key: String) throws(CacheError) -> [String: [UInt8]] {
        try withIndex { (index) throws(SQLiteError) in try index.states(key) }
    }

    /// Sets a small value, or removes it with nil.
    ///
    /// - Parameter isDurable: it survives a power cut; else one may take the last seconds.
    /// - Throws: ``CacheError/stateLimit(key:)`` beyond the limits in ``CacheLimits``.
    package func setState(
        _ pipeline: String, key: String, to value: [UInt8]?, isDurable: Bool = false
    ) throws(CacheError) {
        try CacheName.check(pipeline)
        guard !key.isEmpty, key.utf8.count <= CacheLimits.stateKeyBytes,
            value?.count ?? 0 <= CacheLimits.stateValueBytes
        else { throw .stateLimit(key: key) }
        let isStored = try transaction(isDurable: isDurable) { (index) throws(SQLiteError) in
            try index.setState(value, for: key, of: try index.ensurePipeline(pipeline).id)
        }
        if !isStored { throw .stateLimit(key: key) }
    }
}
