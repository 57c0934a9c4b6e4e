import FreshetEventLoop
import FreshetSignals
import Synchronization
import Testing

@testable import FreshetSystemSignals

@Suite("A planned timer")
struct PlannedTimerTests {
    private func count(_ iterator: inout (some AsyncIteratorProtocol<[Cause], Never>)) async -> Int {
        await iterator.next(isolation: nil)?.first?.count ?? 0
    }

    @Test("fires once at its instant, and not before")
    func fires() async {
        let clock = ManualAlarmClock()
        let timer = PlannedTimer(clock, name: "timer")
        var causes = timer.signal.causes.makeAsyncIterator()
        timer.plan(at: clock.now + .seconds(10))
        clock.advance(by: .seconds(9))
        #expect(timer.planned != nil)
        clock.advance(by: .seconds(1))
        #expect(timer.planned == nil)
        let cause = await causes.next(isolation: nil)?.first
        #expect(cause?.count == 1)
        #expect(cause?.first.signal == "timer")
        #expect(cause?.first.instant == clock.now)
    }

    @Test("that became due while the machine slept fires once")
    func overdue() async {
        let clock = ManualAlarmClock()
        let timer = PlannedTimer(clock)
        var causes = timer.signal.causes.makeAsyncIterator()
        timer.plan(at: clock.now + .seconds(10))
        clock.advance(by: .seconds(86_400))
        clock.advance(by: .seconds(86_400))
        #expect(await count(&causes) == 1)
    }

    @Test("has one instant after a new plan, and none after a cancellation")
    func replanned() async {
        let clock = ManualAlarmClock()
        let timer = PlannedTimer(clock)
        var causes = timer.signal.causes.makeAsyncIterator()
        timer.plan(at: clock.now + .seconds(10))
        timer.plan(at: clock.now + .seconds(20))
        clock.advance(by: .seconds(15))
        #expect(timer.planned != nil)
        timer.cancel()
        clock.advance(by: .seconds(15))
        timer.plan(at: clock.now)
        clock.advance(by: .zero)
        let cause = await causes.next(isolation: nil)?.first
        #expect(cause?.count == 1)
        #expect(cause?.first.number == 1)
    }

    @Test("does not fire for an expiry that was cancelled or replanned too late")
    func late() throws {
        let clock = RecordingClock()
        let timer = PlannedTimer(clock)
        let alarm = try #require(clock.alarm)
        timer.plan(at: clock.now + .seconds(5))
        timer.cancel()
        alarm.expireLate()
        timer.plan(at: clock.now + .seconds(5))
        alarm.expireLate()
        #expect(timer.planned != nil)
    }

    @Test("runs on an event loop")
    func onLoop() async throws {
        let loop = try EventLoop()
        try loop.runInThread(named: "timer-test")
        defer { loop.stop() }
        let timer = PlannedTimer(loop)
        var causes = timer.signal.causes.makeAsyncIterator()
        timer.plan(at: loop.now - .seconds(1))
        #expect(await count(&causes) == 1)
    }
}

/// Records the alarm that it made.
private final class RecordingClock: AlarmClock {
    let now = ContinuousClock.Instant.now
    private let box = AlarmBox()

    var alarm: ManualAlarm? { box.alarm }

    func makeAlarm(_ handler: @escaping @Sendable () -> Void) -> any Alarm {
        let alarm = ManualAlarm(handler)
        box.alarm = alarm
        return alarm
    }
}

private final class AlarmBox: Sendable {
    private let stored = Mutex<ManualAlarm?>(nil)
    var alarm: ManualAlarm? {
        get { stored.withLock { $0 } }
        set { stored.withLock { $0 = newValue } }
    }
}

@Suite("The stable delay")
struct StableDelayTests {
    private let host: [UInt8] = Array(0..<16)

    @Test("is the same for one host and pipeline in every process and version")
    func stable() {
        // Computed once, by another program: a change would move every host's schedule.
        #expect(StableDelay.fraction(identity: host, name: "jwks") == 0.7529806835797845)
        #expect(StableDelay.fraction(identity: [], name: "") == 0.14838301097631856)
    }

    @Test("spreads evenly among pipelines, and among hosts")
    func spreads() {
        func histogram(_ fraction: (Int) -> Double) -> [Int] {
            var counts = [Int](repeating: 0, count: 10)
            for index in 0..<10_000 { counts[Int(fraction(index) * 10)] += 1 }
            return counts
        }
        let byName = histogram { StableDelay.fraction(identity: host, name: "pipeline-\($0)") }
        let byHost = histogram {
            StableDelay.fraction(identity: host + [UInt8($0 & 255), UInt8($0 >> 8)], name: "jwks")
        }
        // 1,000 are expected in each; six standard deviations are 180. The hash has no randomness, so this cannot be
        // flaky.
        for count in byName + byHost { #expect((820...1_180).contains(count)) }
    }

    @Test("distinguishes the end of an identity from the beginning of a name")
    func separated() {
        let a = StableDelay.fraction(identity: Array("ab".utf8), name: "c")
        let b = StableDelay.fraction(identity: Array("a".utf8), name: "bc")
        #expect(a != b)
    }

    @Test("is less than the longest and never negative")
    func bounds() {
        let delay = StableDelay.delay(within: .seconds(300), identity: host, name: "jwks")
        #expect(delay >= .zero && delay < .seconds(300))
        #expect(StableDelay.delay(within: .zero, identity: host, name: "jwks") == .zero)
        #expect(StableDelay.delay(within: .seconds(-5), identity: host, name: "jwks") == .zero)
    }
}
