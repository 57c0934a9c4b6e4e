import FreshetEventLoop
import Synchronization
import TestSupport
import Testing

@testable import FreshetVarlink

@Suite("Turns of users of the control socket", .hangLimit)
struct TurnQueueTests {
    /// What tasks share.
    private final class Shared: Sendable {
        let users = Mutex<[UInt32]>([])
        let numbers = Mutex<[Int]>([])
        let areAllWaiting = Atomic(false)
    }

    @Test("a user with many connections and one with a single connection have as many turns")
    func fairness() async throws {
        let loop = try EventLoop()
        try loop.runInThread(named: "test-loop")
        defer { loop.stop() }
        let turns = TurnQueue(loop)
        let shared = Shared()
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<31 {
                group.addTask(executorPreference: loop) {
                    while shared.users.withLock({ $0.count }) < 200 {
                        await turns.begin(65_534)
                        guard shared.areAllWaiting.load(ordering: .relaxed) else { continue }
                        shared.users.withLock { $0.append(65_534) }
                    }
                }
            }
            group.addTask(executorPreference: loop) {
                // From the moment when the others wait.
                while turns.waitingCount < 30 { await Task.yield() }
                shared.areAllWaiting.store(true, ordering: .relaxed)
                for _ in 0..<50 {
                    await turns.begin(0)
                    shared.users.withLock { $0.append(0) }
                }
            }
        }
        let shares = shared.users.withLock { Array($0.prefix(60)) }
        let single = shares.count { $0 == 0 }
        #expect((25...35).contains(single), "\(shares)")
    }

    @Test("a user's connections have their turns in the order in which they came, and each has one")
    func order() async throws {
        let loop = try EventLoop()
        try loop.runInThread(named: "test-loop")
        defer { loop.stop() }
        let turns = TurnQueue(loop)
        let shared = Shared()
        await withTaskGroup(of: Void.self) { group in
            for number in 0..<100 {
                group.addTask(executorPreference: loop) {
                    await turns.begin(7)
                    shared.numbers.withLock { $0.append(number) }
                }
            }
        }
        #expect(shared.numbers.withLock { $0 } == Array(0..<100))
        #expect(turns.waitingCount == 0)
    }
}
