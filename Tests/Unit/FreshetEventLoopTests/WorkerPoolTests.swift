import FreshetEventLoop
import Glibc
import Synchronization
import Testing

@Suite("The worker pool")
struct WorkerPoolTests {
    @Test("runs work beside the caller and hands its result or its typed error back")
    func results() async throws {
        struct Refused: Error, Equatable {}
        let pool = WorkerPool(threads: 2)
        #expect(await pool.run { 6 * 7 } == 42)
        await #expect(throws: Refused()) { try await pool.run { () throws(Refused) -> Int in throw Refused() } }
    }

    @Test("runs no more pieces of work at once than it has threads, and all of them in the end")
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
