import FreshetModel
import FreshetSignals
import FreshetTestKit
import TestSupport
import Testing
import WorldTestSupport

@testable import FreshetPipelines

@Suite("Branches that are published progressively", .hangLimit)
struct ProgressiveTests {
    /// A list, and an answer for each of its words when the test releases it.
    private final class Gates: Fetching {
        let open: CurrentValue<Set<String>>
        let down: Set<String>
        let answer: String?

        init(_ open: Set<String>, down: Set<String> = [], saying answer: String? = nil) {
            self.open = CurrentValue(open)
            self.down = down
            self.answer = answer
        }

        func fetch(_ request: FetchRequest) async throws(FetchError) -> FetchResult {
            guard case .http(let source) = request.source else {
                return .content(FetchedContent(bytes: Array(#"["a","b","c"]"#.utf8)))
            }
            let word = String(source.url.suffix(1))
            if down.contains(word) { throw .failed(RunFailure(.connection, "it is down")) }
            for await open in open where open.contains(word) {
                return .content(FetchedContent(bytes: Array("\"\(answer ?? word)\"".utf8)))
            }
            throw .cancelled
        }

        func resolve(_ reference: String, against base: String) -> WebAddress? { nil }
    }

    /// The tasks of disarmed timers end when the executor runs, once more after the test.
    private final class Clock: Sendable {
        let scripted = ScriptedClock(executor: SerialTestExecutor())
        deinit { _ = try? scripted.executor.runUntilIdle() }
    }

    private let owner = Clock()
    private var clock: ScriptedClock { owner.scripted }
    private let shown = CurrentValue<[String]>([])

    /// - Parameter isShown: whether readers see a published list.
    private func run(
        _ gates: Gates, store: MemoryStore, onError: EachDefinition.OnError = .previous, isShown: Bool = true
    ) -> StageEvaluator {
        let world = EngineDependencies(
            fetcher: gates, transformer: Words(), store: store, clock: clock,
            requestLimiter: RequestLimiter(RequestLimiter.Limits(total: 4, perOrigin: 4)))
        let branch = StageDefinition(.http(HTTPSource(url: "https://example.com/{word}", host: "example.com")))
        let each = EachDefinition(as: "word", onError: onError, publish: .progressive, branch)
        let definition = PipelineDefinition(
            name: "words", stage: StageDefinition(.copy(of: "list", file: "list"), each: each),
            cache: CacheRules(file: "words"))
        return StageEvaluator(
            definition, world, ParameterValues(), epoch: 1, progress: RunProgress(), seed: 1,
            publish: { [shown] list in
                shown.update { $0.append(String(decoding: list, as: UTF8.self)) }
                return isShown
            })
    }

    private func lists(atLeast count: Int) async -> [String] {
        for await lists in shown where lists.count >= count { return lists }
        return []
    }

    @Test("the first result is published immediately, the next after the pause, and the caller gets the whole")
    func story() async throws {
        let gates = Gates(["b"])
        let run = run(gates, store: MemoryStore(clock: clock))
        async let value = run.value()
        #expect(await lists(atLeast: 1) == [#"[null,"b",null]"#])
        gates.open.update { $0.insert("a") }
        // The timer of the pause is armed some time after the publication.
        while shown.value.count < 2 {
            try clock.manual.advance(by: StageEvaluator.publishingPause, draining: clock.executor)
            await Task.yield()
        }
        #expect(await lists(atLeast: 2).dropFirst() == [#"["a","b",null]"#])
        gates.open.update { $0.insert("c") }
        #expect(String(decoding: try await value, as: UTF8.self) == #"["a","b","c"]"#)
        #expect(shown.value.count == 2)
    }

    @Test(
        "an earlier value is shown for a running branch, whatever on-error says; without a value, omit is shorter",
        arguments: EachDefinition.OnError.allCases)
    func placeholders(onError: EachDefinition.OnError) async throws {
        let store = MemoryStore(clock: clock)
        let first = run(Gates(["a", "b", "c"]), store: store, onError: onError)
        _ = try await first.value()
        await first.parts.keep()
        let before = shown.value.count
        let gates = Gates(["a"])
        async let value = run(gates, store: store, onError: onError).value()
        #expect(await lists(atLeast: before + 1).last == #"["a","b","c"]"#)
        gates.open.value = ["a", "b", "c"]
        _ = try await value

        let others = Gates(["c"])
        async let short = run(others, store: MemoryStore(clock: clock), onError: .omit).value()
        #expect(await lists(atLeast: before + 2).last == #"["c"]"#)
        others.open.value = ["a", "b", "c"]
        _ = try await short
    }

    @Test("while all ended branches have failed, nothing is published")
    func down() async throws {
        let store = MemoryStore(clock: clock)
        let first = run(Gates(["a", "b", "c"]), store: store, onError: .null)
        _ = try await first.value()
        await first.parts.keep()
        shown.value = []
        let gates = Gates([], down: ["a", "b"])
        let second = run(gates, store: store, onError: .null)
        async let value = second.value()
        while second.progress.loaded.endedBranches < 2 { await Task.yield() }
        for _ in 0..<100 { await Task.yield() }
        gates.open.value = ["c"]
        #expect(String(decoding: try await value, as: UTF8.self) == #"[null,null,"c"]"#)
        #expect(shown.value == [])
    }

    @Test("a cancelled run publishes nothing more and ends")
    func cancelled() async throws {
        let gates = Gates(["a"])
        let run = run(gates, store: MemoryStore(clock: clock))
        let task = Task { try await run.value() }
        #expect(await lists(atLeast: 1).count == 1)
        task.cancel()
        await #expect(throws: FetchError.cancelled) { try await task.value }
        #expect(shown.value.count == 1)
    }

    @Test("the published values of a failed run are shown for the next run's branches")
    func remembered() async throws {
        let store = MemoryStore(clock: clock)
        let whole = run(Gates(["a", "b", "c"]), store: store)
        _ = try await whole.value()
        await whole.parts.keep()
        // Of three branches, that of another configuration and that without an item go; the running ones stay.
        let names = store.state.withLock { state in
            state.parts["elsewhere"] = StoredPart(binding: "", validators: Validators(), value: [])
            return Set(state.parts.keys.filter { $0 != "elsewhere" })
        }
        try await begins(with: Gates(["b"], saying: "B"), store)
        #expect(store.state.withLock { Set($0.parts.keys) } == names)
        shown.value = []
        try await begins(with: Gates(["a"]), store)
        #expect(shown.value == [#"["a","B","c"]"#])
    }

    @Test("unpublished values are fetched again")
    func notShown() async throws {
        let store = MemoryStore(clock: clock)
        try await begins(with: Gates(["a"]), store, isShown: false)
        #expect(store.state.withLock { $0.parts.isEmpty })
    }

    /// A run that is cancelled after one publication.
    private func begins(with gates: Gates, _ store: MemoryStore, isShown: Bool = true) async throws {
        let run = run(gates, store: store, isShown: isShown)
        let count = shown.value.count
        let task = Task { try await run.value() }
        _ = await lists(atLeast: count + 1)
        task.cancel()
        await #expect(throws: FetchError.cancelled) { try await task.value }
    }
}
