package import FreshetModel
package import FreshetPipelines
package import FreshetSignals

/// A store in memory. It outlives runners, as the cache outlives the daemon.
package final class MemoryStore: SnapshotStore {
    /// How long rejected content is kept, in microseconds.
    package static let rejectedAge: Int64 = 7 * 86_400 * 1_000_000

    package struct State {
        package var remembered = PersistentState()
        package var bytes: [UInt8]?
        package var validators = Validators()
        package var binding: String?
        package var records: [RunRecord] = []
        /// Whether a record is taken without a wait, as by a store that writes later.
        package var takesRecordsNow = false
        /// How many records were written by a task.
        package var waitedRecords = 0
        /// How often validators were asked for.
        package var validatorQuestions = 0
        package var unchanged = 0
        package var failsCommits = false
        /// The copy disappears while the origin answers.
        package var isRemoved = false
        package var parts: [String: StoredPart] = [:]
        /// How often parts were asked for.
        package var partQuestions = 0
        /// Texts that the operator has accepted.
        package var accepted: Set<String> = []
        /// The last rejected content, and the number of rejections.
        package var rejected: RejectedCandidate?
        package var settingsAside = 0
        /// Called when rejected content was stored, before the run knows.
        package var whenRejected: (@Sendable (RejectedCandidate) -> Void)?
        /// Called when a generation was committed, before the run knows.
        package var whenCommitted: (@Sendable () async -> Void)?
        /// Bodies that were stored, in their order.
        package var bodies: [MemoryBody] = []
        /// Withdrawing and publishing again fail.
        package var isReadOnly = false
        /// A withdrawn copy turns out to be damaged, and is not kept.
        package var isDamaged = false
        /// The withdrawals and publications, in their order.
        package var withdrawals: [Withdrawal] = []
        /// How often it was asked whether readers find the copy.
        package var restorations = 0
    }

    package let state = Lock(State())
    private let clock: ScriptedClock
    var wallNow: WallTime { clock.wallNow }

    package init(clock: ScriptedClock) { self.clock = clock }

    package var bytes: [UInt8]? {
        get { state.withLock { $0.bytes } }
        set { state.withLock { $0.bytes = newValue } }
    }
    package var text: String? { state.withLock { $0.bytes }.map { String(decoding: $0, as: UTF8.self) } }
    package var records: [RunRecord] { state.withLock { $0.records } }
    package var rememberedNow: PersistentState { state.withLock { $0.remembered } }

    package func remembered(_ pipeline: String) async -> PersistentState { rememberedNow }

    package func validators(_ pipeline: String, binding: String) async -> Validators? {
        state.withLock { state in
            state.validatorQuestions += 1
            return state.binding == binding && !state.validators.isEmpty ? state.validators : nil
        }
    }

    package func bodyStore(of definition: PipelineDefinition) -> (any BodyStoring)? { self }

    package func copy(of definition: PipelineDefinition) async throws(RunFailure) -> [UInt8]? { bytes }

    /// The digest of rejected content is made from its text.
    package func storeRejected(_ snapshot: Snapshot, of definition: PipelineDefinition, because reason: String) async
        -> RejectionOutcome?
    {
        let bytes = snapshot.body.takeBytes()
        let text = String(decoding: bytes, as: UTF8.self)
        if state.withLock({ $0.accepted.contains(text) }),
            let result = try? await commit(
                Snapshot(.bytes(bytes), validators: snapshot.validators, binding: snapshot.binding), of: definition)
        {
            return .accepted(result)
        }
        if self.bytes == bytes { return .isCopy(ContentDigest(text: text)) }
        let rejected = RejectedCandidate(
            digest: ContentDigest(text: text), size: UInt64(bytes.count), rejectedAt: clock.wallNow,
            keptUntil: clock.wallNow + MemoryStore.rejectedAge, reason: reason)
        state.withLock { state in
            state.rejected = rejected
            state.settingsAside += 1
        }
        state.withLock { $0.whenRejected }?(rejected)
        return .kept(rejected)
    }

    package func keepsRejected(_ pipeline: String, _ digest: ContentDigest) async -> Bool {
        state.withLock { $0.rejected?.digest == digest }
    }

    package func isCopy(_ pipeline: String, _ digest: ContentDigest) async -> Bool {
        text.map(ContentDigest.init(text:)) == digest
    }

    package func rememberSigned(_ pipeline: String, _ signed: SignedComment) async {
        state.withLock { $0.remembered.signed = signed }
    }

    package func commit(_ snapshot: Snapshot, of definition: PipelineDefinition) async throws(RunFailure)
        -> CommitOutcome
    {
        let wallNow = clock.wallNow
        let bytes = snapshot.body.takeBytes()
        let result = state.withLock { state -> CommitOutcome? in
            if state.failsCommits { return nil }
            let old = state.bytes == bytes ? state.remembered.generation : nil
            var generation =
                old
                ?? CurrentGeneration(
                    number: (state.remembered.generation?.number ?? 0) + 1, size: UInt64(bytes.count),
                    digest: "", committedAt: wallNow, path: definition.cache.file)
            generation.contentExpires = snapshot.contentExpires
            generation.revision = state.remembered.generation?.revision ?? 0
            if generation.withdrawnSince != nil {
                generation.withdrawnSince = nil
                generation.writtenAt = wallNow
            }
            state.bytes = bytes
            state.validators = snapshot.validators
            state.binding = snapshot.binding
            state.remembered.binding = snapshot.binding
            state.remembered.generation = generation
            if snapshot.isCheck {
                state.remembered.lastCheck = wallNow
                state.remembered.expires = snapshot.expires
                // As in the index: a success clears `Retry-After`.
                state.remembered.retryAfter = nil
            }
            return old == nil ? .changed(generation) : .unchanged(generation)
        }
        guard let result else { throw RunFailure(.local, "the disk is full") }
        await state.withLock { $0.whenCommitted }?()
        return result
    }

    package func recordUnchanged(
        _ pipeline: String, binding: String, asked: Validators, validators: Validators?, expires: WallTime?
    ) async -> Bool {
        let wallNow = clock.wallNow
        return state.withLock { state in
            guard !state.isRemoved else { return false }
            state.unchanged += 1
            state.remembered.lastCheck = wallNow
            state.remembered.expires = expires
            state.remembered.retryAfter = nil
            return true
        }
    }

    package func rememberRetryAfter(_ pipeline: String, until: WallTime?) async {
        state.withLock { $0.remembered.retryAfter = until }
    }

    package func rememberRequests(_ pipeline: String, _ requests: [RequestBurst]) async {
        state.withLock { $0.remembered.requests = requests }
    }

    package func rememberParameters(
        _ pipeline: String, _ settings: @escaping @Sendable () -> [String: String]
    ) async {
        let settings = settings()
        state.withLock { $0.remembered.parameters = settings }
    }

    package func recordNow(_ run: RunRecord) -> Bool {
        state.withLock { state in
            guard state.takesRecordsNow else { return false }
            state.records.append(run)
            return true
        }
    }

    package func record(_ run: RunRecord) async {
        state.withLock { state in
            state.records.append(run)
            state.waitedRecords += 1
            state.remembered.lastRun = run.number
            state.remembered.lastRunRecord = run
        }
    }

    package func parts(_ pipeline: String, _ names: [String]) async -> [StoredPart?] {
        state.withLock { state in
            state.partQuestions += 1
            return names.map { state.parts[$0] }
        }
    }

    package func keepParts(
        _ pipeline: String, _ new: [String: StoredPart], and isKept: @escaping @Sendable (String) -> Bool
    ) async {
        state.withLock { state in
            state.parts = state.parts.filter { isKept($0.key) }.merging(new) { _, new in new }
            state.remembered.pages = state.parts.compactMap { name, part in
                part.pages.map { StoredPagesState(part: name, count: $0.count, hasMore: $0.next != nil) }
            }
        }
    }
}

extension MemoryStore: BodyStoring {
    package func begin(expecting size: UInt64?) async throws(RunFailure) -> any PendingBody {
        let body = MemoryBody()
        state.withLock { $0.bodies.append(body) }
        return body
    }
}

/// A stored body, which is kept in memory here.
package final class MemoryBody: PendingBody {
    /// Nil when the body has ended.
    private let pending = Lock<[UInt8]?>([])

    package var hasEnded: Bool { pending.withLock { $0 == nil } }

    package func append(_ bytes: [UInt8]) async throws(RunFailure) {
        pending.withLock { $0?.append(contentsOf: bytes) }
    }

    package func discard() async { _ = take() }

    package func digest() async throws(RunFailure) -> String { ScriptedVerifier.sum(of: pending.withLock { $0 ?? [] }) }

    package func reduce<Result: Sendable>(
        into initial: Result, _ next: @escaping @Sendable (inout Result, UnsafeRawBufferPointer) -> Void
    ) async throws(RunFailure) -> Result {
        var result = initial
        (pending.withLock { $0 } ?? []).withUnsafeBytes { next(&result, $0) }
        return result
    }

    package func isIntact() async throws(RunFailure) -> Bool { true }

    package var path: String? { nil }

    fileprivate func take() -> [UInt8] {
        pending.withLock { pending in
            defer { pending = nil }
            return pending ?? []
        }
    }
}

extension FetchedBody {
    /// The whole body; a stored body ends.
    fileprivate func takeBytes() -> [UInt8] {
        switch self {
        case .bytes(let bytes): bytes
        case .kept(let kept): (kept.pending as? MemoryBody)?.take() ?? []
        }
    }
}

/// A cache directory in memory: one store for each pipeline.
package final class MemoryDisk: SnapshotStore {
    private let stores = Lock<[String: MemoryStore]>([:])
    private let clock: ScriptedClock

    package init(clock: ScriptedClock) { self.clock = clock }

    /// The stored state of a pipeline.
    package subscript(pipeline: String) -> MemoryStore {
        stores.withLock { stores in
            if let store = stores[pipeline] { return store }
            let store = MemoryStore(clock: clock)
            stores[pipeline] = store
            return store
        }
    }

    /// All state is lost.
    package func format() {
        for store in stores.withLock({ Array($0.values) }) { store.state.withLock { $0 = MemoryStore.State() } }
    }

    /// From now on all commits succeed, or all fail.
    package func isFull(_ full: Bool) {
        for store in stores.withLock({ Array($0.values) }) { store.state.withLock { $0.failsCommits = full } }
    }

    package func parts(_ pipeline: String, _ names: [String]) async -> [StoredPart?] {
        await self[pipeline].parts(pipeline, names)
    }

    package func keepParts(
        _ pipeline: String, _ new: [String: StoredPart], and isKept: @escaping @Sendable (String) -> Bool
    ) async {
        await self[pipeline].keepParts(pipeline, new, and: isKept)
    }

    package func remembered(_ pipeline: String) async -> PersistentState {
        await self[pipeline].remembered(pipeline)
    }

    package func validators(_ pipeline: String, binding: String) async -> Validators? {
        await self[pipeline].validators(pipeline, binding: binding)
    }

    package func bodyStore(of definition: PipelineDefinition) -> (any BodyStoring)? {
        self[definition.name].bodyStore(of: definition)
    }

    package func copy(of definition: PipelineDefinition) async throws(RunFailure) -> [UInt8]? {
        try await self[definition.name].copy(of: definition)
    }

    package func storeRejected(_ snapshot: Snapshot, of definition: PipelineDefinition, because reason: String) async
        -> RejectionOutcome?
    {
        await self[definition.name].storeRejected(snapshot, of: definition, because: reason)
    }

    package func keepsRejected(_ pipeline: String, _ digest: ContentDigest) async -> Bool {
        await self[pipeline].keepsRejected(pipeline, digest)
    }

    package func isCopy(_ pipeline: String, _ digest: ContentDigest) async -> Bool {
        await self[pipeline].isCopy(pipeline, digest)
    }

    package func rememberSigned(_ pipeline: String, _ signed: SignedComment) async {
        await self[pipeline].rememberSigned(pipeline, signed)
    }

    package func commit(
        _ snapshot: Snapshot, of definition: PipelineDefinition
    ) async throws(RunFailure) -> CommitOutcome {
        try await self[definition.name].commit(snapshot, of: definition)
    }

    package func recordUnchanged(
        _ pipeline: String, binding: String, asked: Validators, validators: Validators?, expires: WallTime?
    ) async -> Bool {
        await self[pipeline].recordUnchanged(
            pipeline, binding: binding, asked: asked, validators: validators, expires: expires)
    }

    package func rememberRetryAfter(_ pipeline: String, until: WallTime?) async {
        await self[pipeline].rememberRetryAfter(pipeline, until: until)
    }

    package func rememberRequests(_ pipeline: String, _ requests: [RequestBurst]) async {
        await self[pipeline].rememberRequests(pipeline, requests)
    }

    package func rememberParameters(
        _ pipeline: String, _ settings: @escaping @Sendable () -> [String: String]
    ) async {
        await self[pipeline].rememberParameters(pipeline, settings)
    }

    package func record(_ run: RunRecord) async {
        await self[run.pipeline].record(run)
    }
}
