import FreshetModel
import FreshetPipelines
import FreshetSignals
import WorldTestSupport

/// One life of the daemon, as its disk sees it. After a crash no further operation reaches the disk, even if it was in
/// progress.
final class Life: SnapshotStore {
    private struct State {
        var isOver = false
        var hasEnded = false
        /// How long the disk takes for an operation.
        var latency = Duration.zero
    }

    private let state = Lock(State())
    private let disk: MemoryDisk
    private let clock: ScriptedClock
    private let flaw: Flaw?

    init(_ disk: MemoryDisk, _ clock: ScriptedClock, latency: Duration, flaw: Flaw?) {
        self.disk = disk
        self.clock = clock
        self.flaw = flaw
        state.withLock { $0.latency = latency }
    }

    var isOver: Bool { state.withLock { $0.isOver } }

    /// The engine has ended.
    var hasEnded: Bool { state.withLock { $0.hasEnded } }

    func ended() { state.withLock { $0.hasEnded = true } }

    /// The daemon ends abruptly.
    func end() { state.withLock { $0.isOver = true } }

    /// Waits for the disk. Not cancellable, like a disk. Returns whether the daemon still lives.
    private func hasTurned() async -> Bool {
        let latency = state.withLock { $0.latency }
        if latency > .zero {
            let sleep = Task(executorPreference: clock.executor) { [clock] in
                try? await clock.manual.sleep(for: latency)
            }
            await sleep.value
        }
        return !isOver
    }

    func remembered(_ pipeline: String) async -> PersistentState { await disk.remembered(pipeline) }

    func parts(_ pipeline: String, _ names: [String]) async -> [StoredPart?] {
        guard await hasTurned() else { return names.map { _ in nil } }
        return await disk.parts(pipeline, names)
    }

    func keepParts(
        _ pipeline: String, _ new: [String: StoredPart], and isKept: @escaping @Sendable (String) -> Bool
    ) async {
        guard await hasTurned() else { return }
        await disk.keepParts(pipeline, new, and: isKept)
    }

    func validators(_ pipeline: String, binding: String) async -> Validators? {
        guard await hasTurned() else { return nil }
        return await disk.validators(pipeline, binding: binding)
    }

    func bodyStore(of definition: PipelineDefinition) -> (any BodyStoring)? { nil }

    func copy(of definition: PipelineDefinition) async throws(RunFailure) -> [UInt8]? {
        guard await hasTurned() else { return nil }
        return try await disk.copy(of: definition)
    }

    func commit(_ snapshot: Snapshot, of definition: PipelineDefinition) async throws(RunFailure) -> CommitOutcome {
        guard await hasTurned() else { throw RunFailure(.local, "the daemon is no more") }
        let before = disk[definition.name].bytes
        var snapshot = snapshot
        if flaw == .takesPagesForChecks { snapshot.isCheck = true }
        let result = try await disk.commit(snapshot, of: definition)
        if flaw == .keepsOldBytes, let before { disk[definition.name].bytes = before }
        return result
    }

    func storeRejected(_ snapshot: Snapshot, of definition: PipelineDefinition, because reason: String) async
        -> RejectionOutcome?
    { nil }

    func keepsRejected(_ pipeline: String, _ digest: ContentDigest) async -> Bool { false }
    func rememberSigned(_ pipeline: String, _ signed: SignedComment) async {}
    func isCopy(_ pipeline: String, _ digest: ContentDigest) async -> Bool { false }

    func recordUnchanged(
        _ pipeline: String, binding: String, asked: Validators, validators: Validators?, expires: WallTime?
    ) async -> Bool {
        guard await hasTurned() else { return false }
        return await disk.recordUnchanged(
            pipeline, binding: binding, asked: asked, validators: validators, expires: expires)
    }

    func rememberRetryAfter(_ pipeline: String, until: WallTime?) async {
        guard await hasTurned(), flaw != .forgetsRetryAfter else { return }
        await disk.rememberRetryAfter(pipeline, until: until)
    }

    func rememberRequests(_ pipeline: String, _ requests: [RequestBurst]) async {
        guard await hasTurned() else { return }
        await disk.rememberRequests(pipeline, requests)
    }

    func rememberParameters(_ pipeline: String, _ settings: @escaping @Sendable () -> [String: String]) async {
        guard await hasTurned() else { return }
        await disk.rememberParameters(pipeline, settings)
    }

    func record(_ run: RunRecord) async {
        guard await hasTurned() else { return }
        await disk.record(run)
        if flaw == .leavesTask {
            _ = Task(executorPreference: clock.executor) { [clock] in
                try? await clock.manual.sleep(for: .seconds(1_000_000))
            }
        }
    }
}
