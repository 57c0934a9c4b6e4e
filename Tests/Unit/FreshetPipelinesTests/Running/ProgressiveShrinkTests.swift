import FreshetModel
import FreshetSignals
import FreshetTestKit
import TestSupport
import Testing
import WorldTestSupport

@testable import FreshetPipelines

@Suite("Branches that are published progressively, and the limit on shrinking", .hangLimit)
struct ProgressiveShrinkTests {
    /// Three branches with the number of letters and at the time that the test says.
    private final class Letters: Fetching {
        let counts = CurrentValue<[String: Int]>([:])

        func fetch(_ request: FetchRequest) async throws(FetchError) -> FetchResult {
            guard case .http(let source) = request.source else {
                return .content(FetchedContent(bytes: Array(#"["a","b","c"]"#.utf8)))
            }
            for await counts in counts {
                guard let count = counts[String(source.url.suffix(1))] else { continue }
                return .content(FetchedContent(bytes: Array("\"\(String(repeating: "x", count: count))\"".utf8)))
            }
            throw .cancelled
        }

        func resolve(_ reference: String, against base: String) -> WebAddress? { nil }
    }

    private let clock = ScriptedClock(executor: SerialTestExecutor())
    private let store: MemoryStore
    /// The sizes of the published partial results.
    private let shown = CurrentValue<[UInt64]>([])

    init() { store = MemoryStore(clock: clock) }

    private func body(_ letters: Letters, shrink: Int) -> RunExecutor {
        let world = EngineDependencies(
            fetcher: letters, transformer: Words(), store: store, clock: clock,
            requestLimiter: RequestLimiter(RequestLimiter.Limits(total: 4, perOrigin: 4)))
        let branch = StageDefinition(.http(HTTPSource(url: "https://example.com/{word}", host: "example.com")))
        let each = EachDefinition(as: "word", publish: .progressive, branch)
        var check = CheckRules()
        check.shrink = shrink
        let definition = PipelineDefinition(
            name: "words", stage: StageDefinition(.copy(of: "list", file: "list"), each: each), check: check,
            cache: CacheRules(file: "words"))
        return RunExecutor(
            definition: definition, world: world, parameters: ParameterValues(), epoch: 1, progress: RunProgress(),
            seed: 1,
            publication: RunExecutor.Publication(
                isAllowed: { true }, published: { [shown] generation in shown.update { $0.append(generation.size) } }))
    }

    /// A run whose branches end one after the other, with enough time between them for a publication.
    ///
    /// - Returns: why it failed; nil: it did not fail.
    private func run(_ counts: KeyValuePairs<String, Int>, shrink: Int) async throws -> RunFailure? {
        shown.value = []
        let letters = Letters()
        let body = body(letters, shrink: shrink)
        let task = Task { () async -> RunFailure? in
            do throws(FetchError) {
                _ = try await body.run()
                return nil
            } catch {
                guard case .failed(let failure) = error else { return RunFailure(.local, "\(error)") }
                return failure
            }
        }
        for (index, (name, count)) in counts.enumerated() {
            letters.counts.update { $0[name] = count }
            guard index < counts.count - 1 else { break }
            // The pause after the publication, or after the decision against it.
            while body.progress.loaded.endedBranches <= index || clock.manual.sleeperCount == 0 {
                try clock.executor.runUntilIdle()
                await Task.yield()
            }
            try clock.manual.advance(by: StageEvaluator.publishingPause, draining: clock.executor)
        }
        return await task.value
    }

    /// The size of a list of three texts with this number of letters.
    private func size(_ letters: Int...) -> Int { letters.reduce(#"["","",""]"#.utf8.count, +) }

    @Test("several small losses are limited like one; a smaller list is not published before it is complete")
    func shrinks() async throws {
        #expect(try await run(["a": 10, "b": 10, "c": 10], shrink: 50) == nil)
        let before = store.text
        let failure = try await run(["a": 0, "b": 0, "c": 0], shrink: 50)
        #expect(failure?.message.contains("10 bytes, was 40 (−75 %); check.shrink allows") == true)
        #expect(store.text == before && shown.value == [])
    }

    @Test("a growing list is published progressively, and the whole is compared with the copy before the run")
    func moves() async throws {
        #expect(try await run(["a": 10, "b": 10, "c": 10], shrink: 10) == nil)
        // All content is in another branch now.
        #expect(try await run(["a": 30, "b": 0, "c": 0], shrink: 10) == nil)
        #expect(shown.value.first == UInt64(size(30, 10, 10)))
        #expect(store.text?.utf8.count == size(30, 0, 0))
    }
}
