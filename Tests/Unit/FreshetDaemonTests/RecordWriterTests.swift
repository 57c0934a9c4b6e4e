import FreshetEventLoop
import FreshetModel
import FreshetPipelines
import FreshetTestKit
import TestSupport
import Testing
import WorldTestSupport

@testable import FreshetCache
@testable import FreshetDaemon

@Suite("The writer of runs and checks")
struct RecordWriterTests {
    private let directory: TemporaryDirectory
    private let cache: LocalCache
    private let store: CacheStore
    private let writer: RecordWriter
    private let clock: ScriptedClock
    /// One thread: it does its work in order.
    private let workers = WorkerPool(threads: 1)

    init() throws {
        directory = try TemporaryDirectory()
        (cache, _) = try LocalCache.open(
            cacheDirectory: "\(directory.path)/cache", stateDirectory: "\(directory.path)/state", reserve: .none)
        clock = ScriptedClock(executor: SerialTestExecutor())
        let writer = RecordWriter(cache, workers, clock) { _ in }
        self.writer = writer
        store = CacheStore(cache: cache, workers: workers) { _, _ in
        } recordsWait: {
            writer.schedule($0)
        } goesToSleep: {
            writer.write()
        }
    }

    private func run(_ number: UInt64) -> RunRecord {
        RunRecord(
            pipeline: "a", number: number, causes: "timer", started: WallTime(seconds: 1), ended: WallTime(seconds: 2),
            outcome: .unchanged)
    }

    /// The number of runs in the index, without storing those that wait.
    private func stored() throws -> Int {
        try cache.context.reading { (index) throws(SQLiteError) in try index.runs.newest(100, of: "a").count }
    }

    /// Waits until the worker has done all work so far.
    private func settle() async { await workers.run {} }

    @Test("stores them together, a moment after the first, and those of later with the next timer")
    func delay() async throws {
        await store.record(run(1))
        try clock.manual.advance(by: RecordWriter.delay - .milliseconds(1), draining: clock.executor)
        await store.record(run(2))
        await settle()
        #expect(try stored() == 0)
        try clock.manual.advance(by: .milliseconds(1), draining: clock.executor)
        await settle()
        #expect(try stored() == 2)
        try clock.manual.advance(by: .seconds(10), draining: clock.executor)
        await store.record(run(3))
        await settle()
        #expect(try stored() == 2)
        try clock.manual.advance(by: RecordWriter.delay, draining: clock.executor)
        await settle()
        #expect(try stored() == 3)
    }

    @Test("stores many without the delay")
    func batch() async throws {
        for number in 1..<RecordWriter.batch { await store.record(run(UInt64(number))) }
        await settle()
        #expect(try stored() == 0)
        await store.record(run(UInt64(RecordWriter.batch)))
        await settle()
        #expect(try stored() == CacheLimits.runsPerPipeline)
    }

    @Test("stores them before the machine sleeps")
    func sleep() async throws {
        await store.record(run(1))
        store.willSleep()
        await settle()
        #expect(try stored() == 1)
    }

    @Test("a run waits for the disk if the index does not keep pace")
    func tooMany() async throws {
        for number in 1...CacheLimits.deferredRecords {
            _ = cache.context.index.deferred.append(.run(run(UInt64(number))))
        }
        await store.record(run(99_999))
        #expect(try cache.records.runs("a").first?.number == 99_999)
        #expect(try stored() == CacheLimits.runsPerPipeline)
    }
}
