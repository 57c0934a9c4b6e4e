import FreshetModel
import Testing

@Suite("An instant of the boot clock")
struct BootInstantTests {
    @Test("is the same instant of ContinuousClock, in whole nanoseconds")
    func conversion() {
        let now = ContinuousClock.now
        #expect(BootInstant(now).continuous == now, "the clock counts nanoseconds")
        let later = now.advanced(by: .nanoseconds(7) + Duration(secondsComponent: 0, attosecondsComponent: 999_999_999))
        #expect(BootInstant(later) == BootInstant(now).advanced(by: .nanoseconds(7)))
        #expect(BootInstant.now >= BootInstant(now))
    }

    @Test("is rounded down to nanoseconds, before and after the clock's start")
    func rounding() {
        let start = BootInstant(nanoseconds: 0)
        let fraction = Duration(secondsComponent: 0, attosecondsComponent: 1)
        #expect(start.advanced(by: fraction) == start)
        #expect(start.advanced(by: .zero - fraction).nanoseconds == -1)
        #expect(start.advanced(by: .nanoseconds(-2) + fraction).nanoseconds == -2)
        #expect(start.advanced(by: .milliseconds(-1500)).nanoseconds == -1_500_000_000)
        #expect((start + .seconds(1) - .milliseconds(1)).nanoseconds == 999_000_000)
        #expect(start + .seconds(3) - (start + .seconds(1)) == .seconds(2))
    }

    @Test("beyond the range is the first or the last instant")
    func range() {
        let (first, last) = (BootInstant(nanoseconds: .min), BootInstant(nanoseconds: .max))
        for start: Int64 in [-1, 0, 1] {
            for seconds: Int64 in [9_300_000_000, .max] {
                #expect(BootInstant(nanoseconds: start).advanced(by: .seconds(seconds)) == last)
                #expect(BootInstant(nanoseconds: start).advanced(by: .seconds(-seconds)) == first)
            }
        }
        #expect(last.advanced(by: .nanoseconds(1)) == last)
        #expect(first.advanced(by: .nanoseconds(-1)) == first)
        #expect(first.duration(to: last) == .nanoseconds(Int64.max))
        #expect(last.duration(to: first) == .nanoseconds(Int64.min))
    }
}
