import FreshetCache
import FreshetEventLoop
import FreshetModel
import FreshetPipelines
import Synchronization

/// Connects the engine to the local cache. A worker thread executes every call, so that a slow disk delays no event.
///
/// If the index cannot be updated, the error is reported and the run does not fail, because the copy itself is intact.
struct CacheStore: SnapshotStore {
    let cache: LocalCache
    let workers: WorkerPool
    /// The stored states of all pipelines, for the first call of ``remembered()``; nil: it reads them.
    var early: EarlyStates?
    /// Called with each error of the index, to log it.
    let report: @Sendable (_ pipeline: String, _ error: CacheError) -> Void
    /// Called when the origin has new content that does not replace the copy, because the copy is pinned.
    var heldBack: @Sendable (_ pipeline: String, _ copy: CurrentGeneration) -> Void = { _, _ in }
    /// Called when the published file was missing or altered and has been restored from the kept content, to log it.
    var restored: @Sendable (_ pipeline: String, _ copy: CurrentGeneration) -> Void = { _, _ in }
    /// Called when the published file is missing and could not be restored, to log it.
    var notRestored: @Sendable (_ pipeline: String, _ error: CacheError) -> Void = { _, _ in }
    /// Called when the same generation is published again, from the kept content or by a commit.
    var republished: @Sendable (_ pipeline: String, _ copy: CurrentGeneration) -> Void = { _, _ in }
    /// Called when runs and checks wait to be stored in the index, with their number.
    var recordsWait: @Sendable (_ count: Int) -> Void = { _ in }
    /// Called before the machine sleeps.
    var goesToSleep: @Sendable () -> Void = {}
    /// Executes commits. A commit spends most of its time waiting for the disk, and a journalling file system writes
    /// the changes of all waiting commits together. So many concurrent commits cost hardly more than one.
    var committers = WorkerPool(threads: Self.commitsAtOnce)
    /// Reads generations for clients, one at a time. Clients have their own pool, so that they never delay commits.
    let readers = WorkerPool(threads: 1)

    /// The maximum number of concurrent commits. Threads start when they are needed, and end when they are idle.
    static let commitsAtOnce = 32

    /// The key of the value that identifies the request and the transform that made the copy.
    static let bindingKey = "binding"
    /// The key of the publisher's comment about the content.
    private static let signedKey = "signed"
    /// The key of the instant at which the operator held the pipeline: wall-clock microseconds since 1970.
    private static let heldKey = "held"
    /// The key of the numbers of the fleet's records.
    private static let fleetKey = "fleet"

    func remembered(_ pipeline: String) async -> PersistentState {
        await workers.run("index") { [self] in
            var state = attempt(pipeline, else: PersistentState()) { () throws(CacheError) in
                try cache.records.memory(pipeline, key: Self.bindingKey) ?? PersistentState()
            }
            // A copy that cannot be compared with the index does not release the pipeline.
            attempt(pipeline, else: ()) { () throws(CacheError) in
                state.signed = try cache.records.state(pipeline, key: Self.signedKey).flatMap {
                    SignedComment(stored: $0)
                }
                state.heldSince = try cache.records.state(pipeline, key: Self.heldKey).map(Self.instant)
            }
            return state
        }
    }

    /// The stored states of all pipelines, as far as one query returns them; ``remembered(_:)`` reads the others.
    func remembered() async -> StoredStates {
        if let early = early?.take() { return early }
        return await workers.run("index") { [cache] in Self.remembered(in: cache) }
    }

    /// Reads the stored states of all pipelines, as far as one query returns them. Blocks.
    static func remembered(in cache: LocalCache) -> StoredStates {
        // After the start this does the same as the method for later.
        guard let (known, unreadable) = try? cache.memoriesAtStart(key: bindingKey) else {
            return StoredStates(unreadable: nil)
        }
        var states = StoredStates(known, unreadable: unreadable)
        for (name, value) in (try? cache.records.states(key: signedKey)) ?? [:] {
            states.known[name]?.signed = SignedComment(stored: value)
        }
        for (name, value) in (try? cache.records.states(key: heldKey)) ?? [:] {
            states.known[name]?.heldSince = instant(value)
        }
        return states
    }

    /// The stored states that the start has read when it opened the cache. They are taken once: later, they are not the
    /// present ones.
    final class EarlyStates: Sendable {
        private let states: Mutex<StoredStates?>

        init(_ states: StoredStates) { self.states = Mutex(states) }

        fileprivate func take() -> StoredStates? {
            states.withLock { states in
                defer { states = nil }
                return states
            }
        }

        /// The states have changed, and are read again.
        func forget() { _ = take() }
    }

    /// The stored states of all pipelines.
    struct StoredStates {
        var known: [String: PersistentState]
        /// The names of the pipelines whose states could not be read; nil: none could be read.
        private let unreadable: Set<String>?

        init(_ known: [String: PersistentState] = [:], unreadable: Set<String>?) {
            self.known = known
            self.unreadable = unreadable
        }

        /// The state of a pipeline, empty if there is none; nil: it could not be read.
        subscript(name: String) -> PersistentState? {
            if let state = known[name] { return state }
            return isReadable(name) ? PersistentState() : nil
        }

        /// Whether the state of a pipeline was read, or there is none.
        func isReadable(_ name: String) -> Bool { unreadable?.contains(name) == false }
    }

    /// An unreadable value becomes 0, so that the pipeline stays held.
    private static func instant(_ value: [UInt8]) -> WallTime {
        WallTime(microseconds: Int64(String(decoding: value, as: UTF8.self)) ?? 0)
    }

    /// Stores since when the operator holds a pipeline; nil: the pipeline is not held. The value survives a power cut.
    func rememberHeld(_ pipeline: String, since: WallTime?) async throws(CacheError) {
        try await workers.run("index") { [cache] () throws(CacheError) in
            try cache.records.setState(
                pipeline, key: Self.heldKey, to: since.map { Array(String($0.microseconds).utf8) }, isDurable: true)
        }
    }

    /// The stored ``FleetNumbers`` of each shared pipeline.
    func fleetNumbers() async -> [String: String] {
        await workers.run("index") { [self] in
            ((try? cache.records.states(key: Self.fleetKey)) ?? [:]).mapValues { String(decoding: $0, as: UTF8.self) }
        }
    }

    /// Stores the ``FleetNumbers`` of a pipeline.
    func rememberFleet(_ pipeline: String, _ numbers: String) async {
        await workers.run("index") { [self] in
            attempt(pipeline, else: ()) { () throws(CacheError) in
                try cache.records.setState(pipeline, key: Self.fleetKey, to: Array(numbers.utf8))
            }
        }
    }

    func validators(_ pipeline: String, binding: String) async -> Validators? {
        if let known = cache.checks.validators(pipeline, boundTo: binding) { return known }
        return await workers.run("index") { [self] in
            attempt(pipeline, else: nil) { () throws(CacheError) in
                try cache.validators(pipeline, boundTo: binding)
            }
        }
    }

    func commit(
        _ snapshot: Snapshot, of definition: PipelineDefinition
    ) async throws(RunFailure) -> CommitOutcome {
        try await committers.run("commit") { [self] () throws(RunFailure) in
            let destination = try CacheDestination(definition)
            do throws(CacheError) {
                let pending = try pending(snapshot.body, for: destination)
                let outcome = try pending.commit(
                    validators: [BoundValidators(snapshot.validators, binding: snapshot.binding)].compactMap(\.self),
                    truncated: snapshot.truncated, isCheck: snapshot.isCheck, at: .now,
                    expires: snapshot.expires, contentExpires: snapshot.contentExpires,
                    values: [Self.bindingKey: Array(snapshot.binding.utf8)])
                return reported(outcome, of: definition.name)
            } catch {
                throw RunFailure(error)
            }
        }
    }

    func copy(of definition: PipelineDefinition) async throws(RunFailure) -> [UInt8]? {
        try await workers.run("copy") { [cache] () throws(RunFailure) in
            do throws(CacheError) {
                return try cache.content(of: definition.name, limit: Int64(clamping: definition.check.maxBytes))
            } catch {
                throw RunFailure(error)
            }
        }
    }

    func storeRejected(
        _ snapshot: Snapshot, of definition: PipelineDefinition, because reason: String
    ) async -> RejectionOutcome? {
        await workers.run("candidate") { [self] in
            guard let destination = try? CacheDestination(definition) else { return nil }
            return attempt(definition.name, else: nil) { () throws(CacheError) in
                let outcome = try pending(snapshot.body, for: destination).reject(
                    because: reason,
                    validators: [BoundValidators(snapshot.validators, binding: snapshot.binding)].compactMap(\.self),
                    truncated: snapshot.truncated, at: .now,
                    expires: snapshot.expires)
                if case .accepted(let outcome) = outcome { return .accepted(reported(outcome, of: definition.name)) }
                return outcome
            }
        }
    }

    func keepsRejected(_ pipeline: String, _ digest: ContentDigest) async -> Bool {
        await workers.run("index") { [self] in
            attempt(pipeline, else: false) { () throws(CacheError) in
                try cache.rejections.keeps(pipeline, digest, at: .now)
            }
        }
    }

    func rememberSigned(_ pipeline: String, _ signed: SignedComment) async {
        await workers.run("index") { [self] in
            attempt(pipeline, else: ()) { () throws(CacheError) in
                try cache.records.setState(pipeline, key: Self.signedKey, to: signed.stored)
            }
        }
    }

    func isCopy(_ pipeline: String, _ digest: ContentDigest) async -> Bool {
        await workers.run("index") { [self] in
            attempt(pipeline, else: false) { () throws(CacheError) in try cache.isCopy(pipeline, digest) }
        }
    }

    /// Reports new content of the origin that does not replace the copy, and a copy that is published again.
    private func reported(_ outcome: CommitOutcome, of pipeline: String) -> CommitOutcome {
        switch outcome {
        case .declined(let copy, isNew: true): heldBack(pipeline, copy)
        case .restored(let copy): republished(pipeline, copy)
        case .changed, .unchanged, .declined: break
        }
        return outcome
    }

    /// The candidate with a snapshot's body.
    private func pending(
        _ body: FetchedBody, for destination: CacheDestination
    ) throws(CacheError) -> PendingGeneration {
        switch body {
        case .bytes(let bytes):
            let pending = try cache.begin(destination, isWhole: true)
            try pending.write(bytes)
            return pending
        case .kept(let kept):
            // A body of another store does not belong to this cache.
            guard let own = kept.pending as? CacheBodyWriter else { throw .finished }
            return own.generation
        }
    }

    /// Applies the configured mode and group to the current copy.
    func setAccess(_ definition: PipelineDefinition) async {
        await workers.run { [self] in
            // The next run reports a group that does not exist.
            guard let destination = try? CacheDestination(definition) else { return }
            attempt(definition.name, else: ()) { () throws(CacheError) in try cache.setAccess(destination) }
        }
    }

    func recordUnchanged(
        _ pipeline: String, binding: String, asked: Validators,
        validators: Validators?, expires: WallTime?
    ) async -> Bool {
        if let waiting = cache.checks.recordUnchanged(
            pipeline, asked: BoundValidators(binding: binding, asked),
            validators: validators.flatMap { BoundValidators($0, binding: binding) }, expires: expires, at: .now)
        {
            recordsWait(waiting)
            return true
        }
        return await workers.run("index") { [self] in
            // If the index fails, the copy is assumed to be unchanged.
            attempt(pipeline, else: true) { () throws(CacheError) in
                try cache.records.recordUnchanged(
                    pipeline, asked: BoundValidators(asked, binding: binding),
                    validators: [validators.flatMap { BoundValidators($0, binding: binding) }].compactMap(\.self),
                    expires: expires, at: .now)
                    != nil
            }
        }
    }

    func rememberRetryAfter(_ pipeline: String, until: WallTime?) async {
        await workers.run("index") { [self] in
            attempt(pipeline, else: ()) { () throws(CacheError) in
                guard let until else { return try cache.records.forgetRetryAfter(pipeline) }
                try cache.records.recordFailure(
                    pipeline, at: .now, retryAfter: until)
            }
        }
    }

    func rememberRequests(_ pipeline: String, _ requests: [RequestBurst]) async {
        await workers.run("index") { [self] in
            attempt(pipeline, else: ()) { () throws(CacheError) in
                try cache.records.recordRequests(pipeline, requests)
            }
        }
    }

    func rememberParameters(_ pipeline: String, _ settings: @escaping @Sendable () -> [String: String]) async {
        await workers.run("index") { [self] in
            attempt(pipeline, else: ()) { () throws(CacheError) in
                try cache.records.recordParameters(pipeline, settings)
            }
        }
    }

    func recordNow(_ run: RunRecord) -> Bool {
        guard let waiting = cache.records.append(run) else { return false }
        recordsWait(waiting)
        return true
    }

    func record(_ run: RunRecord) async {
        if recordNow(run) { return }
        // The index does not keep pace, so the pipeline waits for the disk.
        await workers.run("index") { [self] in
            attempt(run.pipeline, else: ()) { () throws(CacheError) in try cache.records.record(run) }
        }
    }

    func willSleep() { goesToSleep() }

    func parts(_ pipeline: String, _ names: [String]) async -> [StoredPart?] {
        await workers.run("index") { [self] in
            attempt(pipeline, else: names.map { _ in nil }) { () throws(CacheError) in
                try cache.records.parts(names, of: pipeline)
            }
        }
    }

    func keepParts(
        _ pipeline: String, _ new: [String: StoredPart], and isKept: @escaping @Sendable (String) -> Bool
    ) async {
        await workers.run("index") { [self] in
            attempt(pipeline, else: ()) { () throws(CacheError) in
                try cache.records.keepParts(of: pipeline, new: new, and: isKept)
            }
        }
    }

    func attempt<Value>(
        _ pipeline: String, else fallback: Value, _ body: () throws(CacheError) -> Value
    ) -> Value {
        do throws(CacheError) {
            return try body()
        } catch {
            report(pipeline, error)
            return fallback
        }
    }
}

extension CacheDestination {
    /// Looks up the group with the name service, and may block.
    init(_ definition: PipelineDefinition) throws(RunFailure) {
        var group: UInt32?
        if let name = definition.cache.group {
            guard let found = SystemGroup(named: name) else {
                throw RunFailure(
                    .local, "there is no group '\(name)' (cache.group) on this machine; create it with groupadd")
            }
            group = found.identifier
        }
        self.init(
            pipeline: definition.name, file: definition.cache.readerFile, mode: definition.cacheMode, group: group,
            keep: definition.cache.keep, minimumBytes: Int64(clamping: definition.check.minBytes),
            maximumBytes: Int64(clamping: definition.check.maxBytes))
        isSet = !definition.cache.files.isEmpty
    }
}

extension BoundValidators {
    /// Nil if there are no validators.
    init?(_ validators: Validators, binding: String) {
        guard !validators.isEmpty else { return nil }
        self.init(binding: binding, validators)
    }
}

extension SignedComment {
    /// The text that the index stores: the digest, a space, and the comment.
    var stored: [UInt8] { Array("\(digest) \(comment)".utf8) }

    init?(stored: [UInt8]) {
        let parts = String(decoding: stored, as: UTF8.self).split(
            separator: " ", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2, let digest = ContentDigest(hexadecimal: parts[0]) else { return nil }
        self.init(digest: digest, comment: String(parts[1]))
    }
}
