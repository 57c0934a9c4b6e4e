import FreshetTestKit
import Testing

@testable import FreshetDaemon

@Suite("The return of memory")
struct MemoryReleaseTests {
    private let start = ContinuousClock.now
    private let mebibyte: UInt64 = 1 << 20

    private func isUseful(_ schedule: inout MemoryReleaseSchedule, used: UInt64, now: ContinuousClock.Instant) -> Bool {
        schedule.isUseful(used: used, now: now)
    }

    @Test("memory is returned a second after the end of a run, if the process has grown much")
    func grown() {
        var schedule = MemoryReleaseSchedule(used: 10 * mebibyte)
        #expect(schedule.next(after: start) == start + .seconds(1))
        #expect(!isUseful(&schedule, used: 26 * mebibyte - 1, now: start))
        #expect(isUseful(&schedule, used: 26 * mebibyte, now: start))
    }

    @Test("memory that other runs used during a return is returned after their end")
    func inUse() {
        var schedule = MemoryReleaseSchedule(used: 10 * mebibyte)
        #expect(isUseful(&schedule, used: 300 * mebibyte, now: start))
        schedule.hasReturned(before: 300 * mebibyte, after: 290 * mebibyte)
        let end = start + .seconds(2)
        #expect(schedule.next(after: end) == start + .seconds(5))
        #expect(isUseful(&schedule, used: 290 * mebibyte, now: start + .seconds(5)))
    }

    @Test("useless returns become rarer, and a useful one ends that")
    func rarer() {
        var schedule = MemoryReleaseSchedule(used: 10 * mebibyte)
        var (now, waits) = (start, [Duration]())
        for _ in 0..<9 {
            #expect(isUseful(&schedule, used: 100 * mebibyte, now: now))
            schedule.hasReturned(before: 100 * mebibyte, after: 99 * mebibyte)
            waits.append(schedule.next(after: now) - now)
            now += .seconds(600)
        }
        #expect(waits == [5, 10, 20, 40, 80, 160, 300, 300, 300].map(Duration.seconds))
        #expect(isUseful(&schedule, used: 100 * mebibyte, now: now))
        schedule.hasReturned(before: 100 * mebibyte, after: 20 * mebibyte)
        #expect(isUseful(&schedule, used: 100 * mebibyte, now: now))
        #expect(schedule.next(after: now) == now + .seconds(5))
    }
}
