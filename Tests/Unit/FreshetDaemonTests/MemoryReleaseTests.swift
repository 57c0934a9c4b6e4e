import FreshetTestKit
import Testing

@testable import FreshetDaemon

@Suite("The return of memory")
struct MemoryReleaseTests {
    private let start = ContinuousClock.now
    private let mebibyte: UInt64 = 1 << 20

    @Test("memory is returned a second after the end of a run, if the process has grown by a MiB")
    func grown() {
        var schedule = MemoryReleaseSchedule(used: 5 * mebibyte)
        #expect(schedule.runEnded(at: start) == start + .seconds(1))
        #expect(schedule.runEnded(at: start) == nil, "one decision for runs that end together")
        #expect(schedule.decision(used: 6 * mebibyte - 1, now: start) == .keep)
        #expect(schedule.decision(used: 6 * mebibyte, now: start) == .release)
    }

    @Test("a large process has to grow by an eighth")
    func large() {
        var schedule = MemoryReleaseSchedule(used: 80 * mebibyte)
        #expect(schedule.decision(used: 90 * mebibyte - 1, now: start) == .keep)
        #expect(schedule.decision(used: 90 * mebibyte, now: start) == .release)
    }

    @Test("memory that other runs used during a return is returned after their end")
    func inUse() {
        var schedule = MemoryReleaseSchedule(used: 10 * mebibyte)
        #expect(schedule.decision(used: 300 * mebibyte, now: start) == .release)
        schedule.hasReturned(before: 300 * mebibyte, after: 290 * mebibyte)
        let end = start + .seconds(2)
        #expect(schedule.runEnded(at: end) == start + .seconds(5))
        #expect(schedule.decision(used: 290 * mebibyte, now: start + .seconds(5)) == .release)
    }

    @Test("useless returns become rarer, and a useful one ends that")
    func rarer() {
        var schedule = MemoryReleaseSchedule(used: 10 * mebibyte)
        var now = start
        #expect(schedule.decision(used: 100 * mebibyte, now: now) == .release)
        schedule.hasReturned(before: 100 * mebibyte, after: 100 * mebibyte)
        var waits: [Duration] = []
        for _ in 0..<8 {
            guard case .lookAgain(let next) = schedule.decision(used: 100 * mebibyte, now: now) else {
                Issue.record("it returns memory, or keeps it for ever")
                return
            }
            waits.append(next - now)
            now = next
            #expect(schedule.decision(used: 100 * mebibyte, now: now) == .release)
            schedule.hasReturned(before: 100 * mebibyte, after: 100 * mebibyte)
        }
        #expect(waits == [10, 20, 40, 80, 160, 300, 300, 300].map(Duration.seconds))
        now += .seconds(300)
        #expect(schedule.decision(used: 100 * mebibyte, now: now) == .release)
        schedule.hasReturned(before: 100 * mebibyte, after: 20 * mebibyte)
        #expect(schedule.runEnded(at: now) == now + .seconds(5))
        #expect(schedule.decision(used: 100 * mebibyte, now: now + .seconds(5)) == .release)
    }

    @Test("after useless returns, memory by which the process has grown is returned soon")
    func grownAgain() {
        var schedule = MemoryReleaseSchedule(used: 5 * mebibyte)
        var now = start
        for _ in 0..<9 {
            #expect(schedule.decision(used: 7 * mebibyte, now: now) == .release)
            schedule.hasReturned(before: 7 * mebibyte, after: 7 * mebibyte)
            now += .seconds(300)
        }
        #expect(schedule.decision(used: 7 * mebibyte, now: now) == .release)
        schedule.hasReturned(before: 7 * mebibyte, after: 7 * mebibyte)
        let next = now + .seconds(5)
        #expect(schedule.runEnded(at: now) == next)
        #expect(schedule.decision(used: 8 * mebibyte - 1, now: next) == .lookAgain(at: now + .seconds(300)))
        // The end of a run does not wait for that late decision.
        #expect(schedule.runEnded(at: now + .seconds(10)) == now + .seconds(11))
        #expect(schedule.decision(used: 8 * mebibyte, now: now + .seconds(11)) == .release)
    }
}
