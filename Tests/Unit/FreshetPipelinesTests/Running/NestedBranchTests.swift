import FreshetSignals
import FreshetTestKit
import TestSupport
import Testing
import WorldTestSupport

@testable import FreshetPipelines

@Suite("Nested branches: the targets of their URLs, and their fallbacks", .hangLimit)
struct NestedBranchTests {
    /// Origins that answer with texts, and record the requests.
    private final class Web: Fetching {
        struct State {
            var answers: [String: String]
            var asked: [HTTPSource] = []
        }
        let state: Lock<State>

        init(_ answers: [String: String]) { state = Lock(State(answers: answers)) }

        func fetch(_ request: FetchRequest) async throws(FetchError) -> FetchResult {
            guard case .http(let source) = request.source else { throw .failed(RunFailure(.local, "no URL")) }
            let answer = state.withLock { state in
                state.asked.append(source)
                return state.answers[source.url]
            }
            guard let answer else { throw .failed(RunFailure(.refused, "there is no \(source.url)")) }
            return .content(FetchedContent(bytes: Array(answer.utf8)))
        }

        func resolve(_ reference: String, against base: String) -> WebAddress? {
            ScriptedURLs.resolve(reference, against: base)
        }

        func requests(for url: String) -> [HTTPSource] { state.withLock { $0.asked }.filter { $0.url == url } }
    }

    private let store = MemoryStore(clock: ScriptedClock(executor: SerialTestExecutor()))

    private func run(_ stage: StageDefinition, _ web: Web) -> StageEvaluator {
        let clock = ScriptedClock(executor: SerialTestExecutor())
        let world = EngineDependencies(
            fetcher: web, transformer: Words(), store: store, clock: clock,
            requestLimiter: RequestLimiter(RequestLimiter.Limits(total: 4, perOrigin: 4)))
        let definition = PipelineDefinition(name: "nested", stage: stage, cache: CacheRules(file: "nested"))
        return StageEvaluator(definition, world, ParameterValues(), epoch: 1, progress: RunProgress(), seed: 1)
    }

    private func value(of stage: StageDefinition, _ web: Web) async throws -> String {
        let run = run(stage, web)
        let value = try await run.value()
        await run.parts.keep()
        return String(decoding: value, as: UTF8.self)
    }

    private func stage(_ url: String, _ headers: [HTTPHeader] = [], each: EachDefinition? = nil) -> StageDefinition {
        StageDefinition(.http(HTTPSource(url: url, headers: headers, host: "")), each: each)
    }

    // MARK: Whole URLs of outer items

    private static let chosen = "https://b.example/chosen"

    /// The outer list, from one origin, names a URL at the origin of the inner one, which needs a secret.
    private func secretive(outer: Bool, inner: Bool) -> StageDefinition {
        stage(
            "https://a.example/list",
            each: EachDefinition(
                as: "outer", onError: .fail, sameOrigin: outer,
                stage(
                    "https://b.example/list",
                    each: EachDefinition(
                        as: "inner", onError: .fail, sameOrigin: inner, stage("{outer}", [.bearer("secret")])))))
    }

    private func web() -> Web {
        Web([
            "https://a.example/list": "[\"\(Self.chosen)\"]", "https://b.example/list": #"["x"]"#, Self.chosen: "1",
        ])
    }

    @Test("a URL that an outer item names stays at the origin of the outer list", arguments: [true, false])
    func outerOrigin(inner: Bool) async throws {
        let web = web()
        await #expect {
            try await value(of: secretive(outer: true, inner: inner), web)
        } throws: { error in
            guard case .failed(let failure)? = error as? FetchError else { return false }
            return failure.message.contains("another origin than that of the list, https://a.example;")
        }
        #expect(web.requests(for: Self.chosen) == [])
    }

    @Test("an outer item that may lead anywhere gets nothing that is for the inner list's origin")
    func outerAnywhere() async throws {
        let web = web()
        #expect(try await value(of: secretive(outer: false, inner: true), web) == "[[1]]")
        #expect(web.requests(for: Self.chosen) == [HTTPSource(url: Self.chosen, host: "b.example")])
    }

    // MARK: Fallbacks

    @Test("a branch whose item has no value any more shows the items of its earlier list")
    func noValue() async throws {
        let stage = stage(
            "https://a.example/lists",
            each: EachDefinition(
                as: "list",
                self.stage(
                    "https://a.example/{list}",
                    each: EachDefinition(as: "leaf", self.stage("https://a.example/leaf/{leaf}")))))
        let web = Web([
            "https://a.example/lists": #"["k=one","m=two"]"#, "https://a.example/one": #"["x"]"#,
            "https://a.example/two": #"["y"]"#, "https://a.example/leaf/x": "1", "https://a.example/leaf/y": "2",
        ])
        #expect(try await value(of: stage, web) == "[[1],[2]]")
        web.state.withLock { state in
            state.answers["https://a.example/lists"] = #"["k=","m=two"]"#
            state.answers["https://a.example/leaf/x"] = "3"
        }
        #expect(try await value(of: stage, web) == "[[3],[2]]")
    }

    @Test("an earlier list has no origin if the request has another origin now")
    func otherOrigin() async throws {
        let stage = stage(
            "https://a.example/lists",
            each: EachDefinition(
                as: "list", sameOrigin: false,
                self.stage("{list}", each: EachDefinition(as: "leaf", self.stage("{leaf}", [.bearer("secret")])))))
        let web = Web([
            "https://a.example/lists": #"["k=https://a.example/list","m=https://a.example/good"]"#,
            "https://a.example/list": "[\"\(Self.chosen)\"]", Self.chosen: "1",
            "https://a.example/good": #"["https://a.example/leaf"]"#, "https://a.example/leaf": "2",
        ])
        #expect(try await value(of: stage, web) == "[null,[2]]")
        // The list is to come from this origin now, which has not sent one: the earlier list is from another origin.
        web.state.withLock { state in
            state.answers["https://a.example/lists"] = #"["k=https://b.example/list","m=https://a.example/good"]"#
        }
        #expect(try await value(of: stage, web) == "[null,[2]]")
        #expect(web.requests(for: "https://b.example/list").count == 1)
        #expect(web.requests(for: Self.chosen) == [])
    }
}
