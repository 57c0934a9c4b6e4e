import FreshetEventLoop
import FreshetModel
import Synchronization
import TestSupport
import Testing

@testable import FreshetCache

/// The quota is ten bytes, unless a test sets another one.
@Suite("When there is no free space")
struct SpaceTests {
    private let fixture: CacheFixture
    private let removed = RemovedSignals()

    init() throws {
        fixture = try CacheFixture(limit: 10, removed: removed.note)
    }

    private func destination(_ name: String, keep: Int = 5) -> CacheDestination {
        CacheDestination(pipeline: name, file: "\(name).json", keep: keep)
    }

    private func commit(_ text: String, _ name: String, keep: Int = 5, at seconds: Int64) throws {
        try fixture.commit(text, to: destination(name, keep: keep), at: seconds)
    }

    private func kept(_ name: String) throws -> [Int64] {
        try fixture.cache.generations.history(name).filter(\.isKept).map(\.number).sorted()
    }

    private func files(_ name: String) throws -> [Int64] {
        try fixture.names("generations/\(name)").compactMap { StoredContent(name: $0)?.number }.sorted()
    }

    @Test("the oldest of all generations are removed, never a current one")
    func oldestFirst() throws {
        try commit("a1", "a", at: 1)
        try commit("b1", "b", at: 2)
        try commit("b2", "b", at: 3)
        try commit("a2", "a", at: 4)
        try commit("a3", "a", at: 5)
        #expect(fixture.cache.space.usage.bytes == 10)
        try commit("b3", "b", at: 6)
        #expect(try kept("a") == [2, 3])
        #expect(try kept("b") == [1, 2, 3])
        try commit("b4", "b", at: 7)
        #expect(try kept("a") == [2, 3])
        #expect(try kept("b") == [2, 3, 4])
        #expect(try files("a") == [2, 3])
        #expect(try files("b") == [2, 3, 4])
        #expect(fixture.cache.space.usage.bytes == 10)
        #expect(
            removed.all == [
                RemovedContent(pipeline: "b", items: [.init(pipeline: "a", generation: 1, size: 2)]),
                RemovedContent(pipeline: "b", items: [.init(pipeline: "b", generation: 1, size: 2)]),
            ])
    }

    @Test("rejected content is removed before any generation, the oldest first")
    func rejectedFirst() throws {
        try commit("a1", "a", at: 1)
        try commit("a2", "a", at: 2)
        for (offset, name) in ["r", "s"].enumerated() {
            let pending = try fixture.cache.begin(destination(name))
            try pending.write(Array("no!".utf8))
            _ = try pending.reject(because: "a check", at: WallTime(seconds: 10 - Int64(offset)))
        }
        try commit("a3", "a", at: 3)
        #expect(try fixture.cache.rejections.candidate("s", at: WallTime(seconds: 11)) == nil)
        #expect(try fixture.cache.rejections.candidate("r", at: WallTime(seconds: 11)) != nil)
        #expect(try fixture.names("generations/s") == [])
        #expect(try kept("a") == [1, 2, 3])
        try commit("a44", "a", at: 4)
        #expect(try fixture.cache.rejections.candidate("r", at: WallTime(seconds: 11)) == nil)
        #expect(try kept("a") == [1, 2, 3, 4])
    }

    @Test("new rejected content removes no generation: it is not kept, and earlier rejected content stays")
    func refusalsTakeNothing() throws {
        try commit("a1111", "a", at: 1)
        try commit("a2", "a", at: 2)
        func reject(_ text: String) throws {
            let pending = try fixture.cache.begin(destination("a"))
            try pending.write(Array(text.utf8))
            _ = try pending.reject(because: "a check", at: WallTime(seconds: 3))
        }
        try reject("one")
        #expect(throws: CacheError.overLimit(bytes: 4, kept: 7, limit: 10)) { try reject("four") }
        #expect(try kept("a") == [1, 2])
        #expect(try fixture.cache.rejections.candidate("a", at: WallTime(seconds: 4))?.size == 3)
        #expect(try fixture.names("generations/a").count == 3)
        try reject("two")
        #expect(try fixture.cache.rejections.candidate("a", at: WallTime(seconds: 4))?.size == 3)
        #expect(fixture.cache.space.usage.bytes == 10)
    }

    @Test("content that the commit removes anyway is removed first, so other pipelines lose nothing")
    func ownSurplus() throws {
        try commit("old", "other", at: 1)
        try commit("new", "other", at: 2)
        try commit("a1", "a", keep: 2, at: 3)
        try commit("a2", "a", keep: 2, at: 4)
        #expect(fixture.cache.space.usage.bytes == 10)
        try commit("a3", "a", keep: 2, at: 5)
        #expect(try kept("other") == [1, 2])
        #expect(try kept("a") == [2, 3])
        #expect(removed.all.map(\.items) == [[.init(pipeline: "a", generation: 1, size: 2)]])
    }

    @Test("a pinned generation stays; a commit that cannot fit fails with the numbers, and removes nothing")
    func rejected() throws {
        try commit("pin", "a", at: 1)
        _ = try fixture.cache.generations.pin("a", at: WallTime(seconds: 2))
        try commit("b1", "b", at: 3)
        try commit("b22", "b", at: 4)
        #expect(throws: CacheError.overLimit(bytes: 5, kept: 6, limit: 10)) { try commit("12345", "b", at: 5) }
        #expect(try kept("a") == [1])
        #expect(try kept("b") == [1, 2])
        #expect(removed.all == [])
        #expect(try fixture.reader("b.json") == "b22")
        #expect(try fixture.names("generations/b").count == 2)
        #expect(fixture.cache.space.usage.bytes == 8)
        try commit("1234", "b", at: 5)
        #expect(try kept("b") == [2, 3])
        #expect(
            CacheError.overLimit(bytes: 5, kept: 6, limit: 10).description
                == "the cache is full: the new content has 5 bytes so far, copies and other content that must stay "
                + "have 6, and cache.max-total is 10; raise it in freshet.yaml, or remove pipelines")
    }

    @Test("content that is announced too large is not begun; content that would fit removes nothing yet")
    func announced() throws {
        try commit("a1", "a", at: 1)
        try commit("a2", "a", at: 2)
        #expect(throws: CacheError.overLimit(bytes: 9, kept: 2, limit: 10)) {
            try fixture.cache.begin(destination("b"), expecting: 9)
        }
        #expect(throws: CacheError.overLimit(bytes: .max, kept: 2, limit: 10)) {
            try fixture.cache.begin(destination("b"), expecting: .max)
        }
        try fixture.cache.begin(destination("b"), expecting: 8).discard()
        #expect(try kept("a") == [1, 2])
    }

    @Test("candidates count while they are written, and not after they have ended")
    func candidates() throws {
        try commit("a1", "a", at: 1)
        try commit("a2", "a", at: 2)
        let pending = try fixture.cache.begin(destination("b"))
        try pending.write(Array("123456".utf8))
        #expect(fixture.cache.space.usage.bytes == 10)
        try commit("a3", "a", at: 3)
        #expect(try kept("a") == [2, 3])
        #expect(throws: CacheError.overLimit(bytes: 3, kept: 8, limit: 10)) { try commit("444", "a", at: 4) }
        pending.discard()
        #expect(fixture.cache.space.usage.bytes == 4)
        try commit("444", "a", at: 4)
        #expect(try kept("a") == [2, 3, 4])
    }

    @Test("unchanged content needs no space")
    func unchanged() throws {
        try commit("12345678", "a", at: 1)
        try commit("12345678", "a", at: 2)
        #expect(removed.all == [])
        #expect(fixture.cache.space.usage.bytes == 8)
    }

    @Test("a rollback and an acceptance do not remove their own content")
    func rollback() throws {
        try commit("a1", "a", at: 1)
        try commit("a2", "a", at: 2)
        try commit("a3", "a", at: 3)
        try fixture.cache.space.setQuota(CacheQuota(limit: 6, reserve: .none))
        _ = try fixture.cache.generations.rollBack(destination("a"), to: 1)
        #expect(try fixture.reader("a.json") == "a1")
        #expect(try kept("a") == [1, 3])

        let pending = try fixture.cache.begin(destination("a"))
        try pending.write(Array("ok".utf8))
        _ = try pending.reject(because: "a check", at: WallTime(seconds: 4))
        #expect(fixture.cache.space.usage.bytes == 6)
        _ = try fixture.cache.rejections.accept(destination("a"), at: WallTime(seconds: 5))
        #expect(try fixture.reader("a.json") == "ok")
        #expect(try kept("a") == [1, 4])
        #expect(fixture.cache.space.usage.bytes == 4)
    }

    @Test("a reader that has a generation open reads it to its end")
    func openContent() throws {
        try commit("a1", "a", at: 1)
        try commit("a2", "a", at: 2)
        let reader = FileReader(user: 0, groups: [])
        let open = try #require(try fixture.cache.generations.open(1, of: "a", for: reader))
        try commit("12345678", "b", at: 3)
        #expect(try kept("a") == [2])
        #expect(try open.read(10) == Array("a1".utf8))
        #expect(throws: CacheError.notKept(1, kept: [2])) {
            try fixture.cache.generations.open(1, of: "a", for: reader)
        }
    }

    @Test("a lowered limit takes effect immediately, and at a start, as far as content may be removed")
    func lowered() throws {
        try commit("a1", "a", at: 1)
        try commit("a2", "a", at: 2)
        try commit("a3", "a", at: 3)
        try fixture.cache.space.setQuota(CacheQuota(limit: 5, reserve: .none))
        #expect(try kept("a") == [2, 3])
        #expect(removed.all == [RemovedContent(items: [.init(pipeline: "a", generation: 1, size: 2)])])
        let directory = fixture.directory
        let again = try CacheFixture(try directory.copied(), limit: 1)
        #expect(try again.cache.generations.history("a").filter(\.isKept).map(\.number) == [3])
        #expect(try again.reader("a.json") == "a3")
        #expect(again.cache.space.usage == (bytes: 2, limit: 1))
    }

    @Test("the reserve of free space removes old content too, as far as that is enough")
    func reserve() throws {
        let files = FailingFileSystem()
        files.pretend(total: 1000, used: 0)
        let fixture = try CacheFixture(fileSystem: files, reserve: FreeSpaceReserve(percent: 100, bytes: 100))
        for (number, text) in ["1234567890", "234567890", "34567890"].enumerated() {
            try fixture.commit(text, to: destination("a"), at: Int64(number))
        }
        files.pretend(total: 1000, used: 870)
        // 27 bytes of the cache and 4 of the candidate: 1 too many.
        try fixture.commit("four", to: destination("a"), at: 4)
        #expect(try fixture.cache.generations.history("a").filter(\.isKept).map(\.number) == [4, 3, 2])
        files.pretend(total: 1000, used: 950)
        let error = #expect(throws: CacheError.self) { try fixture.commit("5", to: destination("a"), at: 5) }
        guard case .noSpace(_, _, reserve: 100) = error else {
            Issue.record("\(String(describing: error))")
            return
        }
        #expect(try fixture.cache.generations.history("a").filter(\.isKept).map(\.number) == [4, 3, 2])
    }

    @Test("if removals do not free space, only as much is removed as would have been enough")
    func late() throws {
        let files = FailingFileSystem()
        files.pretend(total: 1000, used: 0)
        let fixture = try CacheFixture(
            fileSystem: files, reserve: FreeSpaceReserve(percent: 100, bytes: 100), removed: removed.note)
        for number in 1...5 { try fixture.commit("0123456789\(number)", to: destination("a"), at: Int64(number)) }
        // 55 bytes of the cache and 11 of the candidate: 6 too many.
        files.pretend(total: 1000, used: 840, isLate: true)
        let error = #expect(throws: CacheError.self) { try fixture.commit("01234567896", to: destination("a"), at: 6) }
        guard case .noSpace(_, available: 94, reserve: 100) = error else {
            Issue.record("\(String(describing: error))")
            return
        }
        #expect(removed.all.map(\.items) == [[.init(pipeline: "a", generation: 1, size: 11)]])
        #expect(try fixture.cache.generations.history("a").filter(\.isKept).map(\.number) == [5, 4, 3, 2])
        #expect(try fixture.reader("a.json") == "01234567895")
    }

    @Test("the directory of several files leaves the reserve free too")
    func directory() throws {
        let size = UInt64(SeenSet.bundle("one").utf8.count)
        let apart = SeenSet.of("one").files.values.reduce(0) { $0 + UInt64($1.utf8.count) }
        for isAnnounced in [true, false] {
            let files = FailingFileSystem()
            let fixture = try CacheFixture(fileSystem: files, reserve: FreeSpaceReserve(percent: 100, bytes: 1000))
            // The content itself would fit, but its directory would not.
            files.pretend(total: 10_000, used: 9000 - size - apart + 1)
            let error = #expect(throws: CacheError.self) {
                let pending = try fixture.cache.begin(.catalogue, expecting: isAnnounced ? size : nil)
                try pending.write(Array(SeenSet.bundle("one").utf8))
                _ = try pending.commit(at: WallTime(seconds: 1))
            }
            guard case .noSpaceFor(let bytes, _, _, reserve: 1000) = error else {
                Issue.record("\(String(describing: error))")
                continue
            }
            #expect(bytes == (isAnnounced ? 2 * size : size))
            #expect(try fixture.names("sets").isEmpty && fixture.names("current").isEmpty)
            files.pretend(total: 10_000, used: 9000 - 2 * size)
            try fixture.commitSet("one")
            try fixture.checkSet(["one"], "")
        }
    }

    @Test("the sum does not include content that was not committed")
    func failedCommit() throws {
        try commit("a1", "a", at: 1)
        let isBroken = { (index: borrowing CacheIndex) throws(SQLiteError) in
            // COMMIT finds a row that belongs to no pipeline.
            try index.database.execute(
                """
                CREATE TABLE late (pipeline INTEGER REFERENCES pipelines(id) DEFERRABLE INITIALLY DEFERRED);
                CREATE TEMP TRIGGER late_came AFTER INSERT ON main.generations BEGIN INSERT INTO late VALUES (-1); END;
                CREATE TEMP TRIGGER late_refused AFTER INSERT ON main.rejected BEGIN INSERT INTO late VALUES (-1); END;
                """)
        }
        try fixture.cache.context.withIndex(isBroken)
        #expect(throws: CacheError.self) { try commit("a2", "a", at: 2) }
        #expect(fixture.cache.space.usage.bytes == 2)
        #expect(throws: CacheError.self) {
            let pending = try fixture.cache.begin(destination("a"))
            try pending.write(Array("no!".utf8))
            _ = try pending.reject(because: "a check", at: WallTime(seconds: 3))
        }
        #expect(fixture.cache.space.usage.bytes == 2)
        #expect(try fixture.reader("a.json") == "a2")
        try fixture.cache.context.withIndex { (index) throws(SQLiteError) in
            try index.database.execute("DROP TRIGGER late_came; DROP TRIGGER late_refused")
        }
        // The index has followed the published file.
        #expect(try fixture.cache.current("a")?.number == 2)
        #expect(fixture.cache.space.usage.bytes == 4)
    }

    @Test("the sum is that of the files after any operation, and is the same after a start")
    func sum() throws {
        try fixture.cache.space.setQuota(CacheQuota(reserve: .none))
        for number in 0..<7 { try commit("content \(number)", "a", keep: 3, at: Int64(number)) }
        try commit("other", "b", at: 9)
        _ = try fixture.cache.generations.rollBack(destination("a"), to: 6)
        let pending = try fixture.cache.begin(destination("b"))
        try pending.write(Array("refused".utf8))
        _ = try pending.reject(because: "a check", at: WallTime(seconds: 10))
        try commit("refused", "b", at: 11)
        let system = LinuxFileSystem()
        var bytes: Int64 = 0
        for name in ["a", "b"] {
            for file in try fixture.names("generations/\(name)") {
                bytes += try #require(try system.status(fixture.directory.cache + "/generations/\(name)/\(file)"))
                    .identity.size
            }
        }
        #expect(fixture.cache.space.usage == (bytes: bytes, limit: nil))
        let again = try CacheFixture(try fixture.directory.copied())
        #expect(again.cache.space.usage.bytes == bytes)
        let rebuilt = try fixture.directory.copied()
        TemporaryDirectory.remove(rebuilt.state)
        #expect(try CacheFixture(rebuilt).cache.space.usage.bytes == bytes - Int64("content 6".utf8.count))
    }

    @Test(
        "commits wait for pipelines that are busy with removable content, for a limited time", arguments: [true, false])
    func busy(comesToAnEnd: Bool) throws {
        let pool = WorkerPool(threads: 1)
        let (held, end, ended) = (Latch(), Latch(), Latch())
        let attempts = Mutex<[Int]>([])
        let fixture = try CacheFixture(limit: 10) { attempt in
            attempts.withLock { $0.append(attempt) }
            guard comesToAnEnd else { return attempt < 2 }
            end.open()
            return ended.wait(for: testTimeout)
        } removed: { [removed] in
            removed.note($0)
        }
        try fixture.commit("1234", to: destination("b"), at: 1)
        try fixture.commit("12345", to: destination("b"), at: 2)
        let cache = fixture.cache
        pool.perform("commit") {
            cache.context.entry("b").withLock { _ in
                held.open()
                _ = end.wait(for: testTimeout)
            }
            ended.open()
        }
        try #require(held.wait(for: testTimeout))
        if comesToAnEnd {
            try fixture.commit("ab", to: destination("a"), at: 3)
            #expect(attempts.withLock { $0 } == [0])
            #expect(removed.all.map(\.items) == [[.init(pipeline: "b", generation: 1, size: 4)]])
        } else {
            #expect(throws: CacheError.overLimit(bytes: 2, kept: 9, limit: 10)) {
                try fixture.commit("ab", to: destination("a"), at: 3)
            }
            #expect(attempts.withLock { $0 } == [0, 1, 2])
            #expect(removed.all == [])
            end.open()
        }
    }

    @Test("a commit makes no additional system calls if there is enough space")
    func calls() throws {
        let files = FailingFileSystem()
        let fixture = try CacheFixture(fileSystem: files, limit: 1000)
        try fixture.commit("old")
        files.arm(.nothing)
        try fixture.commit("new")
        #expect(files.calls.count == 14)
    }
}

/// The content that was removed to free space.
private final class RemovedSignals: Sendable {
    private let news = Mutex<[RemovedContent]>([])
    var all: [RemovedContent] { news.withLock { $0 } }
    var note: @Sendable (RemovedContent) -> Void { { removed in self.news.withLock { $0.append(removed) } } }
}
