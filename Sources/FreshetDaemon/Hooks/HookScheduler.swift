import FreshetCache
import FreshetControl
import FreshetEmitters
import FreshetEventLoop
import FreshetModel
import FreshetPipelines
import FreshetSignals
import FreshetSystemd
import Logging
import Synchronization

/// Runs pending hooks as the ``HookMachine`` decides, and stores the results.
///
/// Safe to call from any thread.
final class HookScheduler: Sendable {
    /// The objects that the scheduler uses.
    struct Dependencies: Sendable {
        var store: CacheStore
        /// Compares two contents, by the key of their items; nil: they cannot be compared.
        var difference: @Sendable (_ old: [UInt8], _ new: [UInt8], _ key: String?) async -> ContentDifference?
        var programs: TrustedPrograms
        var units: UnitReloader
        var workers: WorkerPool
        var files: ProgramInputFiles
        var clock: any EngineClock
        var log: Logger
        var limiter: LogLimiter
        var redactor: Redactor
        var readers: ContentReaders
        /// Starts a child task of the daemon.
        var adopt: @Sendable (@escaping @Sendable () async -> Void) -> Void
        /// Called after each run of a hook with the content that it was about, and its error; nil: it succeeded.
        var ended: @Sendable (_ pipeline: String, _ digest: ContentDigest, _ error: String?) -> Void
        /// Called when readers see another generation, also after a rollback or a withdrawal.
        var published: @Sendable (_ pipeline: String, _ generation: CurrentGeneration) -> Void
        /// Called when the set of pending hooks may have changed.
        var statusChanged: @Sendable () -> Void
    }

    struct State {
        var machine: HookMachine
        /// Made for the first wait.
        var timer: (any EngineTimer)?
        /// Limits the messages about failing hooks: by pipeline, then by hook. A hook of several pipelines is below its
        /// identity.
        var failures: [String: [String: RepeatedFailureLimiter]] = [:]
        var lastNumber: UInt64 = 0
        /// The key of list items (`cache.key`), by pipeline.
        var keys: [String: String] = [:]
    }

    let dependencies: Dependencies
    let state: Mutex<State>
    private let settled = CurrentValue(true)

    /// - Parameter share: the part of a splay that a pipeline's hooks wait on this host, from 0 to 1.
    init(
        _ dependencies: Dependencies, seed: UInt64, share: @escaping @Sendable (_ pipeline: String) -> Double
    ) {
        self.dependencies = dependencies
        state = Mutex(State(machine: HookMachine(seed: seed, share: share)))
    }

    // MARK: Events

    /// Sets the hooks of a pipeline.
    ///
    /// - Parameters:
    ///   - shared: the identities of the hooks of several pipelines that have this one.
    ///   - memories: the stored states of all these hooks, by their identities.
    ///   - current: the current generation.
    func configure(
        _ definition: PipelineDefinition, shared: [String], _ memories: [String: StoredHookState],
        current: CurrentGeneration?
    ) {
        let unknown = StoredHookState(notified: current?.identity)
        let hooks = definition.hooks.map { (definition: $0, memory: memories[$0.identity] ?? unknown) }
        state.withLock { $0.keys[definition.name] = definition.cache.key }
        apply { $0.configure(definition.name, hooks, current: current, at: $1) }
        guard !shared.isEmpty else { return }
        let states = Dictionary(shared.map { ($0, memories[$0] ?? unknown) }) { first, _ in first }
        apply { $0.join(definition.name, states, current: current, at: $1) }
    }

    /// Sets the hooks of several pipelines; their pipelines join them when they are configured.
    func useShared(_ hooks: [SharedHookDefinition]) {
        let identities = Set(hooks.map(\.identity))
        apply { $0.useShared(hooks, at: $1) }
        state.withLock { state in
            state.failures = state.failures.filter {
                !SharedHookDefinition.isIdentity($0.key) || identities.contains($0.key)
            }
        }
    }

    /// From now on, hooks of several pipelines wait for ``endBursts()``.
    func holdBursts() { state.withLock { $0.machine.holdBursts() } }

    /// No more changes are expected: hooks of several pipelines run now.
    func endBursts() { apply { $0.endBursts(at: $1) } }

    func dismiss(_ pipeline: String) {
        apply { $0.dismiss(pipeline, at: $1) }
        state.withLock { state in
            state.failures[pipeline] = nil
            state.keys[pipeline] = nil
        }
    }

    /// Called when readers see another generation of a pipeline.
    func generationChanged(_ pipeline: String, _ generation: CurrentGeneration, causes: String?) {
        apply { $0.generationChanged(pipeline, generation, causes: causes, at: $1) }
        dependencies.published(pipeline, generation)
    }

    // MARK: Status

    func pendingHooks(of pipeline: String) -> [HookMachine.PendingRun] {
        state.withLock { $0.machine.pendingHooks(of: pipeline) }
    }

    /// The number of hooks that have failed and are pending.
    var failing: Int { state.withLock { $0.machine.failing } }

    /// Returns when no hook runs and every pending hook waits for its next attempt, or when the task is cancelled.
    func waitUntilSettled() async {
        for await isSettled in settled where isSettled { return }
    }

    // MARK: Execution

    func apply(_ event: (inout HookMachine, BootInstant) -> [HookMachine.Action]) {
        let now = dependencies.clock.now
        let (orders, shared) = state.withLock { state in
            var orders: [HookMachine.Order] = []
            var shared: [SharedHookMachine.Order] = []
            for action in event(&state.machine, now) {
                switch action {
                case .run(let order): orders.append(order)
                case .runShared(let order): shared.append(order)
                case .wake(let instant):
                    let timer = state.timer ?? dependencies.clock.makeTimer { [weak self] in self?.timerExpired() }
                    state.timer = timer
                    timer.arm(at: instant)
                }
            }
            // Set while the lock is held, so that the last value is the newest.
            if settled.value != state.machine.isSettled { settled.value = state.machine.isSettled }
            return (orders, shared)
        }
        for order in orders { dependencies.adopt { [self] in await run(order) } }
        for order in shared { dependencies.adopt { [self] in await run(order) } }
    }

    private func timerExpired() {
        apply { $0.elapsed(at: $1) }
    }

    private func run(_ order: HookMachine.Order) async {
        let identity = order.hook.identity
        await dependencies.store.remember(order.memory, of: identity, of: order.pipeline)
        let began = dependencies.clock.now
        var memory = order.memory
        do throws(FetchError) {
            try await perform(order)
            memory = memory.succeeded()
        } catch {
            guard case .failed(let failure) = error else {
                return apply { $0.ended(order, .cancelled, at: $1) }
            }
            memory = memory.failed(dependencies.redactor.text(failure.message), at: dependencies.clock.wallNow)
        }
        await dependencies.store.remember(memory, of: identity, of: order.pipeline)
        apply { $0.ended(order, .ended(memory), at: $1) }
        log(memory, of: order, took: dependencies.clock.now - began)
        dependencies.ended(
            order.pipeline, order.generation.digest, memory.tried == nil ? nil : publicError(of: memory, order))
        dependencies.statusChanged()
    }

    private func perform(_ order: HookMachine.Order) async throws(FetchError) {
        if let unit = order.hook.unit { return try await dependencies.units.reload(unit, within: order.hook.timeout) }
        let (dependencies, hook, number) = (dependencies, order.hook, nextNumber())
        let content = Array(await change(order, comparesContent: true).text.utf8)
        try await dependencies.files.withFile(content, number: number, on: dependencies.workers) {
            (path) throws(FetchError) in
            try await dependencies.programs.perform(
                hook.command, ["FRESHET_CHANGE": path, "FRESHET_PIPELINE": order.pipeline], timeout: hook.timeout
            ) { [self] logging in log(logging, of: order) }
        }
    }

    /// The number of the next input file.
    func nextNumber() -> UInt64 {
        state.withLock { state in
            state.lastNumber += 1
            return state.lastNumber
        }
    }

    /// The description of the change.
    ///
    /// - Parameter comparesContent: whether the contents are read to find the difference.
    func change(_ order: HookMachine.Order, comparesContent: Bool) async -> HookChange {
        let notified = await dependencies.store.find(order.notified, of: order.pipeline)
        var change = HookChange(order, notified: notified, time: dependencies.clock.wallNow.microseconds)
        if change.causes == nil {
            // The generation was made before the daemon started.
            let current = await dependencies.store.find(order.generation.identity, of: order.pipeline)
            change.causes = current?.generation.causes
        }
        if comparesContent, let difference = await difference(order) { change.difference?.take(difference) }
        return change
    }

    /// The difference to the content of the hook's last successful run; nil: the contents cannot be compared.
    private func difference(_ order: HookMachine.Order) async -> ContentDifference? {
        let (store, pipeline) = (dependencies.store, order.pipeline)
        guard let notified = order.notified, notified != order.generation.identity, !notified.isWithdrawn,
            !order.generation.identity.isWithdrawn,
            let old = await store.content(notified, of: pipeline, limit: ContentDifference.sizeLimit),
            let new = await store.content(order.generation.identity, of: pipeline, limit: ContentDifference.sizeLimit)
        else { return nil }
        return await dependencies.difference(old, new, state.withLock { $0.keys[pipeline] })
    }

    // MARK: The journal

    private static func fields(_ order: HookMachine.Order) -> [JournalField: Logger.MetadataValue] {
        [
            .pipeline: .string(order.pipeline), .hook: .string(order.hook.text),
            .generation: .stringConvertible(order.generation.number),
        ]
    }

    private func log(_ logging: TrustedPrograms.OutputHandling, of order: HookMachine.Order) {
        // The output of a hook may quote the content.
        guard dependencies.readers.isPublic(order.pipeline) else { return }
        switch logging {
        case .line(let line):
            dependencies.limiter.log(.hookOutput, Self.fields(order).merging([.output: .string(line)]) { $1 })
        case .leftOut(let count):
            let logs = dependencies.limiter.logs(.hookOutput, .linesLeftOut)
            dependencies.log.log(
                .hookOutput, text: "the hook wrote {count} more lines, which are not logged",
                level: logs ? nil : .debug,
                Self.fields(order).merging([.count: .stringConvertible(count)]) { $1 })
        }
    }

    /// An error may quote the output of the hook, which may quote the content.
    private func publicError(of memory: StoredHookState, _ order: HookMachine.Order) -> String {
        let isPublic = dependencies.readers.isPublic(order.pipeline) || order.hook.unit != nil
        return isPublic ? memory.error ?? "" : WithheldContent.reason
    }

    private func log(_ memory: StoredHookState, of order: HookMachine.Order, took duration: Duration) {
        var fields = Self.fields(order)
        fields[.duration] = .string(duration.rounded)
        let identity = order.hook.identity
        guard memory.tried != nil else {
            state.withLock { $0.failures[order.pipeline]?[identity] = nil }
            if order.attempt > 1 { fields[.failures] = .stringConvertible(order.attempt - 1) }
            return dependencies.limiter.log(.hookDone, fields)
        }
        let now = dependencies.clock.now
        let (decision, next) = state.withLock { state in
            let pending = state.machine.pendingHooks(of: order.pipeline).first { $0.hook.identity == identity }
            return (
                state.failures[order.pipeline, default: [:]][identity, default: RepeatedFailureLimiter()].failed(
                    at: now), pending
            )
        }
        fields[.error] = .string(publicError(of: memory, order))
        fields[.failures] = .stringConvertible(memory.attempts)
        if let due = next?.next { fields[.next] = .string("in \((due - now).rounded)") }
        switch decision {
        case .suppress: dependencies.log.log(.hookFailed, level: .debug, fields)
        case .log(let suppressed):
            if suppressed > 0 { fields[.repeated] = .stringConvertible(suppressed) }
            dependencies.limiter.log(.hookFailed, fields)
        }
    }
}

extension HookDefinition {
    /// The hook as people see it, with secrets redacted.
    var text: String { unit.map { "reload \($0)" } ?? Redaction.text(command.joined(separator: " ")) }
}
