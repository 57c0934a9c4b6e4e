import FreshetModel
import FreshetSignals
import FreshetTestKit
import TestSupport
import Testing
import WorldTestSupport

@testable import FreshetPipelines

@Suite("Stored parts of branches", .hangLimit)
struct BranchPartsTests {
    /// A store that remembers what was read.
    private final class Shelf: Sendable {
        let read = Lock<[Range<Int>]>([])
        /// The most parts of one answer.
        let most: Int

        init(most: Int = .max) { self.most = most }

        func parts(of branches: Range<Int>) async -> [StoredPart?] {
            read.withLock { $0.append(branches) }
            await Task.yield()
            return branches.prefix(most).map(Self.part)
        }

        /// Every third branch has no part.
        static func part(_ branch: Int) -> StoredPart? {
            branch.isMultiple(of: 3)
                ? nil : StoredPart(binding: "\(branch)", validators: Validators(), value: [])
        }
    }

    private func expectParts(of count: Int, from shelf: Shelf, in order: [Int]? = nil) async {
        let parts = BranchParts(count: count) { await shelf.parts(of: $0) }
        await withTaskGroup { group in
            for branch in order ?? Array(0..<count) {
                group.addTask {
                    let part = await parts.part(of: branch)
                    #expect(part == Shelf.part(branch), "\(branch)")
                }
            }
        }
    }

    @Test("are read many at a time, each once", arguments: [1, 127, 128, 129, 1000])
    func together(count: Int) async {
        let shelf = Shelf()
        await expectParts(of: count, from: shelf)
        let read = shelf.read.withLock { $0 }
        #expect(read.flatMap { Array($0) } == Array(0..<count))
        #expect(read.count == (count + BranchParts.readAhead - 1) / BranchParts.readAhead)
    }

    @Test("are complete if answers end early")
    func early() async {
        let shelf = Shelf(most: 7)
        await expectParts(of: 100, from: shelf)
        let starts = shelf.read.withLock { $0.map(\.lowerBound) }
        #expect(starts == Array(stride(from: 0, to: 100, by: 7)))
    }

    @Test("are right in any order of the branches")
    func anyOrder() async {
        await expectParts(of: 500, from: Shelf(), in: Array((0..<500).reversed()))
        await expectParts(of: 500, from: Shelf(most: 3), in: (0..<500).map { $0 * 7 % 500 })
    }

    @Test("are read again if a branch is evaluated again")
    func again() async {
        let shelf = Shelf()
        let parts = BranchParts(count: 5) { await shelf.parts(of: $0) }
        for _ in 0..<2 { #expect(await parts.part(of: 4) == Shelf.part(4)) }
        #expect(shelf.read.withLock { $0 } == [0..<5, 4..<5])
    }

    /// A list of items that do not change.
    private struct Unchanging: Fetching {
        let list: String

        func fetch(_ request: FetchRequest) async throws(FetchError) -> FetchResult {
            guard case .http(let source) = request.source else { throw .failed(RunFailure(.local, "no URL")) }
            if request.validators?.isEmpty == false { return .notModified(nil) }
            let name = source.url.split(separator: "/").last ?? ""
            let body = name == "list" ? list : "\"\(name)\""
            return .content(FetchedContent(bytes: Array(body.utf8), validators: Validators(entityTag: "\"v\"")))
        }

        func resolve(_ reference: String, against base: String) -> WebAddress? {
            ScriptedURLs.resolve(reference, against: base)
        }
    }

    @Test("of 1,000 branches cost the store nine questions, the list's one among them")
    func questions() async throws {
        let clock = ScriptedClock(executor: SerialTestExecutor())
        let store = MemoryStore(clock: clock)
        let names = (0..<1000).map { "\"i\($0)\"" }.joined(separator: ",")
        let world = EngineDependencies(
            fetcher: Unchanging(list: "[\(names)]"), transformer: Words(), store: store, clock: clock,
            requestLimiter: RequestLimiter(RequestLimiter.Limits(total: 32, perOrigin: 32)))
        let branch = StageDefinition(.http(HTTPSource(url: "https://a.example/{item}", headers: [], host: "")))
        let stage = StageDefinition(
            .http(HTTPSource(url: "https://a.example/list", headers: [], host: "")),
            each: EachDefinition(as: "item", branch))
        let definition = PipelineDefinition(name: "list", stage: stage, cache: CacheRules(file: "list"))
        for _ in 0..<2 {
            let before = store.state.withLock { $0.partQuestions }
            let run = StageEvaluator(
                definition, world, ParameterValues(), epoch: 1, progress: RunProgress(), seed: 1)
            #expect(try await String(decoding: run.value(), as: UTF8.self) == "[\(names)]")
            await run.parts.keep()
            #expect(store.state.withLock { $0.partQuestions } - before == 9)
        }
        #expect(store.state.withLock { $0.parts.count } == 1001)
    }
}
