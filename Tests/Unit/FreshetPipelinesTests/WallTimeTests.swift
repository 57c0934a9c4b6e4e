import FreshetModel
import Testing

@Suite("Instants of the wall clock")
struct WallTimeTests {
    @Test(
        "are advanced by whole microseconds",
        arguments: [
            (Duration.seconds(2), Int64(2_000_000)), (.seconds(-2), -2_000_000), (.milliseconds(-1500), -1_500_000),
            (.nanoseconds(1999), 1), (.nanoseconds(-1999), -1), (.zero, 0),
        ])
    func advanced(_ span: Duration, _ microseconds: Int64) {
        let start = WallTime(seconds: 1_700_000_000)
        let end = start.advanced(by: span)
        #expect(end.microseconds - start.microseconds == microseconds)
        #expect(start.duration(to: end) == .microseconds(microseconds))
    }

    @Test("stay in their range")
    func range() {
        let (first, last) = (WallTime(nanoseconds: .min), WallTime(nanoseconds: .max))
        #expect(last.advanced(by: .seconds(1)) == last && first.advanced(by: .seconds(-1)) == first)
        #expect(WallTime(seconds: 0).advanced(by: .seconds(Int64.max)) == last)
        #expect(WallTime(seconds: .max) == last && WallTime(microseconds: .min) == first)
        #expect(first.duration(to: last) == .nanoseconds(Int64.max))
        #expect(last.duration(to: first) == .nanoseconds(Int64.min))
    }
}
