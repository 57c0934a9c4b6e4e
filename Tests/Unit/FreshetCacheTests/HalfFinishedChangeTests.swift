import FreshetModel
import Glibc
import Synchronization
import TestSupport
import Testing

@testable import FreshetCache

/// What a cache reports about changes that failed halfway.
private final class ChangeRecorder: Sendable {
    struct Repaired: Hashable {
        var pipeline: String
        var number: UInt64
    }

    private struct State {
        var left: Set<String> = []
        var repaired: [Repaired] = []
    }

    private let state = Mutex(State())

    var left: Set<String> { state.withLock { $0.left } }
    var repaired: [Repaired] { state.withLock { $0.repaired } }

    var changes: HalfFinishedChanges {
        var changes = HalfFinishedChanges()
        changes.left = { [self] pipeline in state.withLock { _ = $0.left.insert(pipeline) } }
        changes.repaired = { [self] pipeline, generation in
            state.withLock { $0.repaired.append(Repaired(pipeline: pipeline, number: generation.number)) }
        }
        return changes
    }
}

/// A cache whose index can refuse all changes from the moment when readers see new content, as on a full disk.
private struct Scene {
    let recorder = ChangeRecorder()
    let files = FailingFileSystem()
    let fixture: CacheFixture

    init() throws {
        fixture = try CacheFixture(fileSystem: files, changes: recorder.changes)
    }

    /// Makes the index refuse all changes, or accept them again.
    func refuse(_ refuses: Bool) throws {
        try fixture.cache.context.withIndex { (index) throws(SQLiteError) in
            try index.database.execute("PRAGMA query_only = \(refuses ? "ON" : "OFF")")
        }
    }

    /// Runs `body`, and makes the index refuse all changes as soon as the published file exists or has changed.
    func failing(_ file: String = "jwks.json", isCommit: Bool = true, _ body: () throws -> Void) throws {
        let path = fixture.directory.cache + "/current/" + file
        let (context, before) = (fixture.cache.context, try LinuxFileSystem().status(path)?.identity.inode)
        let isOver = Mutex(false)
        files.arm(.nothing) {
            guard let now = try? LinuxFileSystem().status(path)?.identity.inode, now != before,
                isOver.withLock({ old in
                    defer { old = true }
                    return !old
                })
            else { return }
            _ = try? context.withIndex { (index) throws(SQLiteError) in
                try index.database.execute("PRAGMA query_only = ON")
            }
        }
        defer { files.disarm() }
        let error = #expect(throws: CacheError.self) { try body() }
        if isCommit {
            #expect(error?.description.hasPrefix("the new content is published, but it is not recorded") == true)
        }
        #expect(isOver.withLock { $0 })
    }

    /// Checks that a start has nothing to repair, and finds this generation.
    func expectWhole(_ number: UInt64?) throws {
        let copy = try CacheFixture(try fixture.directory.copied())
        #expect(copy.report.pipelines.allSatisfy { !$0.hasFollowed })
        #expect(try copy.cache.current("jwks")?.number == number)
    }
}

@Suite("A change that fails after readers see it")
struct HalfFinishedChangeTests {
    @Test(
        "is left while the index refuses changes, and is reported once when the index has it", arguments: [false, true])
    func commit(_ isFirst: Bool) throws {
        let scene = try Scene()
        let (cache, number): (LocalCache, UInt64) = (scene.fixture.cache, isFirst ? 1 : 2)
        if !isFirst { try scene.fixture.commit("old") }
        try scene.failing { try scene.fixture.commit("new") }
        #expect(try scene.fixture.reader() == "new")
        #expect(scene.recorder.left == ["jwks"] && scene.recorder.repaired.isEmpty)
        #expect(throws: CacheError.self) { try cache.withdrawals.restoreCopy(of: "jwks") }
        #expect(scene.recorder.repaired.isEmpty)
        try scene.refuse(false)
        #expect(try cache.withdrawals.restoreCopy(of: "jwks") == .found)
        #expect(scene.recorder.repaired == [.init(pipeline: "jwks", number: number)])
        #expect(try cache.current("jwks")?.number == number)
        let newest = try cache.generations.history("jwks", limit: 9).max { $0.number < $1.number }
        #expect(newest?.number == Int64(number) && newest?.causes == "repair")
        #expect(try cache.withdrawals.restoreCopy(of: "jwks") == .found)
        #expect(scene.recorder.repaired.count == 1)
        try scene.expectWhole(number)
    }

    @Test("is not a finding of an examination, and no repair removes its content")
    func examination() throws {
        let scene = try Scene()
        let cache = scene.fixture.cache
        try scene.fixture.commit("old")
        try scene.failing { try scene.fixture.commit("new") }
        let findings = try cache.checker.examine("jwks").findings
        #expect(!findings.contains { $0.kind == .contentUnknown }, "\(findings)")
        #expect(throws: CacheError.self) { try cache.checker.examine("jwks", repairs: true) }
        #expect(try scene.fixture.reader() == "new")
        try scene.refuse(false)
        #expect(try cache.checker.examine("jwks", repairs: true).findings.isEmpty)
        #expect(try scene.fixture.reader() == "new")
        #expect(scene.recorder.repaired == [.init(pipeline: "jwks", number: 2)])
        try scene.expectWhole(2)
    }

    @Test("is reported immediately if only a call after its publication fails")
    func repairedAtOnce() throws {
        let scene = try Scene()
        try scene.fixture.commit("old")
        let pending = try scene.fixture.cache.begin(.jwks)
        try pending.write(Array("new".utf8))
        // The last call, which reads the identity of the published file: see CrashTests.calls.
        scene.files.arm(.fail(at: 12, errno: EIO))
        #expect(throws: CacheError.self) { try pending.commit(at: WallTime(seconds: 2)) }
        #expect(scene.files.calls[11] == "lstat")
        scene.files.disarm()
        #expect(scene.recorder.repaired == [.init(pipeline: "jwks", number: 2)])
        #expect(try scene.fixture.cache.current("jwks")?.number == 2)
    }

    @Test("is the change of the next commit, if that has the same content")
    func sameAgain() throws {
        let scene = try Scene()
        try scene.fixture.commit("old")
        try scene.failing { try scene.fixture.commit("new") }
        try scene.refuse(false)
        let outcome = try scene.fixture.commit("new")
        #expect(outcome.isChange && outcome.generation.number == 2)
        #expect(scene.recorder.repaired.isEmpty)
        #expect(try !scene.fixture.commit("new").isChange)
    }

    @Test("is not reported if the next commit has newer content")
    func newer() throws {
        let scene = try Scene()
        try scene.fixture.commit("old")
        try scene.failing { try scene.fixture.commit("new") }
        try scene.refuse(false)
        let outcome = try scene.fixture.commit("newer")
        #expect(outcome.isChange && outcome.generation.number == 3)
        #expect(scene.recorder.repaired.isEmpty)
    }

    @Test("is reported when a check asks for validators")
    func validators() throws {
        let scene = try Scene()
        try scene.fixture.commit("old", validators: [.tag("1")])
        try scene.failing { try scene.fixture.commit("new", validators: [.tag("2")]) }
        try scene.refuse(false)
        let validators = try scene.fixture.cache.validators("jwks", boundTo: BoundValidators.tag("2").binding)
        #expect(validators == BoundValidators.tag("2").validators)
        #expect(scene.recorder.repaired == [.init(pipeline: "jwks", number: 2)])
    }

    @Test("is a rollback: its caller reports it, or it is reported when the index has it", arguments: [false, true])
    func rollback(_ isLeft: Bool) throws {
        let scene = try Scene()
        let cache = scene.fixture.cache
        try scene.fixture.commit("one")
        try scene.fixture.commit("two")
        if isLeft {
            try scene.failing(isCommit: false) { _ = try cache.generations.rollBack(.jwks, to: 1) }
            #expect(scene.recorder.left == ["jwks"])
            try scene.refuse(false)
            #expect(try cache.current("jwks")?.number == 1)
            #expect(scene.recorder.repaired == [.init(pipeline: "jwks", number: 1)])
        } else {
            scene.files.arm(.nothing)
            _ = try cache.generations.rollBack(.jwks, to: 1)
            let last = scene.files.calls.count
            _ = try cache.generations.rollBack(.jwks, to: 2)
            scene.files.arm(.fail(at: last, errno: EIO))
            let outcome = try cache.generations.rollBack(.jwks, to: 1)
            #expect(outcome.failure != nil && outcome.generation.number == 1)
            #expect(scene.recorder.repaired.isEmpty)
        }
        #expect(try scene.fixture.reader() == "one")
    }

    @Test("is reported also if the copy was withdrawn before")
    func withdrawn() throws {
        let scene = try Scene()
        let cache = scene.fixture.cache
        try scene.fixture.commit("old")
        _ = try cache.withdrawals.withdraw("jwks", at: WallTime(seconds: 2000))
        try scene.failing { try scene.fixture.commit("new") }
        try scene.refuse(false)
        #expect(try cache.withdrawals.restoreCopy(of: "jwks") == .found)
        #expect(scene.recorder.repaired == [.init(pipeline: "jwks", number: 2)])
        #expect(try cache.current("jwks")?.withdrawnSince == nil)
    }

    @Test("of several pipelines that commit together is left and reported for each of them")
    func together() async throws {
        let scene = try Scene()
        let names = (1...8).map { "p\($0)" }
        let destinations = names.map { CacheDestination(pipeline: $0, file: $0) }
        for destination in destinations { try scene.fixture.commit("old", to: destination) }
        let cache = scene.fixture.cache
        let pending = try destinations.map { destination in
            let pending = try cache.begin(destination)
            try pending.write(Array("new".utf8))
            return pending
        }
        // All of them have passed their first transaction when the index begins to refuse changes.
        let arrived = Mutex(Set<String>())
        let context = cache.context
        let directory = scene.fixture.directory.cache + "/current/"
        scene.files.arm(.nothing) {
            let new = names.filter { (try? TemporaryDirectory.read(directory + $0)) == Array("new".utf8) }
            let isFirst = arrived.withLock { known in
                defer { known.formUnion(new) }
                return known.isEmpty && !new.isEmpty
            }
            guard isFirst else { return }
            _ = try? context.withIndex { (index) throws(SQLiteError) in
                try index.database.execute("PRAGMA query_only = ON")
            }
        }
        await withTaskGroup(of: Void.self) { group in
            for pending in pending {
                group.addTask { #expect(throws: CacheError.self) { try pending.commit(at: WallTime(seconds: 2000)) } }
            }
        }
        scene.files.disarm()
        let published = arrived.withLock { $0 }
        #expect(!published.isEmpty)
        #expect(scene.recorder.left.isSuperset(of: published))
        try scene.refuse(false)
        for name in names { #expect(try cache.withdrawals.restoreCopy(of: name) == .found) }
        #expect(Set(scene.recorder.repaired.map(\.pipeline)) == published)
        #expect(scene.recorder.repaired.count == published.count)
        for name in names {
            #expect(try cache.current(name)?.number == (published.contains(name) ? 2 : 1))
            #expect(try scene.fixture.reader(name) == (published.contains(name) ? "new" : "old"))
        }
    }
}
