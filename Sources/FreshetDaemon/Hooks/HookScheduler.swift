import FreshetCache
import FreshetControl
import FreshetEmitters
import FreshetEventLoop
import FreshetPipelines
import FreshetSignals
import FreshetSystemd
import Logging
import Synchronization

/// Runs the hooks that are owed: does what the machine says, and remembers what came of it.
///
/// Safe to call from any thread.
final class HookScheduler: Sendable {
    /// What it works with.
    struct World: Sendable {
        var store: CacheStore
        /// Says how contents differ, by the key of their items; nil: that cannot be said.
        var difference: @Sendable (_ old: [UInt8], _ new: [UInt8], _ key: String?) async -> ContentDifference?
        var programs: TrustedPrograms
        var units: UnitReloader
        var workers: WorkerPool
        var files: ProgramInputFiles
        var clock: any EngineClock
        var log: Logger
        var news: LogLimiter
        var redactor: Redactor
        var readers: ContentReaders
        /// Makes a child task of the daemon.
        var adopt: @Sendable (@escaping @Sendable () async -> Void) -> Void
        /// What is owed may have changed.
        var statusChanged: @Sendable () -> Void
    }

    private struct State {
        var machine: HookMachine
        /// Made with the first wait.
        var timer: (any EngineTimer)?
        /// Of hooks that fail, by their pipelines.
        var failures: [String: [String: RepeatedFailureLimiter]] = [:]
        var lastNumber: UInt64 = 0
        /// Where items of pipelines have their keys.
        var keys: [String: String] = [:]
    }

    private let world: World
    private let state: Mutex<State>
    private let settled = CurrentValue(true)

    init(_ world: World, seed: UInt64) {
        self.world = world
        state = Mutex(State(machine: HookMachine(seed: seed)))
    }

    // MARK: What is told

    /// A pipeline has the hooks of this definition from now on.
    ///
    /// - Parameters:
    ///   - memories: what is remembered of them.
    ///   - current: what readers see.
    func configure(
        _ definition: PipelineDefinition, _ memories: [String: StoredHookState], current: CurrentGeneration?
    ) {
        let hooks = definition.hooks.map {
            (definition: $0, memory: memories[$0.identity] ?? StoredHookState(told: current?.mark))
        }
        state.withLock { $0.keys[definition.name] = definition.cache.key }
        apply { $0.configure(definition.name, hooks, current: current, at: $1) }
    }

    func dismiss(_ pipeline: String) {
        apply { $0.dismiss(pipeline, at: $1) }
        state.withLock { state in
            state.failures[pipeline] = nil
            state.keys[pipeline] = nil
        }
    }

    /// Readers see another generation of a pipeline.
    func offer(_ pipeline: String, _ generation: CurrentGeneration, causes: String?) {
        apply { $0.offer(pipeline, generation, causes: causes, at: $1) }
    }

    // MARK: What is asked

    func debts(of pipeline: String) -> [HookMachine.PendingRun] { state.withLock { $0.machine.debts(of: pipeline) } }

    /// How many hooks have failed and are owed.
    var failing: Int { state.withLock { $0.machine.failing } }

    /// Returns when nothing runs, and nothing is to be run before a wait is over; or when the task is cancelled.
    func waitUntilSettled() async {
        for await isSettled in settled where isSettled { return }
    }

    // MARK: Inside

    private func apply(_ event: (inout HookMachine, ContinuousClock.Instant) -> [HookMachine.Action]) {
        let now = world.clock.now
        let orders = state.withLock { state in
            var orders: [HookMachine.Order] = []
            for action in event(&state.machine, now) {
                switch action {
                case .run(let order): orders.append(order)
                case .wake(let instant):
                    let timer = state.timer ?? world.clock.makeTimer { [weak self] in self?.timeHasCome() }
                    state.timer = timer
                    timer.arm(at: instant)
                }
            }
            // Inside, so that the newest is the last.
            if settled.value != state.machine.isSettled { settled.value = state.machine.isSettled }
            return orders
        }
        for order in orders { world.adopt { [self] in await run(order) } }
    }

    private func timeHasCome() {
        apply { $0.elapsed(at: $1) }
    }

    private func run(_ order: HookMachine.Order) async {
        let identity = order.hook.identity
        await world.store.remember(order.memory, of: identity, of: order.pipeline)
        let began = world.clock.now
        var memory = order.memory
        do throws(FetchError) {
            try await perform(order)
            memory = memory.succeeded()
        } catch {
            guard case .failed(let failure) = error else {
                return apply { $0.ended(order, .cancelled, at: $1) }
            }
            memory = memory.failed(world.redactor.text(failure.message), at: world.clock.wallNow)
        }
        await world.store.remember(memory, of: identity, of: order.pipeline)
        apply { $0.ended(order, .ended(memory), at: $1) }
        say(memory, of: order, took: world.clock.now - began)
        world.statusChanged()
    }

    private func perform(_ order: HookMachine.Order) async throws(FetchError) {
        if let unit = order.hook.unit { return try await world.units.reload(unit, within: order.hook.timeout) }
        let number = state.withLock { state in
            state.lastNumber += 1
            return state.lastNumber
        }
        let (world, hook) = (world, order.hook)
        let told = await world.store.find(order.told, of: order.pipeline)
        var change = HookChange(order, told: told, time: world.clock.wallNow)
        if change.causes == nil {
            // It was made before the daemon was started.
            change.causes = await world.store.find(order.generation.mark, of: order.pipeline)?.generation.causes
        }
        if let difference = await difference(order) { change.difference?.take(difference) }
        let content = Array(change.text.utf8)
        try await world.files.hand(content, number: number, on: world.workers) { (path) throws(FetchError) in
            try await world.programs.perform(
                hook.command, ["FRESHET_CHANGE": path, "FRESHET_PIPELINE": order.pipeline], timeout: hook.timeout
            ) { [self] saying in say(saying, of: order) }
        }
    }

    /// What became of the content since the hook was told of it last; nil: that cannot be said.
    private func difference(_ order: HookMachine.Order) async -> ContentDifference? {
        let (store, pipeline) = (world.store, order.pipeline)
        guard let told = order.told, told != order.generation.mark, !told.isWithdrawn,
            !order.generation.mark.isWithdrawn,
            let old = await store.content(told, of: pipeline, limit: ContentDifference.sizeLimit),
            let new = await store.content(order.generation.mark, of: pipeline, limit: ContentDifference.sizeLimit)
        else { return nil }
        return await world.difference(old, new, state.withLock { $0.keys[pipeline] })
    }

    // MARK: The journal

    private static func fields(_ order: HookMachine.Order) -> [JournalField: Logger.MetadataValue] {
        [
            .pipeline: .string(order.pipeline), .hook: .string(order.hook.text),
            .generation: .stringConvertible(order.generation.number),
        ]
    }

    private func say(_ saying: TrustedPrograms.OutputHandling, of order: HookMachine.Order) {
        // A hook may quote the content that it is told of.
        guard world.readers.isPublic(order.pipeline) else { return }
        switch saying {
        case .line(let line):
            world.news.say(.hookSaid, Self.fields(order).merging([.output: .string(line)]) { $1 })
        case .leftOut(let count):
            world.log.say(
                .hookSaid, text: "the hook says {count} lines more, which are left out",
                Self.fields(order).merging([.count: .stringConvertible(count)]) { $1 })
        }
    }

    private func say(_ memory: StoredHookState, of order: HookMachine.Order, took duration: Duration) {
        var fields = Self.fields(order)
        fields[.duration] = .string(duration.rounded)
        let identity = order.hook.identity
        guard memory.tried != nil else {
            state.withLock { $0.failures[order.pipeline]?[identity] = nil }
            if order.attempt > 1 { fields[.failures] = .stringConvertible(order.attempt - 1) }
            return world.news.say(.hookDone, fields)
        }
        let now = world.clock.now
        let (verdict, next) = state.withLock { state in
            let debt = state.machine.debts(of: order.pipeline).first { $0.hook.identity == identity }
            return (
                state.failures[order.pipeline, default: [:]][identity, default: RepeatedFailureLimiter()].failed(
                    at: now), debt
            )
        }
        let isPublic = world.readers.isPublic(order.pipeline) || order.hook.unit != nil
        fields[.error] = .string(isPublic ? memory.error ?? "" : WithheldContent.reason)
        fields[.failures] = .stringConvertible(memory.attempts)
        if let due = next?.next { fields[.next] = .string("in \((due - now).rounded)") }
        switch verdict {
        case .passOver: world.log.say(.hookFailed, level: .debug, fields)
        case .say(let passedOver):
            if passedOver > 0 { fields[.repeated] = .stringConvertible(passedOver) }
            world.news.say(.hookFailed, fields)
        }
    }
}

extension HookDefinition {
    /// What people are shown of it.
    var text: String { unit.map { "reload \($0)" } ?? Redaction.text(command.joined(separator: " ")) }
}
