import FreshetModel
import Synchronization
import TestSupport
import Testing

@testable import FreshetCache

/// The pipelines whose records could not be stored.
private final class LostRecords: Sendable {
    let pipelines = Mutex<[String]>([])
    let errors = Mutex<[String]>([])
}

@Suite("Records that wait for the index")
struct DeferredRecordsTests {
    private func run(_ number: UInt64, of pipeline: String = "jwks") -> RunRecord {
        RunRecord(
            pipeline: pipeline, number: number, causes: "timer", started: WallTime(seconds: Int64(number)),
            ended: WallTime(seconds: Int64(number) + 1), outcome: .unchanged)
    }

    private func numbers(_ fixture: CacheFixture, of pipeline: String = "jwks") throws -> [UInt64] {
        try fixture.cache.records.runs(pipeline).map(\.number)
    }

    private func cache(in directory: TemporaryDirectory, _ lost: LostRecords) throws -> LocalCache {
        try LocalCache.open(
            cacheDirectory: directory.cache, stateDirectory: directory.state, reserve: .none,
            unrecorded: { pipeline, error in
                lost.pipelines.withLock { $0.append(pipeline) }
                lost.errors.withLock { $0.append(error.description) }
            }
        ).cache
    }

    @Test("are found by every reader, as if they had been stored immediately")
    func areFound() throws {
        let fixture = try CacheFixture()
        try fixture.commit("one", validators: [.tag("a")], at: 10)
        #expect(fixture.cache.records.append(run(1)) == 1)
        #expect(fixture.cache.records.append(run(2)) == 2)
        #expect(
            fixture.cache.checks.recordUnchanged(
                "jwks", asked: .tag("a"), validators: .tag("b"), expires: WallTime(seconds: 99),
                at: WallTime(seconds: 20))
                == 3)
        #expect(try numbers(fixture) == [2, 1])
        let expected = RefreshState(
            lastAttempt: WallTime(seconds: 20), lastSuccess: WallTime(seconds: 20), retryAfter: nil,
            expires: WallTime(seconds: 99))
        #expect(try fixture.cache.records.refreshState("jwks") == expected)
        #expect(try fixture.cache.validators("jwks", boundTo: "https://example.com/jwks") == .tag("b"))
        #expect(fixture.cache.context.index.deferred.take().isEmpty)
    }

    @Test("are stored before a later change, in its transaction")
    func order() throws {
        let fixture = try CacheFixture()
        try fixture.commit("one", validators: [.tag("a")], at: 10)
        _ = fixture.cache.checks.recordUnchanged(
            "jwks", asked: .tag("a"), validators: nil, expires: nil, at: WallTime(seconds: 20))
        try fixture.commit("two", at: 30)
        #expect(try fixture.cache.records.refreshState("jwks").lastSuccess == WallTime(seconds: 30))
    }

    @Test("survive a change that fails")
    func failingChange() throws {
        let fixture = try CacheFixture()
        let later = fixture
        _ = later.cache.records.append(run(1))
        #expect(throws: CacheError.self) {
            try later.cache.context.transaction { (_) throws(SQLiteError) -> Int in
                throw SQLiteError(code: 1, message: "no", during: "a test")
            }
        }
        #expect(try numbers(fixture) == [1])
    }

    @Test(
        "survive another one that cannot be stored, and so does the change that takes them along",
        arguments: [false, true])
    func badRecord(byTransaction: Bool) throws {
        let lost = LostRecords()
        let directory = try TemporaryDirectory.forCache()
        let cache = try cache(in: directory, lost)
        try cache.context.withIndex { (index) throws(SQLiteError) in
            try index.database.execute(
                """
                CREATE TEMP TRIGGER no_second BEFORE INSERT ON main.runs WHEN new.number = 2
                BEGIN SELECT raise(ABORT, 'no'); END
                """)
        }
        for record in [run(1), run(2, of: "other"), run(3)] { _ = cache.records.append(record) }
        if byTransaction {
            #expect(throws: Never.self) { try cache.records.setState("jwks", key: "k", to: [1]) }
            #expect(try cache.records.state("jwks", key: "k") == [1])
        }
        #expect(try cache.records.runs("jwks").map(\.number) == [3, 1])
        #expect(try cache.records.runs("other").isEmpty)
        #expect(lost.pipelines.withLock { $0 } == ["other"])
    }

    @Test("are stored at the end, and lost if the process is killed")
    func storedAtEnd() throws {
        let fixture = try CacheFixture()
        _ = fixture.cache.records.append(run(1))
        fixture.cache.flush()
        _ = fixture.cache.records.append(run(2))
        let killed = try CacheFixture(try fixture.directory.copied())
        #expect(try numbers(killed) == [1])
    }

    @Test("are bounded: a further one is turned away until they are stored")
    func bound() throws {
        let fixture = try CacheFixture()
        for number in 1...CacheLimits.deferredRecords {
            #expect(fixture.cache.records.append(run(UInt64(number))) == number)
        }
        #expect(fixture.cache.records.append(run(1)) == nil)
        try fixture.commit("one", validators: [.tag("a")])
        _ = fixture.cache.records.append(run(UInt64(CacheLimits.deferredRecords) + 1))
        #expect(try numbers(fixture).first == UInt64(CacheLimits.deferredRecords) + 1)
        #expect(try numbers(fixture).count == CacheLimits.runsPerPipeline)
    }

    @Test("of old runs are deleted some at a time, and readers see only the newest")
    func deletion() throws {
        let fixture = try CacheFixture()
        func rows() throws -> Int64? {
            try fixture.cache.context.withIndex { (index) throws(SQLiteError) in
                try index.database.row("SELECT count(*) FROM runs") { $0.integer(0) }
            }
        }
        let limit = UInt64(CacheLimits.runsPerPipeline)
        for number in 1...limit + 50 {
            _ = fixture.cache.records.append(run(number))
            let most = Int64(limit + RunTable.batch - 1)
            #expect(try rows() ?? 0 <= most)
            #expect(try numbers(fixture) == (max(limit, number) - limit + 1...number).reversed())
            #expect(try fixture.cache.records.runs("jwks", limit: 500).count == min(number, limit))
        }
    }

    @Test("of several pipelines, with checks and runs in any order, are stored with their pipelines")
    func severalPipelines() throws {
        let fixture = try CacheFixture()
        let digest = try fixture.commit("one", validators: [.tag("a")]).generation.digest
        let check = ConfirmedCheck(pipeline: "jwks", digest: digest, at: WallTime(seconds: 2000))
        let deferred = fixture.cache.context.index.deferred
        let records: [DeferredRecords.Record] = [
            .run(run(1, of: "other")), .check(check), .run(run(1)), .run(run(2, of: "other")), .run(run(2)),
        ]
        for record in records { _ = deferred.append(record) }
        #expect(try numbers(fixture) == [2, 1])
        #expect(try numbers(fixture, of: "other") == [2, 1])
        #expect(try fixture.cache.records.refreshState("jwks").lastSuccess == WallTime(seconds: 2000))
    }

    @Test("are stored on request, which also removes rejected content whose time is over")
    func storing() throws {
        let fixture = try CacheFixture()
        try fixture.commit("one", at: 10)
        try fixture.reject("bad", at: 20)
        let end = WallTime(seconds: 20).advanced(by: CacheLimits.rejectedAge)
        try fixture.cache.records.storeDeferred(at: WallTime(nanoseconds: end.nanoseconds - 1))
        #expect(
            try fixture.cache.context.withIndex { (index) throws(SQLiteError) in try index.rejected.all().count } == 1)
        try fixture.cache.records.storeDeferred(at: end)
        #expect(
            try fixture.cache.context.withIndex { (index) throws(SQLiteError) in try index.rejected.all().count } == 0)
        #expect(try fixture.names("generations/jwks").count == 1)
    }

    @Test("go on waiting while another program has locked the index, and cost its readers nothing")
    func lockedIndex() throws {
        let lost = LostRecords()
        let directory = try TemporaryDirectory.forCache()
        let cache = try cache(in: directory, lost)
        // Otherwise each attempt takes five seconds.
        try cache.context.withIndex { (index) throws(SQLiteError) in
            try index.database.execute("PRAGMA busy_timeout = 0")
        }
        for number in 1...3 { _ = cache.records.append(run(UInt64(number))) }
        let other = try SQLiteDatabase(path: directory.state + "/index.sqlite", busyTimeout: 0)
        try other.begin()
        #expect(try cache.records.runs("jwks").isEmpty)
        #expect(try cache.records.storeDeferred(at: WallTime(seconds: 1)) == (3, true))
        #expect(throws: CacheError.self) { try cache.records.setState("jwks", key: "k", to: [1]) }
        #expect(cache.context.index.deferred.count == 3)
        try other.commit()
        _ = cache.records.append(run(4))
        // A writer does not wait until the readers try again.
        try cache.records.setState("jwks", key: "k", to: [1])
        #expect(try cache.records.runs("jwks").map(\.number) == [4, 3, 2, 1])
        #expect(lost.pipelines.withLock { $0.isEmpty })
        _ = cache.records.append(run(5))
        try other.begin()
        cache.flush()
        #expect(lost.pipelines.withLock { $0 } == ["jwks"])
    }

    @Test("go on waiting while there is no space for the index, and no change of a hook is stored after a later one")
    func fullIndex() throws {
        let lost = LostRecords()
        let directory = try TemporaryDirectory.forCache()
        let cache = try cache(in: directory, lost)
        let fixture = CacheFixture(of: cache, in: directory)
        try fixture.commit("one", validators: [.tag("a")], at: 10)
        _ = try cache.records.assignHooks([PipelineHooks(pipeline: "jwks", hooks: ["a"], notified: nil)])
        try cache.context.fill(["runs", "hooks", "pipelines"])
        for number in 1...3 { _ = cache.records.append(run(UInt64(number))) }
        let confirmed = cache.checks.recordUnchanged(
            "jwks", asked: .tag("a"), validators: nil, expires: nil, at: WallTime(seconds: 20))
        #expect(confirmed == 4)
        #expect(try cache.records.storeDeferred(at: WallTime(seconds: 1)) == (4, true))
        #expect(try cache.records.runs("jwks").isEmpty)
        #expect(lost.pipelines.withLock { $0 } == ["jwks"])
        #expect(lost.errors.withLock { $0 }.first?.hasSuffix("wait in memory") == true)
        // A change for which there is space does not wait for runs and checks.
        try cache.records.setState("jwks", key: "k", to: [1])
        #expect(cache.records.waiting == 4)
        // It waits for a hook.
        let identity = GenerationIdentity(number: 1, digest: try ContentDigest(of: Array("one".utf8)))
        try cache.records.record(StoredHookState(notified: identity), of: "a", of: "jwks")
        #expect(cache.records.waiting == 5)
        #expect(throws: CacheError.self) { try cache.records.setState("jwks", key: "k", to: [2]) }
        #expect(try cache.records.state("jwks", key: "k") == [1])
        #expect(
            try cache.records.assignHooks([PipelineHooks(pipeline: "jwks", hooks: ["a"], notified: nil)])
                == ["jwks": ["a": StoredHookState(notified: identity)]])
        try cache.context.free()
        try cache.records.setState("jwks", key: "k", to: [2])
        #expect(cache.records.waiting == 0)
        #expect(try cache.records.runs("jwks").map(\.number) == [3, 2, 1])
        #expect(try cache.records.refreshState("jwks").lastSuccess == WallTime(seconds: 20))
        #expect(lost.pipelines.withLock { $0 }.count == 1)
    }

    @Test("that wait for space are logged once, however many changes fail meanwhile")
    func loggedOnce() throws {
        let lost = LostRecords()
        let directory = try TemporaryDirectory.forCache()
        let cache = try cache(in: directory, lost)
        let fixture = CacheFixture(of: cache, in: directory)
        try fixture.commit("one", validators: [.tag("a")], at: 10)
        for time in 1...2 {
            try cache.context.fill(["runs", "state"])
            for number in 1...3 {
                _ = cache.records.append(run(UInt64(number)))
                #expect(throws: CacheError.self) { try cache.records.setState("jwks", key: "k", to: [1]) }
                // There is space for the hook alone.
                try cache.records.record(StoredHookState(), of: "a", of: "jwks")
                #expect(try cache.records.storeDeferred(at: WallTime(seconds: 1)).isObstructed)
            }
            #expect(lost.errors.withLock { $0 }.count == time)
            try cache.context.free()
            #expect(try cache.records.storeDeferred(at: WallTime(seconds: 1)) == (0, false))
        }
    }

    @Test("are the newest ones, if there is no space for a long time")
    func longFullIndex() throws {
        let fixture = try CacheFixture()
        try fixture.cache.context.fill(["runs"])
        for number in 1...CacheLimits.deferredRecords { _ = fixture.cache.records.append(run(UInt64(number))) }
        #expect(try fixture.cache.records.storeDeferred(at: WallTime(seconds: 1)) == (CacheLimits.keptRecords, true))
        let newest = UInt64(CacheLimits.deferredRecords) + 1
        #expect(fixture.cache.records.append(run(newest)) == CacheLimits.keptRecords + 1)
        try fixture.cache.context.free()
        #expect(try fixture.cache.records.storeDeferred(at: WallTime(seconds: 1)) == (0, false))
        #expect(try numbers(fixture).first == newest)
    }

    @Test("do not wait for another program at the end, and what is lost is reported once", .hangLimit)
    func end() throws {
        let lost = LostRecords()
        let directory = try TemporaryDirectory.forCache()
        let cache = try cache(in: directory, lost)
        let other = try SQLiteDatabase(path: directory.state + "/index.sqlite", busyTimeout: 0)
        try other.begin()
        cache.limitWaits(to: .zero)
        _ = cache.records.append(run(1))
        // Each would take five seconds.
        for _ in 1...200 { #expect(throws: CacheError.self) { try cache.records.setState("jwks", key: "k", to: [1]) } }
        try cache.records.record(StoredHookState(), of: "a", of: "jwks")
        cache.flush()
        #expect(
            lost.errors.withLock { $0 } == [
                "the last 202 records of runs, checks and hooks are lost: database is locked"
            ])
    }
}
