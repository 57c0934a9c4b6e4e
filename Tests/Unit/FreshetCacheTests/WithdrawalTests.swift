import FreshetEventLoop
import FreshetModel
import Glibc
import Synchronization
import TestSupport
import Testing

@testable import FreshetCache

@Suite("A withdrawn copy")
struct WithdrawalTests {
    private static let url = "https://example.com/jwks"

    /// A cache with a withdrawn copy, "new" of generation 2; "old" is kept too.
    private func withdrawn(_ fileSystem: any FileSystem = LinuxFileSystem()) throws -> CacheFixture {
        let fixture = try CacheFixture(fileSystem: fileSystem)
        try fixture.commit("old", validators: [.tag("old")], at: 10)
        try fixture.commit("new", validators: [.tag("new")], at: 20)
        #expect(try fixture.cache.withdrawals.withdraw("jwks", at: WallTime(seconds: 100)).kept?.number == 2)
        return fixture
    }

    /// Checks that readers find no file, and that the content is kept.
    private func checkWithdrawn(_ fixture: CacheFixture) throws {
        #expect(try fixture.names("current") == [])
        #expect(try fixture.cache.current("jwks") == nil)
        let memory = try #require(try fixture.cache.records.memory("jwks", key: "k"))
        #expect(memory.generation?.number == 2)
        #expect(memory.generation?.withdrawnSince == WallTime(seconds: 100))
        #expect(memory.lastCheck == WallTime(seconds: 20))
        #expect(try fixture.cache.validators("jwks", boundTo: Self.url) == .tag("new"))
        #expect(try fixture.cache.content(of: "jwks", limit: 100) == Array("new".utf8))
        #expect(try fixture.cache.generations.history("jwks").map(\.isKept) == [true, true])
    }

    @Test("is not readable, and its content, its validators and its age are kept, also after a start")
    func keeps() throws {
        let fixture = try withdrawn()
        try checkWithdrawn(fixture)
        let directory = fixture.directory
        _ = consume fixture
        let again = try CacheFixture(directory)
        #expect(again.report == RecoveryReport(index: .opened))
        try checkWithdrawn(again)
        #expect(
            try again.cache.records.memories(key: "k").states["jwks"]?.generation?.withdrawnSince
                == WallTime(seconds: 100))
    }

    @Test("that is damaged is removed, and no content is kept that could be published again")
    func notWhole() throws {
        let fixture = try CacheFixture()
        try fixture.commit("new", at: 20)
        #expect(try fixture.cache.withdrawals.keepsCopy("jwks"))
        try TemporaryDirectory.write(Array("bad".utf8), to: fixture.directory.cache + "/current/jwks.json")
        guard case .damaged(let lost) = try fixture.cache.withdrawals.withdraw("jwks", at: WallTime(seconds: 100))
        else {
            Issue.record("the damage was not reported")
            return
        }
        #expect(lost.number == 1)
        #expect(lost.withdrawnSince == WallTime(seconds: 100))
        #expect(try fixture.names("current") == [])
        #expect(try !fixture.cache.withdrawals.keepsCopy("jwks"))
    }

    @Test("is withdrawn without reading its content again, and with few system calls")
    func calls() throws {
        let files = FailingFileSystem()
        let fixture = try CacheFixture(fileSystem: files)
        try fixture.commit("new")
        files.arm(.nothing)
        _ = try fixture.cache.withdrawals.withdraw("jwks", at: WallTime(seconds: 100))
        #expect(files.calls == ["lstat", "lstat", "unlink", "opendir", "fsync", "lstat", "lstat"])
        files.arm(.nothing)
        _ = try fixture.cache.validators("jwks", boundTo: Self.url)
        #expect(files.calls == ["lstat"])
    }

    @Test("shares the flush with others, and the index is free meanwhile", .hangLimit)
    func together() throws {
        let fixture = try CacheFixture()
        let (cache, count) = (fixture.cache, 12)
        let destinations = (0..<count).map { CacheDestination(pipeline: "p\($0)", file: "p\($0)") }
        for destination in destinations { try fixture.commit("content", to: destination) }
        let pool = WorkerPool(threads: count + 1)
        let done = Mutex<[WithdrawalOutcome?]>([])
        for isBack in [false, true] {
            done.withLock { $0 = [] }
            let (began, end) = (Latch(), Latch())
            pool.perform("disk") {
                try? cache.context.index.flush.perform { () throws(FreshetCache.SystemCallError) in
                    began.open()
                    _ = end.wait(for: testTimeout)
                }
            }
            try #require(began.wait(for: testTimeout))
            for destination in destinations {
                pool.perform("one") {
                    let outcome: WithdrawalOutcome? =
                        isBack
                        ? (try? cache.withdrawals.putBack(destination)).map(WithdrawalOutcome.withdrawn)
                        : try? cache.withdrawals.withdraw(destination.pipeline, at: WallTime(seconds: 2000))
                    done.withLock { $0.append(outcome) }
                }
            }
            #expect(eventually { cache.context.index.flush.waiting == count })
            // Recorded in the index; the file is removed only after the flush.
            let rows = try cache.context.withIndex { (index) throws(SQLiteError) in try index.pipelines.all() }
            #expect(rows.count { ($0.withdrawnAt == nil) == isBack } == count)
            #expect(try fixture.names("current").count == (isBack ? 0 : count))
            end.open()
            #expect(eventually { done.withLock { $0.count } == count })
            #expect(done.withLock { $0 }.allSatisfy { $0?.kept != nil })
            #expect(try fixture.names("current").count == (isBack ? count : 0))
        }
    }

    @Test("is published again as the same generation in the same file after its origin confirms it")
    func confirmed() throws {
        let fixture = try withdrawn()
        let stored = try #require(try fixture.names("generations/jwks").last)
        let system = LinuxFileSystem()
        let content = fixture.directory.cache + "/generations/jwks/" + stored
        let inode = try #require(try system.status(content)).identity.inode
        let noted = try fixture.cache.records.recordUnchanged("jwks", asked: .tag("new"), at: WallTime(seconds: 200))
        #expect(noted?.withdrawnSince == WallTime(seconds: 100))
        #expect(try fixture.readerIfAny() == nil)
        let back = try #require(try fixture.cache.withdrawals.putBack(.jwks))
        #expect(back.number == 2)
        #expect(back.withdrawnSince == nil)
        #expect(back.revision > noted?.revision ?? 0)
        #expect(try fixture.reader() == "new")
        #expect(try system.status(fixture.directory.cache + "/current/jwks.json")?.identity.inode == inode)
        #expect(try fixture.names("generations/jwks").count == 2)
        #expect(try fixture.cache.current("jwks")?.number == 2)
        #expect(try fixture.cache.validators("jwks", boundTo: Self.url) == .tag("new"))
        // A second call has nothing to do.
        #expect(try fixture.cache.withdrawals.putBack(.jwks)?.number == 2)
        let directory = fixture.directory
        _ = consume fixture
        #expect(try CacheFixture(directory).report == RecoveryReport(index: .opened))
    }

    @Test("stays the same generation if the same content is fetched, and is replaced by other content")
    func fetched() throws {
        let fixture = try withdrawn()
        guard case .restored(let same) = try fixture.commit("new", at: 200) else {
            Issue.record("the same content is not new")
            return
        }
        #expect(same.number == 2)
        #expect(same.withdrawnSince == nil)
        #expect(try fixture.reader() == "new")
        _ = try fixture.cache.withdrawals.withdraw("jwks", at: WallTime(seconds: 300))
        #expect(try fixture.commit("newer", at: 400).generation.number == 3)
        #expect(try fixture.reader() == "newer")
        #expect(try fixture.cache.records.memory("jwks", key: "k")?.generation?.withdrawnSince == nil)
    }

    @Test("is not published again by a further page")
    func page() throws {
        let fixture = try withdrawn()
        let outcome = try fixture.commit("new and more", isCheck: false, at: 200)
        #expect(outcome.generation.number == 2)
        try checkWithdrawn(fixture)
    }

    @Test("is published again by a rollback to it, and replaced by a rollback to an older one or an acceptance")
    func operators() throws {
        let fixture = try withdrawn()
        let outcome = try fixture.cache.generations.rollBack(.jwks, to: nil)
        #expect(outcome.generation.number == 1)
        #expect(try fixture.reader() == "old")
        _ = try fixture.cache.withdrawals.withdraw("jwks", at: WallTime(seconds: 300))
        #expect(try fixture.readerIfAny() == nil)
        #expect(try fixture.cache.generations.rollBack(.jwks, to: 1).generation.number == 1)
        #expect(try fixture.reader() == "old")
        _ = try fixture.cache.withdrawals.withdraw("jwks", at: WallTime(seconds: 400))
        try fixture.reject("refused", at: 410)
        #expect(try fixture.cache.rejections.accept(.jwks, at: WallTime(seconds: 500)).generation.number == 3)
        #expect(try fixture.reader() == "refused")
        #expect(try fixture.cache.records.memory("jwks", key: "k")?.generation?.withdrawnSince == nil)
    }

    @Test("from before a rollback is published again if the origin confirms it")
    func rolledBack() throws {
        let fixture = try CacheFixture()
        try fixture.commit("old", validators: [.tag("old")], at: 10)
        try fixture.commit("new", validators: [.tag("new")], at: 20)
        _ = try fixture.cache.generations.rollBack(.jwks, to: 1)
        _ = try fixture.cache.withdrawals.withdraw("jwks", at: WallTime(seconds: 100))
        #expect(try fixture.cache.validators("jwks", boundTo: Self.url) == .tag("new"))
        guard case .declined(let shown, _) = try fixture.commit("new", at: 200) else {
            Issue.record("content from before a rollback must not come back by itself")
            return
        }
        #expect(shown.number == 1)
        #expect(try fixture.reader() == "old")
        #expect(try fixture.cache.current("jwks")?.withdrawnSince == nil)
    }

    @Test("results neither from a pinned copy nor from one that turns out to be young")
    func spared() throws {
        let fixture = try CacheFixture()
        #expect(try fixture.cache.withdrawals.withdraw("jwks", at: WallTime(seconds: 1)) == .left)
        try fixture.commit("new")
        #expect(try fixture.cache.withdrawals.withdraw("jwks", at: WallTime(seconds: 1), unless: { true }) == .left)
        #expect(try fixture.reader() == "new")
        _ = try fixture.cache.generations.pin("jwks", at: WallTime(seconds: 2))
        #expect(try fixture.cache.withdrawals.withdraw("jwks", at: WallTime(seconds: 3)) == .left)
        #expect(try fixture.reader() == "new")
        _ = try fixture.cache.generations.unpin("jwks")
        #expect(try fixture.cache.withdrawals.withdraw("jwks", at: WallTime(seconds: 4)).kept?.number == 1)
        #expect(throws: CacheError.nothingPublished) {
            try fixture.cache.generations.pin("jwks", at: WallTime(seconds: 5))
        }
    }

    @Test("is not removed to free space or as a surplus generation, and is counted")
    func quota() throws {
        let fixture = try withdrawn()
        fixture.cache.context.quota.withLock { $0.limit = 3 }
        try fixture.cache.space.applyLimit()
        #expect(try fixture.cache.generations.history("jwks").map(\.isKept) == [true, false])
        #expect(fixture.cache.space.usage.bytes == 3)
        #expect(try fixture.cache.withdrawals.putBack(.jwks)?.number == 2)
        #expect(try fixture.reader() == "new")
    }

    @Test("has the configured mode when it is published again; until then former readers can read it")
    func access() throws {
        let fixture = try withdrawn()
        let nobody = FileReader(user: 4_000_000, groups: [])
        #expect(chmod(fixture.directory.path, 0o755) == 0)
        #expect(try fixture.cache.generations.open(2, of: "jwks", for: nobody) != nil)
        var closed = CacheDestination.jwks
        closed.mode = 0o600
        try fixture.cache.setAccess(closed)
        #expect(try fixture.cache.generations.open(2, of: "jwks", for: nobody) == nil)
        #expect(try fixture.cache.generations.open(2, of: "jwks", for: FileReader(user: geteuid(), groups: [])) != nil)
        closed.mode = 0o640
        _ = try fixture.cache.withdrawals.putBack(closed)
        #expect(try TemporaryDirectory.mode(fixture.directory.cache + "/current/jwks.json") == 0o640)
    }

    @Test("whose content is damaged is fetched again, and no older generation takes its place")
    func damaged() throws {
        let fixture = try withdrawn()
        let stored = try #require(try fixture.names("generations/jwks").last)
        let content = fixture.directory.cache + "/generations/jwks/" + stored
        try TemporaryDirectory.write(Array("bad".utf8), to: content)
        #expect(try fixture.cache.validators("jwks", boundTo: Self.url) == nil)
        #expect(try fixture.cache.withdrawals.putBack(.jwks) == nil)
        #expect(try fixture.cache.records.memory("jwks", key: "k")?.generation == nil)
        let found = try fixture.cache.checker.examine("jwks", repairs: true)
        #expect(found.findings.map(\.kind) == [.contentDamaged])
        #expect(found.findings.map(\.isRepaired) == [true])
        #expect(try fixture.readerIfAny() == nil)
        let directory = fixture.directory
        _ = consume fixture
        let again = try CacheFixture(directory)
        #expect(again.report == RecoveryReport(index: .opened))
        #expect(try again.readerIfAny() == nil)
        #expect(try again.commit("newer", at: 300).generation.number == 3)
        #expect(try again.reader() == "newer")
    }

    @Test("whose content went missing is reported at the start, and no older generation takes its place")
    func gone() throws {
        let fixture = try withdrawn()
        let directory = fixture.directory
        let stored = try #require(try fixture.names("generations/jwks").last)
        _ = consume fixture
        #expect(unlink(directory.cache + "/generations/jwks/" + stored) == 0)
        let again = try CacheFixture(directory)
        #expect(again.report.pipelines.first?.repairs == [.withheld, .forgotten(2)])
        #expect(try again.readerIfAny() == nil)
        #expect(try again.cache.generations.rollBack(.jwks, to: nil).generation.number == 1)
        #expect(try again.reader() == "old")
    }

    @Test("is not an error in an examination, and no repair publishes it; a file in its place is an error")
    func examined() throws {
        let fixture = try withdrawn()
        #expect(try fixture.cache.checker.examine("jwks", repairs: true).findings == [])
        #expect(try fixture.cache.checker.examineStrays(repairs: true).findings == [])
        try checkWithdrawn(fixture)
        let path = fixture.directory.cache + "/current/jwks.json"
        try TemporaryDirectory.write(Array("somebody's".utf8), to: path)
        let found = try fixture.cache.checker.examine("jwks", repairs: true)
        #expect(found.findings.map(\.kind) == [.copyDamaged])
        #expect(found.findings.first?.generation == nil)
        #expect(found.findings.map(\.isRepaired) == [true])
        try checkWithdrawn(fixture)
    }

    @Test("is removed at the start if a backup restored it, and so is a foreign file in its place")
    func start() throws {
        for text in ["new", "somebody's"] {
            let fixture = try withdrawn()
            let directory = fixture.directory
            _ = consume fixture
            try TemporaryDirectory.write(Array(text.utf8), to: directory.cache + "/current/jwks.json")
            let again = try CacheFixture(directory)
            #expect(again.report.pipelines.first?.repairs == [.hidden])
            try checkWithdrawn(again)
        }
    }

    @Test("of several files has neither link nor stamp, and both are restored")
    func several() throws {
        let fixture = try CacheFixture()
        try fixture.commitSet("new", at: 20)
        _ = try fixture.cache.withdrawals.withdraw("shop", at: WallTime(seconds: 100))
        #expect(try fixture.names("current") == [])
        try fixture.checkSet([nil], "withdrawn")
        let directory = fixture.directory
        _ = consume fixture
        let again = try CacheFixture(directory)
        #expect(again.report == RecoveryReport(index: .opened))
        try again.checkSet([nil], "after a start")
        #expect(
            try again.cache.records.memories(key: "k").states["shop"]?.generation?.withdrawnSince
                == WallTime(seconds: 100))
        #expect(try again.cache.withdrawals.putBack(.catalogue)?.directory == directory.cache + "/current/catalogue")
        try again.checkSet(["new"], "put back")
    }

    @Test("of several files is published again with directories that were removed")
    func severalAnew() throws {
        let fixture = try CacheFixture()
        try fixture.commitSet("new", at: 20)
        _ = try fixture.cache.withdrawals.withdraw("shop", at: WallTime(seconds: 100))
        TemporaryDirectory.remove(fixture.directory.cache + "/sets")
        #expect(try fixture.cache.withdrawals.putBack(.catalogue)?.number == 1)
        try fixture.checkSet(["new"], "put back")
    }

    @Test("is removed with all other content when its pipeline is pruned")
    func pruned() throws {
        let fixture = try withdrawn()
        #expect(try fixture.cache.pruner.prune("jwks")?.generations == 2)
        #expect(try fixture.names("generations") == [])
        #expect(try fixture.cache.records.memory("jwks", key: "k") == nil)
    }

    @Test("does not occur in an index of an earlier format")
    func migration() throws {
        let directory = try TemporaryDirectory.index(ofVersion: 13) { (database) throws(SQLiteError) in
            try database.execute("INSERT INTO pipelines (name, file) VALUES ('jwks', 'jwks.json')")
            try database.execute("INSERT INTO hooks (pipeline, hook) VALUES (1, 'a')")
        }
        let index = try CacheIndex(path: directory.path + "/index.sqlite", checksPages: true)
        #expect(try index.pipelines.row("jwks")?.withdrawnAt == nil)
        #expect(try index.hooks.all().map(\.record) == [StoredHookState()])
    }

    @Test("is complete, and so is its end, if the index has no space for the identity of the file")
    func fullIndex() throws {
        let fixture = try CacheFixture()
        try fixture.commit("one")
        // The transaction that decides changes another table.
        try fixture.cache.context.fill(["generations"])
        guard case .withdrawn = try fixture.cache.withdrawals.withdraw("jwks", at: WallTime(seconds: 2000)) else {
            Issue.record("not withdrawn")
            return
        }
        #expect(try fixture.readerIfAny() == nil)
        #expect(try fixture.cache.withdrawals.putBack(.jwks)?.number == 1)
        #expect(try fixture.reader() == "one")
        try fixture.cache.context.free()
        #expect(try fixture.cache.current("jwks")?.withdrawnSince == nil)
    }
}
