import FreshetModel
import FreshetSignals
import FreshetTestKit
import TestSupport
import Testing
import WorldTestSupport

@testable import FreshetPipelines

@Suite("Requests of an unconditional run", .hangLimit)
struct UnconditionalRunTests {
    @Test("for one answer it sends no validators, and the next run sends the new ones")
    func oneAnswer() throws {
        let stage = try Stage()
        stage.origin.answers(
            .content("data", tag: "\"1\""), .notModified, .content("hidden", tag: "\"1\""), .notModified)
        try stage.start()
        try stage.fire("start")
        for isUnconditional in [false, true, false] {
            try stage.advance(10)
            stage.runner.requestRefresh(force: false, unconditional: isUnconditional)
            try stage.executor.runUntilIdle()
        }
        #expect(stage.origin.asked.map(\.validators?.entityTag) == [nil, "\"1\"", nil, "\"1\""])
        #expect(stage.store.text == "hidden")
    }

    @Test("for a command, the index is not asked for validators before the command starts")
    func command() throws {
        var definition = Stage.definition(RefreshPolicy(freshFor: .zero))
        definition.source = .command(["/bin/date"])
        let stage = try Stage(definition)
        stage.origin.answers(.content("first"), .content("second"))
        try stage.start()
        for expected in ["first", "second"] {
            try stage.fire("start")
            #expect(stage.store.text == expected)
            try stage.advance(60)
        }
        #expect(stage.origin.asked.count == 2)
        #expect(stage.store.state.withLock { $0.validatorQuestions } == 0)
    }

    @Test("for rejected content it sends no validators")
    func rejected() throws {
        let stage = try Stage(RefreshPolicy(every: .seconds(3600), freshFor: .zero), check: CheckRules(minBytes: 4))
        stage.origin.answers(.content("whole"), .content("cut", tag: "\"1\""), .content("repaired", tag: "\"1\""))
        try stage.start()
        try stage.fire("start")
        try stage.advance(60)
        try stage.fire("reload")
        try stage.advance(60)
        stage.runner.requestRefresh(force: false, unconditional: true)
        try stage.executor.runUntilIdle()
        #expect(stage.origin.asked.last?.validators == nil)
        #expect(stage.store.text == "repaired")
    }

    /// An origin whose entity tags never change, and which may fail for one branch.
    private final class Web: Fetching {
        let asked = Lock<[String: [Bool]]>([:])
        let failing = Lock<String?>(nil)

        func fetch(_ request: FetchRequest) async throws(FetchError) -> FetchResult {
            guard case .http(let source) = request.source else { throw .failed(RunFailure(.local, "no URL")) }
            let name = String(source.url.split(separator: "/").last ?? "")
            let isConditional = request.validators?.isEmpty == false
            asked.withLock { $0[name, default: []].append(isConditional) }
            if failing.withLock({ $0 }) == name { throw .failed(RunFailure(.transient, "away")) }
            if isConditional { return .notModified(nil) }
            let body = name == "list" ? #"["a","b"]"# : "1"
            return .content(FetchedContent(bytes: Array(body.utf8), validators: Validators(entityTag: "\"v\"")))
        }

        func resolve(_ reference: String, against base: String) -> WebAddress? {
            ScriptedURLs.resolve(reference, against: base)
        }

        /// Whether the requests for the name were conditional, since the last call.
        func take(_ name: String) -> [Bool] { asked.withLock { $0.removeValue(forKey: name) ?? [] } }
    }

    @Test("for a list and its branches it sends no validators; a failed branch stays unconditional, and no other does")
    func branches() async throws {
        let clock = ScriptedClock(executor: SerialTestExecutor())
        let web = Web()
        let world = EngineDependencies(
            fetcher: web, transformer: Words(), store: MemoryStore(clock: clock), clock: clock,
            requestLimiter: RequestLimiter(RequestLimiter.Limits(total: 4, perOrigin: 4)))
        let branch = StageDefinition(.http(HTTPSource(url: "https://a.example/{item}", headers: [], host: "")))
        let stage = StageDefinition(
            .http(HTTPSource(url: "https://a.example/list", headers: [], host: "")),
            each: EachDefinition(as: "item", onError: .previous, branch))
        let definition = PipelineDefinition(name: "list", stage: stage, cache: CacheRules(file: "list"))
        func run(unconditional: Bool) async throws {
            let run = StageEvaluator(
                definition, world, ParameterValues(), epoch: 1, progress: RunProgress(), seed: 1,
                isUnconditional: unconditional)
            _ = try await run.value()
            await run.parts.keep()
        }
        try await run(unconditional: false)
        try await run(unconditional: false)
        for name in ["list", "a", "b"] { #expect(web.take(name) == [false, true], "\(name)") }
        web.failing.withLock { $0 = "b" }
        try await run(unconditional: true)
        for name in ["list", "a", "b"] { #expect(web.take(name) == [false], "\(name)") }
        web.failing.withLock { $0 = nil }
        try await run(unconditional: false)
        #expect(web.take("list") == [true] && web.take("a") == [true] && web.take("b") == [false])
    }
}
