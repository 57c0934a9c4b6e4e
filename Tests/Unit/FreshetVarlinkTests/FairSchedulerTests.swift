import FreshetEventLoop
import Synchronization
import TestSupport
import Testing

@testable import FreshetVarlink

@Suite("Turns of users of the control socket", .hangLimit)
struct FairSchedulerTests {
    /// The state that the tasks share.
    private final class Shared: Sendable {
        let users = Mutex<[UInt32]>([])
        let numbers = Mutex<[Int]>([])
        let flag = Atomic(false)
    }

    @Test("a user with many connections gets as many turns as a user with a single connection")
    func fairness() async throws {
        let loop = try EventLoop()
        try loop.runInThread(named: "test-loop")
        defer { loop.stop() }
        let turns = FairScheduler(loop)
        let shared = Shared()
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<31 {
                group.addTask(executorPreference: loop) {
                    while shared.users.withLock({ $0.count }) < 200 {
                        _ = await turns.begin(65_534)
                        guard shared.flag.load(ordering: .relaxed) else { continue }
                        shared.users.withLock { $0.append(65_534) }
                    }
                }
            }
            group.addTask(executorPreference: loop) {
                // Counts from the moment when the others wait.
                while turns.waitingCount < 30 { await Task.yield() }
                shared.flag.store(true, ordering: .relaxed)
                for _ in 0..<50 {
                    _ = await turns.begin(0)
                    shared.users.withLock { $0.append(0) }
                }
            }
        }
        let shares = shared.users.withLock { Array($0.prefix(60)) }
        let single = shares.count { $0 == 0 }
        #expect((25...35).contains(single), "\(shares)")
    }

    @Test("each of a user's connections gets one turn, in the order of arrival")
    func order() async throws {
        let loop = try EventLoop()
        try loop.runInThread(named: "test-loop")
        defer { loop.stop() }
        let turns = FairScheduler(loop)
        let shared = Shared()
        await withTaskGroup(of: Void.self) { group in
            for number in 0..<100 {
                group.addTask(executorPreference: loop) {
                    _ = await turns.begin(7)
                    shared.numbers.withLock { $0.append(number) }
                }
            }
        }
        #expect(shared.numbers.withLock { $0 } == Array(0..<100))
        #expect(turns.waitingCount == 0)
    }

    @Test("turns that end early leave the rest of the round to the user's other connections")
    func shortTurns() async throws {
        let loop = try EventLoop()
        // Turns count the processor time of their thread. These begin and end on several threads, one of which may have
        // used minutes of it in other tests.
        let turns = FairScheduler(loop, share: .seconds(1_000_000))
        // Without a round of the loop, only the first connection would have a turn.
        for _ in 0..<3 { turns.end(await turns.begin(7)) }
        let held = await turns.begin(7)
        let shared = Shared()
        await withTaskGroup(of: Void.self) { group in
            group.addTask {
                _ = await turns.begin(7)
                shared.flag.store(true, ordering: .relaxed)
            }
            #expect(await eventually { turns.waitingCount == 1 })
            let isEarly = shared.flag.load(ordering: .relaxed)
            #expect(!isEarly)
            turns.end(held)
            loop.stop()
        }
        let hasBegun = shared.flag.load(ordering: .relaxed)
        #expect(hasBegun)
    }

    @Test("a cancelled task stops waiting for a turn immediately, and uses up no turn of others")
    func cancelled() async throws {
        let loop = try EventLoop()
        let turns = FairScheduler(loop)
        let held = await turns.begin(7)
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<10 { group.addTask { turns.end(await turns.begin(7)) } }
            #expect(await eventually { turns.waitingCount == 10 })
            group.cancelAll()
        }
        #expect(turns.waitingCount == 0)
        turns.end(held)
    }
}
