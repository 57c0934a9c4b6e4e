import FreshetModel
internal import FreshetSignals

/// One run of a pipeline without an engine: it fetches, transforms and checks like any run, and returns the snapshot to
/// the caller instead of committing it.
///
/// It has no state of earlier runs: all requests are unconditional, and no branch shows an earlier value.
package struct DryRun: Sendable {
    /// The result of a run that would have committed.
    package struct Outcome: Sendable {
        package var snapshot: Snapshot
        /// The media type from the origin, or of a program's output; nil: not known.
        package var mediaType: String?
        /// The branches that failed while the run did not.
        package var failures: [BranchFailure]
        /// The number of requests.
        package var requests: Int
    }

    private let body: RunExecutor
    private let store: CapturingStore
    private let recorder: RecordingFetcher

    /// - Parameters:
    ///   - parameters: the values of the pipeline's parameters.
    ///   - helpers: the helpers of the checks.
    ///   - unpacker: nil: a pipeline that unpacks an answer fails.
    ///   - limits: the limits on concurrent requests.
    ///   - copy: the copy that would be replaced; nil: there is none.
    package init(
        _ definition: PipelineDefinition, with parameters: ParameterValues, fetcher: any Fetching,
        transformer: any Transforming, helpers: CheckHelpers = CheckHelpers(), unpacker: (any Unpacking)? = nil,
        clock: any EngineClock,
        limits: RequestLimiter.Limits, copy: [UInt8]? = nil
    ) {
        store = CapturingStore(copy: copy)
        recorder = RecordingFetcher(fetcher)
        let world = EngineDependencies(
            fetcher: recorder, transformer: transformer, store: store, clock: clock,
            requestLimiter: RequestLimiter(limits), helpers: helpers, unpacker: unpacker)
        body = RunExecutor(
            definition: definition, world: world.with(RunPermits(world.requestLimiter, for: 0)), parameters: parameters,
            epoch: 0, progress: RunProgress(), seed: .random(in: .min ... .max))
    }

    /// Runs until there is an outcome, at most for the pipeline's deadline.
    package func run() async throws(FetchError) -> Outcome {
        let deadline = body.definition.refresh.deadline
        let isLate = OneTimeEvent()
        let timer = body.world.clock.makeTimer { isLate.happen() }
        if deadline > .zero { timer.arm(at: body.world.clock.now + deadline) }
        defer { timer.disarm() }
        let failure: FetchError? = await interruptible(by: isLate, otherwise: .cancelled) { [body] in
            do throws(FetchError) {
                _ = try await body.run()
                return nil
            } catch {
                return error
            }
        }
        if failure == .cancelled, isLate.hasHappened, !Task.isCancelled {
            throw .failed(RunFailure(.deadline, "the run took longer than its deadline of \(deadline)"))
        }
        if let failure { throw failure }
        guard let snapshot = store.snapshot else { throw .cancelled }
        return Outcome(
            snapshot: snapshot, mediaType: mediaType, failures: body.progress.failures,
            requests: body.progress.requests)
    }

    private var mediaType: String? {
        let definition = body.definition
        let isAnswer =
            definition.stage.isSingle && definition.stage.pages == nil && definition.transform == nil
            && definition.template == nil && definition.cache.files.isEmpty
        // The media type of an archive says nothing about its members.
        if isAnswer { return definition.stage.unpack == nil ? recorder.mediaType : nil }
        return definition.cache.format == .text ? "text/plain" : "application/json"
    }
}

/// A store that captures one snapshot and has no other state.
private final class CapturingStore: SnapshotStore {
    private let captured = Lock<Snapshot?>(nil)
    /// The copy that the snapshot would replace.
    private let copy: [UInt8]?

    init(copy: [UInt8]?) { self.copy = copy }

    var snapshot: Snapshot? { captured.withLock { $0 } }

    func commit(_ snapshot: Snapshot, of definition: PipelineDefinition) async throws(RunFailure) -> CommitOutcome {
        captured.withLock { $0 = snapshot }
        return .changed(
            CurrentGeneration(
                number: 0, size: UInt64(snapshot.body.size), digest: .zero, committedAt: WallTime(seconds: 0),
                path: definition.cache.readerFile))
    }

    func storeRejected(_ snapshot: Snapshot, of definition: PipelineDefinition, because reason: String) async
        -> RejectionOutcome?
    { nil }
    /// Nil: the content is compared and shown, so it must be in memory.
    func bodyStore(of definition: PipelineDefinition) -> (any BodyStoring)? { nil }
    func remembered(_ pipeline: String) async -> PersistentState {
        var state = PersistentState()
        if let copy {
            state.generation = CurrentGeneration(
                number: 0, size: UInt64(copy.count), digest: .zero, committedAt: WallTime(seconds: 0), path: pipeline)
        }
        return state
    }
    func copy(of definition: PipelineDefinition) async throws(RunFailure) -> [UInt8]? { copy }
    func validators(_ pipeline: String, binding: String) async -> Validators? { nil }
    func keepsRejected(_ pipeline: String, _ digest: ContentDigest) async -> Bool { false }
    func rememberSigned(_ pipeline: String, _ signed: SignedComment) async {}
    func isCopy(_ pipeline: String, _ digest: ContentDigest) async -> Bool { false }
    func recordUnchanged(
        _ pipeline: String, binding: String, asked: Validators, validators: Validators?, expires: WallTime?
    ) async -> Bool { false }
    func rememberRetryAfter(_ pipeline: String, until: WallTime?) async {}
    func rememberRequests(_ pipeline: String, _ requests: [RequestBurst]) async {}
    func rememberParameters(_ pipeline: String, _ settings: @escaping @Sendable () -> [String: String]) async {}
    func record(_ run: RunRecord) async {}
    func parts(_ pipeline: String, _ names: [String]) async -> [StoredPart?] { names.map { _ in nil } }
    func keepParts(
        _ pipeline: String, _ new: [String: StoredPart], and isKept: @escaping @Sendable (String) -> Bool
    ) async {}
}

/// A fetcher that forwards requests and records the media type of the last answer.
private final class RecordingFetcher: Fetching {
    private let fetcher: any Fetching
    private let recorded = Lock<String?>(nil)

    init(_ fetcher: any Fetching) { self.fetcher = fetcher }

    var mediaType: String? { recorded.withLock { $0 } }

    func fetch(_ request: FetchRequest) async throws(FetchError) -> FetchResult {
        let result = try await fetcher.fetch(request)
        if case .content(let content) = result { recorded.withLock { $0 = content.mediaType } }
        return result
    }

    func resolve(_ reference: String, against base: String) -> WebAddress? {
        fetcher.resolve(reference, against: base)
    }
}
