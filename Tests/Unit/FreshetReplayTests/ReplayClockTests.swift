import FreshetModel
import FreshetPipelines
import Synchronization
import Testing

@testable import FreshetReplay

@Suite("Replay clock")
struct ReplayClockTests {
    private let clock = ReplayClock(wallStart: WallTime(seconds: 1000)) { _ in .utc }
    private func at(_ seconds: Int64) -> BootInstant { clock.instant(seconds * 1_000_000) }

    @Test("timers expire in the order of their instants, then of their arming, and the clock shows each instant")
    func order() {
        let expired = Mutex<[String]>([])
        let timers = [("c", 1030), ("a", 1010), ("b", 1010), ("d", 1040)].map { name, time in
            let timer = clock.makeTimer { expired.withLock { $0.append(name) } }
            timer.arm(at: at(Int64(time)))
            return timer
        }
        var times: [Int64] = []
        while let handler = clock.next(until: at(1035)) {
            handler()
            times.append(clock.wallNow.microseconds / 1_000_000)
        }
        #expect(expired.withLock { $0 } == ["a", "b", "c"])
        #expect(times == [1010, 1010, 1030])
        #expect(clock.wallNow == WallTime(seconds: 1035))
        withExtendedLifetime(timers) {}
    }

    @Test("a disarmed, rearmed or released timer does not expire at its old instant")
    func disarmed() {
        let expired = Mutex<[String]>([])
        let one = clock.makeTimer { expired.withLock { $0.append("one") } }
        let two = clock.makeTimer { expired.withLock { $0.append("two") } }
        one.arm(at: at(1001))
        one.disarm()
        two.arm(at: at(1002))
        two.arm(at: at(1004))
        clock.makeTimer { expired.withLock { $0.append("three") } }.arm(at: at(1001))
        #expect(clock.next(until: at(1003)) == nil)
        clock.next(until: at(1005))?()
        #expect(expired.withLock { $0 } == ["two"])
    }

    @Test("a timer that is armed very often does not fill the memory, and still expires once")
    func often() {
        let expired = Mutex(0)
        let timer = clock.makeTimer { expired.withLock { $0 += 1 } }
        for count in 0..<100_000 { timer.arm(at: at(2000 + Int64(count % 7))) }
        while let handler = clock.next(until: at(3000)) { handler() }
        #expect(expired.withLock { $0 } == 1)
    }

    @Test("a jump calls no timer; the overdue ones expire afterwards")
    func jump() {
        let expired = Mutex(0)
        let timer = clock.makeTimer { expired.withLock { $0 += 1 } }
        timer.arm(at: at(1010))
        clock.jump(to: at(1100))
        #expect(expired.withLock { $0 } == 0 && clock.wallNow == WallTime(seconds: 1100))
        clock.next(until: at(1100))?()
        #expect(expired.withLock { $0 } == 1 && clock.wallNow == WallTime(seconds: 1100))
    }
}
