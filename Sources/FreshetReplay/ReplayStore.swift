import FreshetModel
import FreshetPipelines
import FreshetSignals

/// The cache of a replay, in memory: for each pipeline the number of its generation, and which of the origin's versions
/// the generation has. No content is kept.
final class ReplayStore: SnapshotStore {
    struct Copy: Sendable {
        /// Nil: there is no copy.
        var generation: CurrentGeneration?
        /// The content of the copy, which is the name of a version (``ReplayOrigin``).
        var version = ""
        var remembered = PersistentState()
    }

    private let copies: Lock<[String: Copy]>
    private let clock: ReplayClock

    init(_ copies: [String: Copy], clock: ReplayClock) {
        self.copies = Lock(copies)
        self.clock = clock
    }

    func remembered(_ pipeline: String) async -> PersistentState {
        copies.withLock { copies in
            var state = copies[pipeline]?.remembered ?? PersistentState()
            state.generation = copies[pipeline]?.generation
            return state
        }
    }

    func validators(_ pipeline: String, binding: String) async -> Validators? {
        copies.withLock { copies in
            guard let copy = copies[pipeline], copy.generation != nil else { return nil }
            return Validators(entityTag: copy.version)
        }
    }

    func commit(_ snapshot: Snapshot, of definition: PipelineDefinition) async throws(RunFailure) -> CommitOutcome {
        let version = String(decoding: snapshot.body.bytes ?? [], as: UTF8.self)
        let now = clock.wallNow
        return copies.withLock { copies in
            var copy = copies[definition.name] ?? Copy()
            if let generation = copy.generation, copy.version == version { return .unchanged(generation) }
            let generation = CurrentGeneration(
                number: (copy.generation?.number ?? 0) + 1, size: UInt64(snapshot.body.size), digest: .zero,
                committedAt: now, path: definition.cache.file)
            copy.generation = generation
            copy.version = version
            copies[definition.name] = copy
            return .changed(generation)
        }
    }

    func recordUnchanged(
        _ pipeline: String, binding: String, asked: Validators, validators: Validators?, expires: WallTime?
    ) async -> Bool { true }

    /// Nil: the names of versions are short.
    func bodyStore(of definition: PipelineDefinition) -> (any BodyStoring)? { nil }
    func copy(of definition: PipelineDefinition) async throws(RunFailure) -> [UInt8]? { nil }
    func storeRejected(_ snapshot: Snapshot, of definition: PipelineDefinition, because reason: String) async
        -> RejectionOutcome?
    { nil }
    func keepsRejected(_ pipeline: String, _ digest: ContentDigest) async -> Bool { false }
    func rememberSigned(_ pipeline: String, _ signed: SignedComment) async {}
    func isCopy(_ pipeline: String, _ digest: ContentDigest) async -> Bool { false }
    func rememberRetryAfter(_ pipeline: String, until: WallTime?) async {}
    func rememberRequests(_ pipeline: String, _ requests: [RequestBurst]) async {}
    func rememberParameters(_ pipeline: String, _ settings: @escaping @Sendable () -> [String: String]) async {}
    func record(_ run: RunRecord) async {}
    func parts(_ pipeline: String, _ names: [String]) async -> [StoredPart?] { names.map { _ in nil } }
    func keepParts(
        _ pipeline: String, _ new: [String: StoredPart], and isKept: @escaping @Sendable (String) -> Bool
    ) async {}
}
