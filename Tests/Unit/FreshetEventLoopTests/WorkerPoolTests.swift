import FreshetEventLoop
import Glibc
import Synchronization
import TestSupport
import Testing

@Suite("The worker pool")
struct WorkerPoolTests {
    @Test("runs work on another thread and returns its result or its typed error")
    func results() async throws {
        struct Refused: Error, Equatable {}
        let pool = WorkerPool(threads: 2)
        #expect(await pool.run { 6 * 7 } == 42)
        await #expect(throws: Refused()) { try await pool.run { () throws(Refused) -> Int in throw Refused() } }
    }

    @Test("runs at most as many pieces of work at the same time as it has threads, and all of them in the end")
    func limit() async {
        let pool = WorkerPool(threads: 3)
        let gauge = Gauge()
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<200 {
                group.addTask {
                    await pool.run {
                        gauge.enter()
                        sched_yield()
                        gauge.leave()
                    }
                }
            }
        }
        #expect(gauge.done == 200)
        #expect(gauge.most <= 3)
        #expect(pool.threadCount <= 3)
    }

    @Test("runs one more thread for work that hangs, and returns to its limit when that work ends")
    func replacement() throws {
        let pool = WorkerPool(threads: 1)
        let (hung, next, last) = (Gate(), Gate(), Gate())
        let ticket = Mutex<WorkerPool.Ticket?>(nil)
        pool.perform("hung") { own in
            ticket.withLock { $0 = own }
            hung.pass()
        }
        hung.awaitArrival()
        pool.perform("next") { next.pass() }
        #expect(pool.threadCount == 1)
        pool.replace(try #require(ticket.withLock { $0 }))
        next.awaitArrival()
        #expect(pool.threadCount == 2)
        pool.perform("last") { last.pass() }
        hung.open()
        // One of the two threads ends: the other one still has work.
        #expect(eventually { pool.threadCount == 1 })
        next.open()
        last.awaitArrival()
        #expect(pool.threadCount == 1)
        last.open()
    }

    @Test("reports the name of the oldest work in progress; waiting work is not in progress")
    func oldest() async throws {
        let pool = WorkerPool(threads: 2)
        #expect(pool.oldestRunning == nil)
        let (first, second, third) = (Gate(), Gate(), Gate())
        let before = ContinuousClock.now
        // The calling code runs on a separate thread: this thread blocks until the work has begun.
        let loop = try EventLoop()
        try loop.runInThread(named: "test-loop")
        defer { loop.stop() }
        await withTaskGroup(of: Void.self) { group in
            group.addTask(executorPreference: loop) { await pool.run("first") { first.pass() } }
            first.awaitArrival()
            group.addTask(executorPreference: loop) { await pool.run { second.pass() } }
            second.awaitArrival()
            group.addTask(executorPreference: loop) { await pool.run("third") { third.pass() } }
            let work = pool.oldestRunning
            #expect(work?.name == "first")
            #expect(work.map { $0.since >= before && $0.since <= .now } == true)
            first.open()
            third.awaitArrival()
            #expect(pool.oldestRunning?.name == "file access")
            second.open()
            third.open()
        }
        // The worker releases the work a moment after the caller has its result.
        #expect(await eventually { pool.oldestRunning == nil })
    }
}

/// Holds a thread until the gate opens. For threads that may block.
private struct Gate {
    private let arrived = Latch()
    private let opened = Latch()

    func pass() {
        arrived.open()
        _ = opened.wait(for: testTimeout)
    }
    func open() { opened.open() }
    func awaitArrival() { _ = arrived.wait(for: testTimeout) }
}

private final class Gauge: Sendable {
    private let state = Mutex((now: 0, most: 0, done: 0))
    var most: Int { state.withLock { $0.most } }
    var done: Int { state.withLock { $0.done } }

    func enter() {
        state.withLock { state in
            state.now += 1
            state.most = max(state.most, state.now)
        }
    }

    func leave() {
        state.withLock { state in
            state.now -= 1
            state.done += 1
        }
    }
}
