import FreshetModel
import FreshetSignals
import FreshetTestKit
import TestSupport
import Testing
import WorldTestSupport

@testable import FreshetPipelines

@Suite("Runs whose requests need permits", .hangLimit)
struct PlacedRunsTests {
    /// Lists and branches at several origins. A request takes a second.
    private final class Origins: Fetching {
        private struct State {
            var inProgress: [String: Int] = [:]
            var most: [String: Int] = [:]
            var hanging: Set<String> = []
            var asked: [String] = []
        }

        private let clock: ScriptedClock
        private let state = Lock(State())

        init(_ clock: ScriptedClock) { self.clock = clock }

        /// The most concurrent requests.
        var most: [String: Int] { state.withLock { $0.most } }
        var asked: [String] { state.withLock { $0.asked } }
        func hang(_ url: String) { _ = state.withLock { $0.hanging.insert(url) } }

        func fetch(_ request: FetchRequest) async throws(FetchError) -> FetchResult {
            guard case .http(let source) = request.source, let origin = request.source.origin?.description else {
                return .content(FetchedContent(bytes: Array(#"["a","b"]"#.utf8)))
            }
            request.asked()
            let hangs = state.withLock { state in
                state.asked.append(source.url)
                let count = state.inProgress[origin, default: 0] + 1
                state.inProgress[origin] = count
                state.most[origin] = max(count, state.most[origin] ?? 0)
                return state.hanging.contains(source.url)
            }
            defer { state.withLock { $0.inProgress[origin, default: 0] -= 1 } }
            do { try await clock.manual.sleep(for: .seconds(hangs ? 1_000_000 : 1)) } catch { throw .cancelled }
            let text = source.url.hasSuffix("list") ? #"["a","b","c"]"# : "\"\(source.url.suffix(1))\""
            return .content(FetchedContent(bytes: Array(text.utf8)))
        }

        func resolve(_ reference: String, against base: String) -> WebAddress? { nil }
    }

    private final class Answers: Sendable {
        private let answers = Lock<[String: RefreshAnswer]>([:])

        subscript(name: String) -> RefreshAnswer? {
            get { answers.withLock { $0[name] } }
            set { answers.withLock { $0[name] = newValue } }
        }
    }

    /// Several pipelines in one engine.
    private final class Fleet {
        let executor = SerialTestExecutor()
        let clock: ScriptedClock
        let origins: Origins
        let requestLimiter: RequestLimiter
        private let engine: PipelineEngine
        private var service: Task<Void, Never>?
        private var runners: [String: PipelineRunner] = [:]
        private let answers = Answers()

        init(_ limits: RequestLimiter.Limits) throws {
            clock = ScriptedClock(executor: executor)
            origins = Origins(clock)
            requestLimiter = RequestLimiter(limits)
            engine = PipelineEngine(
                EngineDependencies(
                    fetcher: origins, transformer: Words(), store: MemoryDisk(clock: clock), clock: clock,
                    requestLimiter: requestLimiter))
            service = Task(executorPreference: executor) { [engine] in await engine.run() }
            try executor.runUntilIdle()
        }

        deinit {
            service?.cancel()
            _ = try? executor.runUntilIdle()
        }

        /// Its list is at one origin, its branches at another.
        func add(_ name: String, list: String, branches: String, deadline: Duration = .zero) throws {
            let each = EachDefinition(
                as: "word", onError: .fail, StageDefinition(.http(Self.source("\(branches)/{word}"))))
            try add(
                name, StageDefinition(.http(Self.source("\(list)/list")), each: each),
                RefreshPolicy(freshFor: .zero, deadline: deadline))
        }

        func add(_ name: String, _ stage: StageDefinition, _ policy: RefreshPolicy) throws {
            let definition = PipelineDefinition(
                name: name, stage: stage, refresh: policy, cache: CacheRules(file: name))
            runners[name] = try executor.run { [engine, clock] in
                await engine.add(
                    definition, signal: SignalSource("file", now: { clock.now.continuous }).signal,
                    network: NetworkFeed(
                        NetworkState(
                            reachable: true, epoch: 1, changedAt: clock.now.advanced(by: .seconds(-1000)), path: "a")),
                    seed: 5
                ) { _ in }
            }
        }

        static func source(_ url: String) -> HTTPSource { HTTPSource(url: "https://\(url)", host: "example.com") }

        /// Requests a refresh; the task returns its answer.
        func refresh(_ name: String) throws {
            let runner = try #require(runners[name])
            _ = Task(executorPreference: executor) { [answers] in
                let answer = await runner.refresh(force: false)
                answers[name] = answer
            }
            try executor.runUntilIdle()
        }

        func advance(_ seconds: Int) throws {
            for _ in 0..<seconds { try clock.manual.advance(by: .seconds(1), draining: executor) }
        }

        func summary(_ name: String) -> RunSummary? {
            if case .ended(let summary)? = answers[name] { summary } else { nil }
        }

        func status(_ name: String) -> PipelineStatus? { runners[name]?.status }
    }

    @Test(
        "branches at each other's origin end with one permit each, and no origin gets two requests at the same time",
        arguments: [1, 2, 9])
    func crosswise(total: Int) throws {
        let fleet = try Fleet(RequestLimiter.Limits(total: total, perOrigin: 1))
        try fleet.add("one", list: "a.example", branches: "b.example")
        try fleet.add("two", list: "b.example", branches: "a.example")
        try fleet.add("same", list: "a.example", branches: "a.example")
        for name in ["one", "two", "same"] { try fleet.refresh(name) }
        try fleet.advance(20)
        for name in ["one", "two", "same"] { #expect(fleet.summary(name)?.outcome == .changed, "\(name)") }
        #expect(fleet.origins.most == ["https://a.example": 1, "https://b.example": 1])
        #expect(fleet.requestLimiter.counts == (0, 0))
    }

    @Test("each branch of a run is counted, and branches beyond the limit wait")
    func branches() throws {
        let fleet = try Fleet(RequestLimiter.Limits(total: 9, perOrigin: 2))
        try fleet.add("one", list: "a.example", branches: "a.example")
        try fleet.refresh("one")
        try fleet.advance(1)
        #expect(fleet.requestLimiter.counts == (2, 1))
        try fleet.advance(2)
        #expect(fleet.summary("one")?.outcome == .changed)
        #expect(fleet.origins.most == ["https://a.example": 2])
    }

    @Test("joined sources need a permit each, and local reads need none")
    func joined() throws {
        let fleet = try Fleet(RequestLimiter.Limits(total: 1, perOrigin: 1))
        let members = [
            JoinedSource("a", StageDefinition(.http(Fleet.source("a.example/x")))),
            JoinedSource("copy", StageDefinition(.copy(of: "list", file: "list"))),
            JoinedSource("b", StageDefinition(.http(Fleet.source("b.example/y")))),
        ]
        try fleet.add("joined", StageDefinition(.joined(members)), RefreshPolicy(freshFor: .zero))
        try fleet.refresh("joined")
        #expect(fleet.requestLimiter.counts == (1, 1))
        try fleet.advance(2)
        #expect(fleet.summary("joined")?.outcome == .changed)
        #expect(fleet.requestLimiter.counts == (0, 0))
    }

    @Test("the deadline is paused while all requests of a run wait for others, which its status shows")
    func deadline() throws {
        let fleet = try Fleet(RequestLimiter.Limits(total: 9, perOrigin: 1))
        try fleet.add("one", list: "a.example", branches: "b.example", deadline: .seconds(10))
        guard
            case .granted(let other) = fleet.requestLimiter.request(
                for: 99, at: HTTPOrigin(of: "https://b.example/"), {})
        else {
            Issue.record("no permit")
            return
        }
        try fleet.refresh("one")
        try fleet.advance(100)
        #expect(fleet.summary("one") == nil)
        let status = try #require(fleet.status("one"))
        #expect(status.waitsFor == Wait(.permit, detail: "1 request is in progress at https://b.example"))
        guard case .loading = status.activity else {
            Issue.record("\(status.activity)")
            return
        }
        fleet.requestLimiter.release(other)
        try fleet.executor.runUntilIdle()
        #expect(fleet.status("one")?.waitsFor == nil)
        try fleet.advance(3)
        #expect(fleet.summary("one")?.outcome == .changed)
    }

    @Test(
        "the deadline counts all time in which a request is in progress, and a hanging request releases its permit")
    func hanging() throws {
        let fleet = try Fleet(RequestLimiter.Limits(total: 9, perOrigin: 1))
        fleet.origins.hang("https://b.example/a")
        try fleet.add("one", list: "a.example", branches: "b.example", deadline: .seconds(10))
        try fleet.add("two", list: "b.example", branches: "a.example")
        try fleet.refresh("one")
        try fleet.advance(2)
        try fleet.refresh("two")
        #expect(
            fleet.status("two")?.waitsFor?.detail
                == "1 request is in progress at https://b.example, 1 other waits longer"
        )
        try fleet.advance(8)
        #expect(fleet.summary("one")?.failure?.kind == .deadline)
        try fleet.advance(5)
        #expect(fleet.summary("two")?.outcome == .changed)
    }
}
