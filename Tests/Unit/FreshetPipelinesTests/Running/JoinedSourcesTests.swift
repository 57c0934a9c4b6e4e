import FreshetModel
import FreshetSignals
import FreshetTestKit
import Testing
import WorldTestSupport

@testable import FreshetPipelines

@Suite("Joined sources: copies that are replaced while they are read")
struct JoinedSourcesTests {
    /// Copies of other pipelines, and an origin; a request for a URL may replace a copy.
    private final class Shelf: Fetching {
        struct State {
            var copies: [String: (text: String, version: Int)]
            /// The copies that are replaced at the next request for a URL.
            var replacements: [String: [(copy: String, text: String)]] = [:]
            var refused: Set<String> = []
            var asked: [String] = []
        }

        let state: Lock<State>

        init(_ copies: [String: String]) {
            state = Lock(State(copies: copies.mapValues { ($0, 1) }))
        }

        func fetch(_ request: FetchRequest) async throws(FetchError) -> FetchResult {
            let name =
                switch request.source {
                case .copy(let name, _): name
                case .http(let source): source.url
                default: "?"
                }
            let (content, isRefused) = state.withLock { state -> (FetchedContent, Bool) in
                state.asked.append(name)
                if let replacements = state.replacements[name], let next = replacements.first {
                    state.copies[next.copy] = (next.text, (state.copies[next.copy]?.version ?? 0) + 1)
                    state.replacements[name] = Array(replacements.dropFirst())
                }
                let copy = state.copies[name] ?? ("\"\(name.suffix(1))\"", 1)
                return (
                    FetchedContent(bytes: Array(copy.text.utf8), validators: Validators(entityTag: "\(copy.version)")),
                    state.refused.contains(name)
                )
            }
            if isRefused { throw .failed(RunFailure(.refused, "it is refused")) }
            return request.validators == content.validators ? .notModified(nil) : .content(content)
        }

        func resolve(_ reference: String, against base: String) -> WebAddress? { nil }

        var asked: [String] { state.withLock { $0.asked } }
    }

    private let shelf = Shelf(["list": #"["a","z"]"#, "other": "1"])
    private let progress = RunProgress()
    private let clock = ScriptedClock(executor: SerialTestExecutor())
    private let store: MemoryStore

    init() { store = MemoryStore(clock: clock) }

    private func run(_ members: [JoinedSource]) -> StageEvaluator {
        let world = EngineDependencies(
            fetcher: shelf, transformer: Words(), store: store, clock: clock,
            requestLimiter: RequestLimiter(RequestLimiter.Limits(total: 4, perOrigin: 4)))
        let definition = PipelineDefinition(
            name: "joined", stage: StageDefinition(.joined(members)), cache: CacheRules(file: "joined"))
        return StageEvaluator(definition, world, ParameterValues(), epoch: 1, progress: progress, seed: 1)
    }

    private func value(of members: [JoinedSource]) async throws -> String {
        String(decoding: try await run(members).value(), as: UTF8.self)
    }

    /// A branch for each word of the list, one after the other, and another copy.
    private var members: [JoinedSource] {
        let branch = StageDefinition(.http(HTTPSource(url: "https://example.com/{word}", host: "example.com")))
        let each = EachDefinition(as: "word", concurrency: 1, onError: .null, branch)
        return [
            JoinedSource("words", StageDefinition(.copy(of: "list", file: "list"), each: each)),
            JoinedSource("other", StageDefinition(.copy(of: "other", file: "other"))),
        ]
    }

    private func url(_ word: String) -> String { "https://example.com/\(word)" }
    private func times(_ name: String) -> Int { shelf.asked.count { $0 == name } }

    @Test("a copy that is replaced meanwhile is read again, and no URL is fetched twice")
    func replaced() async throws {
        shelf.state.withLock { $0.replacements[url("z")] = [("list", #"["z","b","a"]"#)] }
        #expect(try await value(of: members) == #"{"words":["z","b","a"],"other":1}"#)
        #expect(["a", "z", "b"].map { times(url($0)) } == [1, 1, 1])
        // Read, found replaced, read again, found unchanged.
        #expect(times("list") == 4)
        #expect(progress.loaded.branches == 3 && progress.loaded.endedBranches == 3)
    }

    @Test("a branch that is missing in the list of the second read is not kept")
    func vanished() async throws {
        shelf.state.withLock { $0.replacements[url("z")] = [("list", #"["z","b"]"#)] }
        let run = run(members)
        #expect(String(decoding: try await run.value(), as: UTF8.self) == #"{"words":["z","b"],"other":1}"#)
        await run.parts.keep()
        let ends = store.state.withLock { $0.parts.keys.map { $0.drop { $0 != "/" } } }
        #expect(Set(ends) == ["/5:words", "/5:words/1:z", "/5:words/1:b", "/5:other"])
    }

    @Test("one copy alone needs no second read; a copy that branches read counts as two")
    func readings() {
        let copy = StageDefinition(.copy(of: "other", file: "other"))
        let request = StageDefinition(.http(HTTPSource(url: "https://a.example/", host: "a.example")))
        var each = request
        each.each = EachDefinition(as: "word", copy)
        #expect(request.copyReadings == 0 && copy.copyReadings == 1 && each.copyReadings == 2)
        #expect(StageDefinition(.joined([JoinedSource("a", copy), JoinedSource("b", each)])).copyReadings == 3)
    }

    @Test("a copy that every branch reads is consistent too")
    func copyInBranches() async throws {
        let each = EachDefinition(as: "word", concurrency: 1, StageDefinition(.copy(of: "other", file: "other")))
        let words = StageDefinition(.http(HTTPSource(url: url("words"), host: "example.com")), each: each)
        shelf.state.withLock { state in
            state.copies[url("words")] = (#"["a","b"]"#, 1)
            // The first branch finds it unchanged, the second one replaced.
            state.replacements["other"] = [("other", "1"), ("other", "2")]
        }
        #expect(try await value(of: [JoinedSource("words", words)]) == #"{"words":[2,2]}"#)
        #expect(times(url("words")) == 1)
    }

    @Test("a failing branch is fetched once, and counted once")
    func failing() async throws {
        shelf.state.withLock { state in
            state.refused = [url("z")]
            state.replacements[url("a")] = [("other", "2")]
            state.replacements[url("b")] = [("list", #"["a","b","z"]"#)]
            state.copies["list"] = (#"["a","b","z","y"]"#, 1)
        }
        #expect(try await value(of: members) == #"{"words":["a","b",null],"other":2}"#)
        #expect(["a", "b", "z", "y"].map { times(url($0)) } == [1, 1, 1, 1])
        #expect(progress.failures.map(\.path) == [["words", "z"]])
        #expect(progress.loaded.branches == 3 && progress.loaded.endedBranches == 3)
    }

    @Test("a read of copies that change with each read is given up, and the failure says so")
    func restless() async throws {
        // It changes at each read, so that the order of the reads does not matter.
        shelf.state.withLock { $0.replacements["other"] = (1...10).map { (copy: "other", text: "\($0)") } }
        await #expect(throws: FetchError.self) { try await value(of: members) }
        #expect(times(url("a")) == 1)
        // Five reads, and after each of them it had changed.
        #expect(times("other") == 10)
    }

    @Test("the copies of a nested joined source are consistent with the outer ones")
    func nested() async throws {
        let inner = JoinedSource("inner", StageDefinition(.joined(members)))
        let third = JoinedSource("third", StageDefinition(.http(HTTPSource(url: url("c"), host: "example.com"))))
        shelf.state.withLock { $0.replacements[url("z")] = [("list", #"["z"]"#)] }
        #expect(try await value(of: [inner, third]) == #"{"inner":{"words":["z"],"other":1},"third":"c"}"#)
        #expect(["a", "z", "c"].map { times(url($0)) } == [1, 1, 1])
        #expect(progress.loaded.branches == 1)
    }
}
