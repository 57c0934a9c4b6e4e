/// What a run does: ask the source, transform, check, commit.
struct RunBody: Sendable {
    let definition: PipelineDefinition
    let world: PipelineWorld
    /// The network epoch of the run.
    let epoch: UInt64
    /// For the waits within it.
    let jitter: Jitter
    /// Told of the bytes that were received so far.
    let progress: @Sendable (UInt64) -> Void
    /// Told of each request.
    let asked: @Sendable () -> Void
    /// Told of the pages that are loaded so far.
    let loaded: @Sendable (Int) -> Void

    /// A check that succeeded.
    struct Success: Hashable, Sendable {
        var changed: Bool
        /// What readers see now; nil: what they saw before.
        var generation: OfferedGeneration?
    }

    /// Runs until it has an outcome. A commit that has begun is not cancelled.
    func run() async throws(FetchError) -> Success {
        let store = world.store
        let binding = definition.validatorBinding
        if let pages = definition.pages, case .http(let source) = definition.source {
            return try await runPages(pages, of: source, binding: binding)
        }
        let validators = await store.validators(definition.name, binding: binding)
        var result = try await fetch(validators)
        if case .notModified(let newer) = result, validators != nil {
            if await store.recordUnchanged(definition.name, binding: binding, validators: newer) {
                return Success(changed: false)
            }
            // Somebody removed the copy while the origin confirmed it.
            result = try await fetch(nil)
        }
        switch result {
        case .notModified:
            throw .failed(
                RunFailure(.content, "the origin says that nothing changed (304), but was not asked whether"))
        case .content(let content):
            if let refusal = definition.check.refusal(ofType: content.mediaType) { throw .failed(refusal) }
            let bytes = try await checked(content.bytes)
            return try await commit(Snapshot(bytes: bytes, validators: content.validators, binding: binding))
        }
    }

    /// A set of pages has no validators as a whole: all of it is asked for, and compared when it is committed.
    private func runPages(
        _ pages: PagesDefinition, of source: HTTPSource, binding: String
    ) async throws(FetchError) -> Success {
        let set = try await PageLoader(
            pages: pages, source: source, world: world, check: definition.check, retry: definition.refresh.retry,
            jitter: jitter, epoch: epoch, progress: progress, asked: asked, loaded: loaded
        ).load()
        let bytes = try await checked(set.items)
        return try await commit(
            Snapshot(bytes: bytes, validators: Validators(), binding: binding, truncated: set.truncated))
    }

    private func commit(_ snapshot: Snapshot) async throws(FetchError) -> Success {
        if Task.isCancelled { throw .cancelled }
        do {
            switch try await world.store.commit(snapshot, of: definition) {
            case .changed(let generation): return Success(changed: true, generation: generation)
            case .unchanged(let generation): return Success(changed: false, generation: generation)
            }
        } catch {
            throw .failed(error)
        }
    }

    private func fetch(_ validators: Validators?) async throws(FetchError) -> FetchResult {
        if Task.isCancelled { throw .cancelled }
        return try await world.fetcher.fetch(
            FetchRequest(
                source: definition.source, validators: validators, maxBytes: definition.check.maxBytes, epoch: epoch,
                progress: progress, asked: asked))
    }

    /// The snapshot that the answer becomes, if it is acceptable.
    private func checked(_ answer: [UInt8]) async throws(FetchError) -> [UInt8] {
        let rules = definition.check
        if let refusal = rules.refusal(ofAnswer: answer.count) { throw .failed(refusal) }
        var bytes = answer
        if let program = definition.transform {
            bytes = try await world.transformer.transform(bytes, by: program)
        }
        if let refusal = rules.refusal(ofSnapshot: bytes.count) { throw .failed(refusal) }
        if let predicate = rules.jq, try await !world.transformer.holds(predicate, for: bytes) {
            throw .failed(RunFailure(.content, "the snapshot does not satisfy check.jq (\(predicate))"))
        }
        return bytes
    }
}
