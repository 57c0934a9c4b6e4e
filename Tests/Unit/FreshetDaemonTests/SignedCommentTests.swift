import FreshetEventLoop
import FreshetModel
import FreshetPipelines
import TestSupport
import Testing
import WorldTestSupport

@testable import FreshetCache
@testable import FreshetControl
@testable import FreshetDaemon

@Suite("Comments of publishers in signatures")
struct SignedCommentTests {
    private let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    private func store() throws -> CacheStore {
        let (cache, _) = try LocalCache.open(
            cacheDirectory: "\(directory.path)/cache", stateDirectory: "\(directory.path)/state", reserve: .none)
        return CacheStore(cache: cache, workers: WorkerPool()) { _, _ in }
    }

    @Test("the last comment of each pipeline survives a restart, whatever characters it contains")
    func remembered() async throws {
        let words = SignedComment(digest: "ab", comment: " timestamp:7\tfile:é  ")
        do {
            let store = try store()
            for name in ["a", "b"] {
                let definition = PipelineDefinition(
                    name: name, source: .file("/dev/null"), cache: CacheRules(file: name))
                _ = try await store.commit(
                    Snapshot(.bytes([1]), validators: FreshetModel.Validators(), binding: "b"), of: definition)
            }
            await store.rememberSigned("a", SignedComment(digest: "cd", comment: "before"))
            await store.rememberSigned("a", words)
        }
        let store = try store()
        #expect(await store.remembered("a").signed == words)
        #expect(await store.remembered("b").signed == nil)
        #expect(await store.remembered().known.mapValues(\.signed) == ["a": words, "b": nil])
        #expect(await store.remembered("a").binding == "b")
    }

    @Test("a generation without a comment, pin or withdrawal any more is equal to one that never had them")
    func absentAgain() {
        let plain = CurrentGeneration(number: 1, size: 1, digest: "ab", committedAt: 1, path: "/a")
        var generation = plain
        (generation.comment, generation.pinnedSince, generation.withdrawnSince) = ("version 1", 1, 2)
        #expect(generation != plain)
        (generation.comment, generation.pinnedSince, generation.withdrawnSince) = (nil, nil, nil)
        #expect(generation == plain && generation.hashValue == plain.hashValue)
    }

    @Test("a pipeline without a stored state has an empty one, which need not be read")
    func noState() async throws {
        let store = try store()
        let states = await store.remembered()
        #expect(states.known.isEmpty && states["a"] == PersistentState())
        let failed = CacheStore.StoredStates(["b": PersistentState(lastRun: 3)], unreadable: ["c"])
        #expect(failed["b"]?.lastRun == 3 && failed["c"] == nil && failed["d"] == PersistentState())
        #expect(CacheStore.StoredStates(unreadable: nil)["a"] == nil)
    }

    @Test("the status shows the comment with the copy")
    func copyComment() {
        var generation = CurrentGeneration(number: 1, size: 1, digest: "ab", committedAt: 1, path: "/a")
        #expect(GenerationStatus(generation).comment == nil)
        generation.comment = "version 1"
        #expect(GenerationStatus(generation).comment == "version 1")
    }
}
