import FreshetModel
import Glibc
import Synchronization
import TestSupport
import Testing

@testable import FreshetCache

@Suite("The comparison of index and files at a start")
struct StartComparisonTests {
    private func destination(_ number: Int) -> CacheDestination {
        CacheDestination(pipeline: "p\(number)", file: "p\(number).json", keep: 2)
    }

    /// A closed cache with copies of this many pipelines.
    private func closed(_ count: Int) throws -> TemporaryDirectory {
        let fixture = try CacheFixture()
        for number in 0..<count { try fixture.commit("\(number)", to: destination(number)) }
        return fixture.directory
    }

    private func open(
        _ directory: TemporaryDirectory, _ files: FailingFileSystem, helpers: StartHelpers = .none
    ) throws -> (cache: LocalCache, report: RecoveryReport) {
        try LocalCache.open(
            cacheDirectory: directory.cache, stateDirectory: directory.state, reserve: .none, verifiesAll: false,
            fileSystem: files, helpers: helpers, memoriesKey: "k")
    }

    @Test("is used by the first reading of the stored states, which looks at no file again")
    func once() throws {
        let (directory, files) = (try closed(3), FailingFileSystem())
        let (cache, report) = try open(directory, files)
        #expect(report == RecoveryReport(index: .opened))
        files.disarm()
        let (states, unreadable) = try cache.memoriesAtStart(key: "k")
        #expect(files.calls.isEmpty)
        #expect(states.keys.sorted() == ["p0", "p1", "p2"] && unreadable.isEmpty)
        #expect(states.values.allSatisfy { $0.generation?.number == 1 && $0.lastCheck == WallTime(seconds: 1000) })
        #expect(try cache.memoriesAtStart(key: "k").states == states)
        #expect(files.calls == ["lstat", "lstat", "lstat"])
    }

    @Test("does not count for the stored states if the index has changed since")
    func changed() throws {
        let (directory, files) = (try closed(3), FailingFileSystem())
        let (cache, _) = try open(directory, files)
        try cache.records.setState("p1", key: "k", to: Array("b".utf8))
        files.disarm()
        let states = try cache.memoriesAtStart(key: "k").states
        #expect(states["p1"]?.binding == "b")
        #expect(files.calls == ["lstat", "lstat", "lstat"])
    }

    @Test("leaves what does not agree, and what it cannot read, to the repairs")
    func different() throws {
        let directory = try closed(200)
        let count = Atomic(0)
        try #require(unlink(directory.cache + "/current/p7.json") == 0)
        try #require(unlink(directory.cache + "/current/p70.json") == 0)
        try TemporaryDirectory.write(Array("foreign".utf8), to: directory.cache + "/current/p70.json")
        try TemporaryDirectory.write([], to: directory.cache + "/generations/p150/.new-9")
        try TemporaryDirectory.touch(directory.cache + "/current/p199.json")
        let helpers = StartHelpers { work in while work() { count.add(1, ordering: .relaxed) } }
        let (cache, report) = try open(directory, FailingFileSystem(), helpers: helpers)
        #expect(
            report.pipelines == [
                PipelineRecovery(pipeline: "p150", repairs: [.removedCandidates(1)]),
                PipelineRecovery(pipeline: "p199", repairs: [.verified(1)]),
                PipelineRecovery(pipeline: "p7", repairs: [.restored(1)]),
                PipelineRecovery(pipeline: "p70", repairs: [.restored(1)]),
            ])
        // In pieces, so that threads can share them.
        #expect(count.load(ordering: .relaxed) == 4)
        let states = try cache.memoriesAtStart(key: "k").states
        #expect(states.count == 200 && states.values.allSatisfy { $0.generation?.number == 1 })
        #expect(
            try String(decoding: TemporaryDirectory.read(directory.cache + "/current/p7.json"), as: UTF8.self) == "7")
    }

    @Test("that fails for a file is repeated by the repairs")
    func failure() throws {
        let (directory, files) = (try closed(2), FailingFileSystem())
        _ = try open(directory, files)
        let last = try #require(files.calls.lastIndex(of: "lstat"))
        files.arm(.fail(at: last + 1, errno: EACCES))
        let (cache, report) = try open(directory, files)
        #expect(report == RecoveryReport(index: .opened))
        #expect(files.calls.count > last + 1)
        #expect(try cache.memoriesAtStart(key: "k").states.count == 2)
    }
}
