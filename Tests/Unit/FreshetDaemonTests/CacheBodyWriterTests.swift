import FreshetEventLoop
import FreshetModel
import FreshetPipelines
import Glibc
import TestSupport
import Testing

@testable import FreshetCache
@testable import FreshetDaemon

@Suite("Bodies on disk in the cache")
struct CacheBodyWriterTests {
    let directory: TemporaryDirectory
    let store: CacheStore
    let definition: PipelineDefinition

    init() throws {
        directory = try TemporaryDirectory()
        let (cache, _) = try LocalCache.open(
            cacheDirectory: "\(directory.path)/cache", stateDirectory: "\(directory.path)/state", reserve: .none)
        store = CacheStore(cache: cache, workers: WorkerPool()) { _, _ in }
        definition = PipelineDefinition(
            name: "a", source: .file("/dev/null"), check: CheckRules(maxBytes: 1 << 20),
            cache: CacheRules(file: "a.bin"))
    }

    private var generations: [String] { TemporaryDirectory.names("\(directory.path)/cache/generations/a") }

    private func body(_ pieces: [[UInt8]]) async throws -> FetchedBody {
        let bodyStore = try #require(store.bodyStore(of: definition))
        let pending = try await bodyStore.begin(expecting: nil)
        for piece in pieces { try await pending.append(piece) }
        return .kept(StoredBody(pending, size: pieces.reduce(0) { $0 + $1.count }))
    }

    private func commit(_ body: FetchedBody) async throws -> CommitOutcome {
        try await store.commit(
            Snapshot(body, validators: FreshetModel.Validators(entityTag: "\"v1\""), binding: "b"), of: definition)
    }

    @Test("a body becomes a generation unchanged, with the digest that was computed while it was written")
    func committed() async throws {
        let body = try await body([Array("on".utf8), Array("e".utf8)])
        #expect(generations.count == 1 && generations.allSatisfy { $0.hasPrefix(".new-") })
        guard case .changed(let generation) = try await commit(body) else {
            Issue.record("nothing changed")
            return
        }
        #expect(generation.digest.description == "7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed")
        #expect(generation.size == 3)
        #expect(directory.text("cache/current/a.bin") == "one")
        #expect(generations == ["1-\(generation.digest)"])
        #expect(await store.validators("a", binding: "b")?.entityTag == "\"v1\"")
        // Dropping the body after the commit does not remove the generation.
        await body.discard()
        #expect(directory.text("cache/current/a.bin") == "one")
    }

    @Test("before the commit, a body can be read and has the digest of the written bytes")
    func readBefore() async throws {
        let body = try await body([Array("on".utf8), Array("e".utf8)])
        guard case .kept(let kept) = body else {
            Issue.record("not kept")
            return
        }
        let digest = "7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed"
        #expect(try await kept.pending.digest() == digest)
        #expect(try await kept.pending.content() == Array("one".utf8))
        let path = try #require(kept.pending.path)
        #expect(path.hasPrefix("\(directory.path)/cache/generations/a/.new-"))
        // More bytes may follow after the digest was read.
        try await kept.pending.append(Array("s".utf8))
        #expect(try await kept.pending.digest() != digest)
        #expect(try await kept.pending.content() == Array("ones".utf8))
        await body.discard()
        await #expect(throws: RunFailure.self) { try await kept.pending.digest() }
        await #expect(throws: RunFailure.self) { try await kept.pending.content() }
    }

    @Test("a body is intact until another process writes to its file, whatever the times of the file are")
    func intact() async throws {
        let body = try await body([Array("on".utf8), Array("e".utf8)])
        guard case .kept(let kept) = body, let path = kept.pending.path else {
            Issue.record("not kept")
            return
        }
        #expect(try await kept.pending.isIntact())
        let descriptor = open(path, O_WRONLY | O_CLOEXEC)
        try #require(pwrite(descriptor, "O", 1, 0) == 1)
        close(descriptor)
        #expect(try await !kept.pending.isIntact())
        await body.discard()
        await #expect(throws: RunFailure.self) { try await kept.pending.isIntact() }
    }

    @Test("a body with the content of the copy makes no generation, also if that content came in memory")
    func unchanged() async throws {
        guard case .changed(let first) = try await commit(.bytes(Array("one".utf8))) else {
            Issue.record("nothing changed")
            return
        }
        guard case .unchanged(let same) = try await commit(try await body([Array("one".utf8)])) else {
            Issue.record("it made a generation")
            return
        }
        #expect(same.number == first.number && same.digest == first.digest)
        #expect(generations == ["1-\(first.digest)"])
    }

    @Test("a discarded body leaves no file and cannot be committed")
    func discarded() async throws {
        let body = try await body([[1]])
        await body.discard()
        await body.discard()
        #expect(generations.isEmpty)
        await #expect(throws: RunFailure.self) { try await commit(body) }
    }

    @Test("a body larger than the limit is refused while it is written, and leaves no file")
    func tooLarge() async throws {
        let bodyStore = try #require(store.bodyStore(of: definition))
        let pending = try await bodyStore.begin(expecting: nil)
        try await pending.append([UInt8](repeating: 1, count: 1 << 20))
        let error = await #expect(throws: RunFailure.self) { try await pending.append([1]) }
        #expect(error?.message.contains("check.max-bytes") == true)
        #expect(generations.isEmpty)
    }
}
