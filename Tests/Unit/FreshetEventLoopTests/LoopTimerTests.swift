import Synchronization
import Testing

@testable import FreshetEventLoop

@Suite("Timers of the event loop")
struct LoopTimerTests {
    @Test("a million armed and disarmed timers leave nothing, and released timers leave nothing")
    func setAndTakenBack() async throws {
        try await withLoop { loop in
            let before = loop.timerCounts
            let hour = ContinuousClock.now + .seconds(3600)
            for _ in 0..<1000 {
                let timer = LoopTimer(loop) {}
                for _ in 0..<1000 {
                    timer.arm(at: hour)
                    timer.disarm()
                }
                // Released while it is armed.
                timer.arm(at: hour)
                #expect(loop.timerCounts == (before.made + 1, before.armed + 1))
            }
            #expect(loop.timerCounts == before)
        }
    }

    @Test("a cancelled sleep leaves no timer")
    func cancelledSleeps() async throws {
        try await withLoop { loop in
            let before = loop.timerCounts
            await withTaskGroup(of: Void.self) { group in
                for _ in 0..<1000 {
                    group.addTask { try? await loop.clock.sleep(until: .now + .seconds(3600)) }
                }
                group.cancelAll()
            }
            #expect(loop.timerCounts == before)
        }
    }

    @Test("ten thousand timers of one instant fire once each, in the order in which they were armed")
    func oneInstant() async throws {
        try await withLoop { loop in
            let count = 10_000
            let fired = Mutex<[Int]>([])
            let (done, end) = AsyncStream.makeStream(of: Void.self)
            let timers = (0..<count).map { number in
                LoopTimer(loop) {
                    let isLast = fired.withLock { fired in
                        fired.append(number)
                        return fired.count == count
                    }
                    if isLast { end.finish() }
                }
            }
            let instant = ContinuousClock.now + .milliseconds(50)
            for timer in timers { timer.arm(at: instant) }
            for await _ in done {}
            #expect(fired.withLock { $0 } == Array(0..<count))
            #expect(loop.timerCounts.armed == 0)
        }
    }
}
