import FreshetSignals
import FreshetTestKit

@testable import FreshetPipelines

/// The engine's clock on a manual one: its timers are tasks of the test's executor.
final class ScriptedClock: EngineClock {
    let manual = ManualClock()
    let executor: SerialTestExecutor
    /// The wall clock at the manual clock's start.
    let wallStart: Int64

    init(executor: SerialTestExecutor, wallStart: Int64 = 1_700_000_000_000_000) {
        self.executor = executor
        self.wallStart = wallStart
    }

    var now: ContinuousClock.Instant { manual.now }
    var wallNow: Int64 {
        let (seconds, attoseconds) = manual.elapsed.components
        return wallStart + seconds * 1_000_000 + attoseconds / 1_000_000_000_000
    }

    func makeTimer(_ handler: @escaping @Sendable () -> Void) -> any EngineTimer {
        Timer(clock: self, handler: handler)
    }

    private final class Timer: EngineTimer {
        let clock: ScriptedClock
        let handler: @Sendable () -> Void
        let task = Lock<Task<Void, Never>?>(nil)

        init(clock: ScriptedClock, handler: @escaping @Sendable () -> Void) {
            self.clock = clock
            self.handler = handler
        }

        func arm(at instant: ContinuousClock.Instant) {
            let sleep = Task(executorPreference: clock.executor) { [manual = clock.manual, handler] in
                do {
                    try await manual.sleep(until: instant)
                    handler()
                } catch {
                    // Taken back.
                }
            }
            replace(sleep)
        }

        func disarm() { replace(nil) }

        private func replace(_ new: Task<Void, Never>?) {
            let old = task.withLock { task in
                defer { task = new }
                return task
            }
            old?.cancel()
        }

        deinit { task.withLock { $0 }?.cancel() }
    }
}

/// A source that answers as it was told to.
final class ScriptedOrigin: Fetching {
    enum Answer: Sendable {
        case content(String, type: String? = nil, tag: String? = nil)
        case notModified
        case fails(RunFailure)
        /// Until it is cancelled; then it takes so long to clean up.
        case hangs(cleanUp: Duration = .zero)
        indirect case after(Duration, Answer)
        /// After so long, cancelled or not.
        indirect case stubborn(Duration, Answer)
    }

    struct Asked: Sendable {
        var at: Double
        var validators: Validators?
        var epoch: UInt64
    }

    private struct State {
        var answers: [Answer] = []
        var last = Answer.content("data")
        var asked: [Asked] = []
        var open = 0
    }

    private let state = Lock(State())
    private let clock: ScriptedClock

    init(clock: ScriptedClock) { self.clock = clock }

    /// The answers to the next requests; the last one is given for ever.
    func answers(_ answers: Answer...) {
        state.withLock { state in
            state.answers = answers
            state.last = answers.last ?? state.last
        }
    }

    var asked: [Asked] { state.withLock { $0.asked } }
    /// When it was asked, in seconds since the beginning.
    var times: [Double] { asked.map(\.at) }
    /// How many requests have not returned yet.
    var open: Int { state.withLock { $0.open } }

    func fetch(_ request: FetchRequest) async throws(FetchError) -> FetchResult {
        let asked = Asked(
            at: seconds(clock.manual.elapsed), validators: request.validators, epoch: request.epoch)
        let answer = state.withLock { state in
            state.asked.append(asked)
            state.open += 1
            return state.answers.isEmpty ? state.last : state.answers.removeFirst()
        }
        defer { state.withLock { $0.open -= 1 } }
        return try await give(answer, request)
    }

    private func give(_ answer: Answer, _ request: FetchRequest) async throws(FetchError) -> FetchResult {
        switch answer {
        case .content(let text, let type, let tag):
            request.progress(UInt64(text.utf8.count))
            return .content(
                FetchedContent(bytes: Array(text.utf8), mediaType: type, validators: Validators(entityTag: tag)))
        case .notModified: return .notModified(nil)
        case .fails(let failure): throw .failed(failure)
        case .hangs(let cleanUp):
            request.progress(3)
            try? await clock.manual.sleep(for: .seconds(1_000_000))
            if cleanUp > .zero { await sleepOn(cleanUp) }
            throw .cancelled
        case .after(let wait, let answer):
            do { try await clock.manual.sleep(for: wait) } catch { throw .cancelled }
            return try await give(answer, request)
        case .stubborn(let wait, let answer):
            await sleepOn(wait)
            return try await give(answer, request)
        }
    }

    /// Not to be cancelled, for it is a task of its own.
    private func sleepOn(_ wait: Duration) async {
        let sleep = Task(executorPreference: clock.executor) { [clock] in
            try? await clock.manual.sleep(for: wait)
        }
        await sleep.value
    }
}

/// A store in memory. It outlives runners, as the cache outlives the daemon.
final class MemoryStore: SnapshotStore {
    struct State {
        var remembered = RememberedState()
        var bytes: [UInt8]?
        var validators = Validators()
        var binding: String?
        var records: [RunRecord] = []
        var unchanged = 0
        var refusesCommits = false
        /// The copy goes away while the origin is being asked.
        var isRemoved = false
    }

    let state = Lock(State())
    private let clock: ScriptedClock

    init(clock: ScriptedClock) { self.clock = clock }

    var text: String? { state.withLock { $0.bytes }.map { String(decoding: $0, as: UTF8.self) } }
    var records: [RunRecord] { state.withLock { $0.records } }
    var rememberedNow: RememberedState { state.withLock { $0.remembered } }

    func remembered(_ pipeline: String) async -> RememberedState { rememberedNow }

    func validators(_ pipeline: String, binding: String) async -> Validators? {
        state.withLock { $0.binding == binding && !$0.validators.isEmpty ? $0.validators : nil }
    }

    func commit(_ snapshot: Snapshot, of definition: PipelineDefinition) async throws(RunFailure) -> CommitResult {
        let wallNow = clock.wallNow
        let result = state.withLock { state -> CommitResult? in
            if state.refusesCommits { return nil }
            let old = state.bytes == snapshot.bytes ? state.remembered.generation : nil
            let generation =
                old
                ?? OfferedGeneration(
                    number: (state.remembered.generation?.number ?? 0) + 1, size: UInt64(snapshot.bytes.count),
                    digest: "", committedAt: wallNow, path: definition.cache.file)
            state.bytes = snapshot.bytes
            state.validators = snapshot.validators
            state.binding = snapshot.binding
            state.remembered.binding = snapshot.binding
            state.remembered.generation = generation
            state.remembered.lastCheck = wallNow
            return old == nil ? .changed(generation) : .unchanged(generation)
        }
        guard let result else { throw RunFailure(.local, "the disk is full") }
        return result
    }

    func recordUnchanged(_ pipeline: String, binding: String, validators: Validators?) async -> Bool {
        let wallNow = clock.wallNow
        return state.withLock { state in
            guard !state.isRemoved else { return false }
            state.unchanged += 1
            state.remembered.lastCheck = wallNow
            return true
        }
    }

    func rememberRetryAfter(_ pipeline: String, until: Int64?) async {
        state.withLock { $0.remembered.retryAfter = until }
    }

    func record(_ run: RunRecord) async {
        state.withLock { state in
            state.records.append(run)
            state.remembered.lastRun = run.run
        }
    }
}

/// Programs are known by name: `upper` makes upper case, `true` and `false` are predicates.
struct ScriptedTransformer: Transforming {
    func transform(_ input: [UInt8], by program: String) async throws(FetchError) -> [UInt8] {
        guard program == "upper" else { throw .failed(RunFailure(.content, "no such program")) }
        return Array(String(decoding: input, as: UTF8.self).uppercased().utf8)
    }

    func holds(_ predicate: String, for input: [UInt8]) async throws(FetchError) -> Bool { predicate == "true" }
}

func seconds(_ duration: Duration) -> Double {
    let (seconds, attoseconds) = duration.components
    return ((Double(seconds) + Double(attoseconds) / 1e18) * 1000).rounded() / 1000
}

/// What a runner told.
final class EventLog: Sendable {
    private let events = Lock<[EngineEvent]>([])
    func add(_ event: EngineEvent) { events.withLock { $0.append(event) } }
    var all: [EngineEvent] { events.withLock { $0 } }
}

/// One pipeline, or several, in a scripted world.
final class Stage {
    let executor = SerialTestExecutor()
    let clock: ScriptedClock
    let origin: ScriptedOrigin
    let store: MemoryStore
    let slots: RunSlots
    private let sources: [String: SignalSource]
    private let told = EventLog()
    private(set) var engine: PipelineEngine
    private(set) var runner: PipelineRunner
    private(set) var service: Task<Void, Never>?
    let definition: PipelineDefinition

    static func definition(
        _ policy: RefreshPolicy, transform: String? = nil, check: CheckRules = CheckRules()
    ) -> PipelineDefinition {
        PipelineDefinition(
            name: "test", source: .http(HTTPSource(url: "https://example.com/data", host: "example.com")),
            transform: transform, refresh: policy, check: check, cache: CacheRules(file: "data"))
    }

    init(
        _ policy: RefreshPolicy = RefreshPolicy(freshFor: .zero), transform: String? = nil,
        check: CheckRules = CheckRules(), reachable: Bool = true, slots: Int = 10
    ) throws {
        clock = ScriptedClock(executor: executor)
        origin = ScriptedOrigin(clock: clock)
        store = MemoryStore(clock: clock)
        self.slots = RunSlots(limit: slots)
        definition = Self.definition(policy, transform: transform, check: check)
        var sources: [String: SignalSource] = [:]
        for name in ["start", "network", "resume", "reload", "file"] {
            sources[name] = SignalSource(name, now: { [clock] in clock.now })
        }
        self.sources = sources
        signal = .merge(sources.values.map(\.signal))
        world = PipelineWorld(
            fetcher: origin, transformer: ScriptedTransformer(), store: store, clock: clock, slots: self.slots)
        let since = clock.now.advanced(by: .seconds(-1000))
        network = NetworkState(reachable: reachable, epoch: 1, changedAt: since, path: "a")
        (engine, runner) = try Self.pipeline(definition, signal, network, world, told, executor)
    }

    private static func pipeline(
        _ definition: PipelineDefinition, _ signal: Signal, _ network: NetworkState, _ world: PipelineWorld,
        _ told: EventLog, _ executor: SerialTestExecutor
    ) throws -> (PipelineEngine, PipelineRunner) {
        let engine = PipelineEngine(world)
        let runner = try executor.run {
            await engine.add(definition, signal: signal, network: network, share: 0, seed: 5) { told.add($0) }
        }
        return (engine, runner)
    }

    private let signal: Signal
    let world: PipelineWorld
    private(set) var network: NetworkState

    /// Begins the service, as the daemon does.
    func start() throws {
        service = Task(executorPreference: executor) { [engine] in await engine.run() }
        try executor.runUntilIdle()
    }

    /// Another daemon on the same store.
    func restart() throws {
        service?.cancel()
        try executor.runUntilIdle()
        (engine, runner) = try Self.pipeline(definition, signal, network, world, told, executor)
        try start()
    }

    func advance(_ seconds: Double) throws {
        try clock.manual.advance(by: .milliseconds(Int64((seconds * 1000).rounded())), draining: executor)
    }

    func fire(_ name: String) throws {
        sources[name]?.fire()
        try executor.runUntilIdle()
    }

    func fireWithoutRunning(_ name: String) {
        sources[name]?.fire()
    }

    /// The network comes or goes; with its signal if it comes.
    func network(_ reachable: Bool, path: String = "a", signalFirst: Bool = false) throws {
        network = NetworkState(
            reachable: reachable, epoch: network.epoch + (reachable ? 1 : 0), changedAt: clock.now, path: path)
        if reachable, signalFirst { try fire("network") }
        runner.networkChanged(network)
        try executor.runUntilIdle()
        if reachable, !signalFirst { try fire("network") }
    }

    /// Asks for a refresh; the answer is there when it is.
    func refresh(force: Bool = false) throws -> Pending {
        let pending = Pending()
        pending.task.withLock {
            $0 = Task(executorPreference: executor) { [runner] in
                let answer = await runner.refresh(force: force)
                pending.answer.withLock { $0 = answer }
            }
        }
        try executor.runUntilIdle()
        return pending
    }

    final class Pending: Sendable {
        let answer = Lock<RefreshAnswer?>(nil)
        let task = Lock<Task<Void, Never>?>(nil)
        var now: RefreshAnswer? { answer.withLock { $0 } }
        var outcome: RunOutcome? {
            if case .ended(let summary) = now { summary.outcome } else { nil }
        }
        func cancel() { task.withLock { $0 }?.cancel() }
    }

    var events: [EngineEvent] { told.all }
    var outcomes: [RunOutcome] {
        events.compactMap { if case .runEnded(let summary, _) = $0 { summary.outcome } else { nil } }
    }
    var causes: [String] {
        events.compactMap { if case .runStarted(let order) = $0 { order.causes.summary } else { nil } }
    }
    var status: PipelineStatus { runner.status }

    deinit { service?.cancel() }
}
