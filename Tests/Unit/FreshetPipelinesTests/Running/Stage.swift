import FreshetModel
import FreshetSignals
import FreshetTestKit
import WorldTestSupport

@testable import FreshetPipelines

/// The reports of a runner.
final class EventLog: Sendable {
    private let reports = Lock<[PipelineReport]>([])
    func add(_ report: PipelineReport) { reports.withLock { $0.append(report) } }
    var all: [EngineEvent] { reports.withLock { $0.map(\.event) } }
    /// The generation that each run has committed, by number.
    var committed: [UInt64?] {
        reports.withLock { reports in
            reports.compactMap { if case .runEnded = $0.event { .some($0.committed?.number) } else { nil } }
        }
    }
}

/// One pipeline, or several, in a scripted world.
final class Stage {
    let executor = SerialTestExecutor()
    let clock: ScriptedClock
    let origin: ScriptedOrigin
    let store: MemoryStore
    let requestLimiter: RequestLimiter
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

    convenience init(
        _ policy: RefreshPolicy = RefreshPolicy(freshFor: .zero), transform: String? = nil,
        check: CheckRules = CheckRules(), reachable: Bool = true, requestLimiter: Int = 10,
        redact: @escaping @Sendable (String) -> String = { $0 }
    ) throws {
        try self.init(
            Self.definition(policy, transform: transform, check: check), reachable: reachable,
            requestLimiter: requestLimiter,
            redact: redact)
    }

    init(
        _ definition: PipelineDefinition, reachable: Bool = true, requestLimiter: Int = 10,
        memory: MemoryBudget? = nil, helpers: CheckHelpers = CheckHelpers(),
        unpacker: (any Unpacking)? = nil, redact: @escaping @Sendable (String) -> String = { $0 }
    ) throws {
        clock = ScriptedClock(executor: executor)
        origin = ScriptedOrigin(clock: clock)
        store = MemoryStore(clock: clock)
        self.requestLimiter = RequestLimiter(RequestLimiter.Limits(total: requestLimiter, perOrigin: requestLimiter))
        self.definition = definition
        var sources: [String: SignalSource] = [:]
        for name in ["start", "resume", "reload", "file"] {
            sources[name] = SignalSource(name, now: { [clock] in clock.now.continuous })
        }
        self.sources = sources
        signal = .merge(sources.values.map(\.signal))
        world = EngineDependencies(
            fetcher: origin, transformer: ScriptedTransformer(), store: store, clock: clock,
            requestLimiter: self.requestLimiter,
            memory: memory, helpers: helpers, unpacker: unpacker, redact: redact)
        let since = clock.now.advanced(by: .seconds(-1000))
        feed = NetworkFeed(NetworkState(reachable: reachable, epoch: 1, changedAt: since, path: "a"))
        (engine, runner) = try Self.pipeline(definition, signal, feed, world, told, executor)
    }

    private static func pipeline(
        _ definition: PipelineDefinition, _ signal: Signal, _ network: NetworkFeed, _ world: EngineDependencies,
        _ told: EventLog, _ executor: SerialTestExecutor
    ) throws -> (PipelineEngine, PipelineRunner) {
        let engine = PipelineEngine(world)
        let runner = try executor.run {
            await engine.add(definition, signal: signal, network: network, seed: 5) { told.add($0) }
        }
        return (engine, runner)
    }

    private let signal: Signal
    let world: EngineDependencies
    let feed: NetworkFeed
    private var networkFirings: UInt64 = 0

    /// Begins the service, as the daemon does.
    func start() throws {
        service = Task(executorPreference: executor) { [engine] in await engine.run() }
        try executor.runUntilIdle()
    }

    /// Another daemon on the same store.
    ///
    /// - Parameter other: the configuration since then.
    func restart(with other: PipelineDefinition? = nil) throws {
        service?.cancel()
        try executor.runUntilIdle()
        (engine, runner) = try Self.pipeline(other ?? definition, signal, feed, world, told, executor)
        try start()
    }

    /// From now on it receives only these signals.
    func subscribe(to names: String...) throws {
        engine.subscribe(runner, to: .merge(names.compactMap { sources[$0]?.signal }))
        try executor.runUntilIdle()
    }

    func advance(_ seconds: Double) throws {
        try clock.manual.advance(by: .milliseconds(Int64((seconds * 1000).rounded())), draining: executor)
    }

    func fire(_ name: String) throws {
        if name == "network" { publish { $0 } } else { sources[name]?.fire() }
        try executor.runUntilIdle()
    }

    func fireWithoutRunning(_ name: String) {
        sources[name]?.fire()
    }

    /// The network comes or goes; with its signal if it comes.
    func network(_ reachable: Bool, path: String = "a") throws {
        publish(fires: reachable) { [clock] before in
            NetworkState(
                reachable: reachable, epoch: before.epoch + (reachable ? 1 : 0), changedAt: clock.now, path: path)
        }
        try executor.runUntilIdle()
    }

    private func publish(fires: Bool = true, _ change: (NetworkState) -> NetworkState) {
        if fires { networkFirings += 1 }
        let occurrence = Occurrence(signal: "network", number: networkFirings, instant: clock.now.continuous)
        feed.publish(fires ? Cause(first: occurrence) : nil, change)
    }

    /// Requests a refresh; the task returns its answer.
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

    /// Sets parameters; nil is the default.
    ///
    /// - Returns: the names of the parameters with another value now.
    @discardableResult
    func set(_ values: KeyValuePairs<String, String?>, othersToDefault: Bool = false) throws -> [String] {
        let changes = values.map { ParameterChange($0.key, to: $0.value) }
        let changed = try executor.run { [runner] in
            do throws(ParameterErrors) {
                return Result<[String], ParameterErrors>.success(
                    try await runner.change(changes, othersToDefault: othersToDefault))
            } catch {
                return .failure(error)
            }
        }
        try executor.runUntilIdle()
        return try changed.get()
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
    /// The generation that each run has committed.
    var committed: [UInt64?] { told.committed }
    var causes: [String] {
        events.compactMap { if case .runStarted(let order) = $0 { order.causes.summary } else { nil } }
    }
    var status: PipelineStatus { runner.status }

    deinit {
        service?.cancel()
        // Ended explicitly, so that its tasks end with it: the executor does not own tasks that it has not run.
        _ = try? executor.runUntilIdle()
    }
}
