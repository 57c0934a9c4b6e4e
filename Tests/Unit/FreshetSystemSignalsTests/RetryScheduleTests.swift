import Testing

@testable import FreshetSystemSignals

@Suite("The schedule of checks")
struct RetryScheduleTests {
    private let start = ContinuousClock.Instant.now
    private func at(_ seconds: Int) -> ContinuousClock.Instant { start + .seconds(seconds) }

    @Test("has one check at a time: events in the meantime are all for the next check")
    func oneAtATime() {
        let schedule = Dialogue()
        #expect(schedule.receive(1, .written, at: at(0)))
        #expect(schedule.isLooking)
        #expect(!schedule.receive(1, .written, at: at(0)))
        #expect(!schedule.receive(1, .look, at: at(0)))
        schedule.keep(1, .rewatch)
        #expect(schedule.receive(2, .look, at: at(0)), "another path does not wait")
        #expect(schedule.ended(1, isBlocked: false, at: at(1)) == [.written, .look, .rewatch])
        #expect(schedule.ended(1, isBlocked: false, at: at(1)) == nil)
        #expect(schedule.ended(2, isBlocked: false, at: at(1)) == nil)
        #expect(!schedule.isLooking && schedule.deadline == nil)
        schedule.keep(1, .look)
        #expect(schedule.ended(1, isBlocked: false, at: at(1)) == nil, "no check is in progress")
    }

    @Test("reports a check that does not end once, and is unchanged when it ends")
    func slow() {
        let schedule = Dialogue()
        _ = schedule.receive(1, .look, at: at(0))
        _ = schedule.receive(2, .look, at: at(3))
        #expect(schedule.deadline == at(5))
        #expect(schedule.due(at: at(4)).slow.isEmpty)
        #expect(schedule.due(at: at(5)).slow == [1])
        #expect(schedule.isHeldUp && schedule.deadline == at(8))
        #expect(schedule.due(at: at(7)).slow.isEmpty)
        schedule.isSlow(2)
        #expect(schedule.deadline == nil && schedule.due(at: at(9)).slow.isEmpty)
        #expect(!schedule.receive(1, .written, at: at(10)), "the check is still in progress")
        #expect(schedule.ended(1, isBlocked: false, at: at(20)) == .written)
        #expect(schedule.deadline == at(25))
    }

    @Test("retries paths with an obstacle after 1, 2, 4 … 300 s, all together; new ones soon")
    func retry() {
        let schedule = Dialogue()
        func end(_ follower: UInt64, _ isBlocked: Bool, _ now: Int) {
            _ = schedule.receive(follower, .look, at: at(now))
            #expect(schedule.ended(follower, isBlocked: isBlocked, at: at(now)) == nil)
        }
        end(1, true, 0)
        end(2, false, 0)
        var now = 0
        for pause in [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300] {
            #expect(schedule.deadline == at(now + pause))
            #expect(schedule.due(at: at(now + pause - 1)).again.isEmpty)
            now += pause
            #expect(schedule.due(at: at(now)).again == [1])
            end(1, true, now)
        }
        end(3, true, now)
        #expect(schedule.deadline == at(now + 1))
        #expect(schedule.due(at: at(now + 1)).again == [1, 3])
        end(1, false, now + 1)
        end(3, false, now + 1)
        #expect(schedule.deadline == nil)
    }

    @Test("a path whose looks find an obstacle again and again is looked at ten times, and then once a second")
    func flood() {
        let schedule = Dialogue()
        var looks: [Int] = []
        // In each millisecond of ten seconds something happens on the way, and each look finds a circle of links.
        for millisecond in 0..<10_000 {
            let now = start + .milliseconds(millisecond)
            var begins = schedule.receive(1, [.look], at: now)
            for look in schedule.delayed(at: now) {
                #expect(look.follower == 1 && look.events.contains(.look))
                begins = schedule.receive(1, look.events, at: now) || begins
            }
            guard begins else { continue }
            looks.append(millisecond)
            _ = schedule.ended(1, isBlocked: true, at: now)
        }
        #expect(looks.prefix(11) == Array(0...10)[...])
        #expect((18...22).contains(looks.count))
        #expect(zip(looks.dropFirst(11), looks.dropFirst(12)).allSatisfy { $1 - $0 >= 999 })
    }

    @Test("what happens while a look is delayed is for that look, and the timer is armed for it")
    func delayed() {
        let schedule = Dialogue()
        for _ in 0..<10 {
            #expect(schedule.receive(1, .look, at: at(0)))
            #expect(schedule.ended(1, isBlocked: false, isSettled: false, at: at(0)) == nil)
        }
        #expect(schedule.receive(1, .look, at: at(0)))
        schedule.keep(1, .rewatch)
        #expect(schedule.ended(1, isBlocked: false, isSettled: false, at: at(0)) == nil, "its look is delayed")
        #expect(!schedule.receive(1, .written, at: at(0)))
        #expect(schedule.receive(2, .look, at: at(0)), "another path does not wait for it")
        #expect(schedule.ended(2, isBlocked: false, at: at(0)) == nil)
        #expect(schedule.deadline == at(1))
        #expect(schedule.delayed(at: at(0)).isEmpty)
        let looks = schedule.delayed(at: at(1))
        #expect(looks.map(\.follower) == [1] && looks.first?.events == [.rewatch, .written])
        #expect(schedule.receive(1, .look, at: at(1)))
        #expect(schedule.deadline == at(6))
        schedule.remove(1, at: at(1))
        #expect(schedule.deadline == nil)
    }

    @Test("looks at a file that is written to again and again are 500 and then 50 in a second")
    func writes() {
        let schedule = Dialogue()
        var looks = 0
        for millisecond in 0..<20_000 {
            let now = start + .milliseconds(millisecond)
            var begins = schedule.receive(1, .written, at: now)
            for look in schedule.delayed(at: now) { begins = schedule.receive(1, look.events, at: now) || begins }
            guard begins else { continue }
            looks += 1
            _ = schedule.ended(1, isBlocked: false, at: now)
        }
        #expect((1_400...1_600).contains(looks))
    }

    @Test("retries blocked paths now when a path is removed, and keeps nothing of the removed path")
    func removed() {
        let schedule = Dialogue()
        _ = schedule.receive(1, .look, at: at(0))
        _ = schedule.ended(1, isBlocked: true, at: at(0))
        _ = schedule.receive(2, .look, at: at(0))
        _ = schedule.receive(2, .look, at: at(0))
        schedule.remove(2, at: at(0))
        #expect(!schedule.isLooking)
        #expect(schedule.ended(2, isBlocked: true, at: at(0)) == nil)
        #expect(schedule.due(at: at(0)).again == [1])
        schedule.remove(1, at: at(0))
        #expect(schedule.deadline == nil)
    }
}

/// A schedule whose results can be checked in one line.
private final class Dialogue {
    private var schedule = RetrySchedule()
    var isLooking: Bool { schedule.isLooking }
    var isHeldUp: Bool { schedule.isHeldUp }
    var deadline: ContinuousClock.Instant? { schedule.deadline }

    func receive(_ follower: UInt64, _ events: FileEvents, at now: ContinuousClock.Instant) -> Bool {
        schedule.receive(follower, events, at: now)
    }
    func ended(
        _ follower: UInt64, isBlocked: Bool, isSettled: Bool = true, at now: ContinuousClock.Instant
    ) -> FileEvents? {
        schedule.ended(follower, isBlocked: isBlocked, isSettled: isSettled, at: now)
    }
    func delayed(at now: ContinuousClock.Instant) -> [(follower: UInt64, events: FileEvents)] {
        schedule.delayedLooks(at: now)
    }
    func due(at now: ContinuousClock.Instant) -> (slow: [UInt64], again: [UInt64]) { schedule.due(at: now) }
    func keep(_ follower: UInt64, _ events: FileEvents) { schedule.keep(follower, events) }
    func isSlow(_ follower: UInt64) { schedule.isSlow(follower) }
    func remove(_ follower: UInt64, at now: ContinuousClock.Instant) { schedule.remove(follower, at: now) }
}
