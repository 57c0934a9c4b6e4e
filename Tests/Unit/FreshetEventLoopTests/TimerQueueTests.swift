import Testing

@testable import FreshetEventLoop

@Suite("The timer queue")
struct TimerQueueTests {
    let start = ContinuousClock.Instant.now

    @Test("returns timers in the order of their deadlines, and equal ones in the order of arming")
    func order() {
        var queue = TimerQueue()
        queue.arm(1, at: start + .seconds(3))
        queue.arm(2, at: start + .seconds(1))
        queue.arm(3, at: start + .seconds(2))
        queue.arm(4, at: start + .seconds(1))
        #expect(queue.earliest == TimerQueue.nanoseconds(start + .seconds(1)))
        var out: [UInt64] = []
        while let next = queue.popExpired(at: start + .seconds(3)) { out.append(next) }
        #expect(out == [2, 4, 3, 1])
        #expect(queue.earliest == nil)
    }

    @Test("returns no timer before its deadline")
    func notYet() {
        var queue = TimerQueue()
        queue.arm(1, at: start + .seconds(1))
        #expect(queue.popExpired(at: start + .milliseconds(999)) == nil)
        #expect(queue.popExpired(at: start + .seconds(1)) == 1)
    }

    @Test("keeps one entry for a timer that is moved repeatedly")
    func move() {
        var queue = TimerQueue()
        for step in 1...1_000 { queue.arm(7, at: start + .seconds(step)) }
        #expect(queue.count == 1)
        #expect(queue.earliest == TimerQueue.nanoseconds(start + .seconds(1_000)))
        queue.arm(7, at: start)
        #expect(queue.earliest == TimerQueue.nanoseconds(start))
        queue.disarm(7)
        queue.disarm(7)
        #expect(queue.count == 0)
    }

    @Test("keeps capacity for armed timers only, not for a million earlier ones")
    func noGrowth() {
        var queue = TimerQueue()
        for timer in 0..<1_000_000 as Range<UInt64> {
            queue.arm(timer, at: start + .seconds(1))
            if timer >= 3 { queue.disarm(timer - 3) }
        }
        #expect(queue.count == 3)
        #expect(queue.capacity <= 64)
        for timer in 999_997..<1_000_000 as Range<UInt64> { queue.disarm(timer) }
        #expect(queue.count == 0 && queue.earliest == nil)
    }

    @Test("agrees with a sorted list through random arming, moving and disarming")
    func random() {
        var generator = SystemRandomNumberGenerator()
        var queue = TimerQueue()
        var model: [UInt64: (Int, Int)] = [:]
        for step in 0..<5_000 {
            let timer = UInt64.random(in: 0..<200, using: &generator)
            if Bool.random(using: &generator) {
                let second = Int.random(in: 0..<50, using: &generator)
                queue.arm(timer, at: start + .seconds(second))
                model[timer] = (second, step)
            } else {
                queue.disarm(timer)
                model[timer] = nil
            }
        }
        var out: [UInt64] = []
        while let next = queue.popExpired(at: start + .seconds(100)) { out.append(next) }
        #expect(out == model.sorted { $0.value < $1.value }.map(\.key))
    }
}
