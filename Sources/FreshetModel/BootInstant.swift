/// An instant of the clock that continues while the machine sleeps (CLOCK_BOOTTIME, clock_gettime(2)), in nanoseconds.
///
/// It is what `ContinuousClock.Instant` is, with a fixed layout. The layout of the standard library's type is known only
/// at run time, and so is that of each value that contains one: every copy of such a value would ask the runtime for its
/// size, which took a ninth of the instructions of a run (docs/performance.md).
package struct BootInstant: InstantProtocol {
    /// Nanoseconds since the clock's start.
    package let nanoseconds: Int64

    package init(nanoseconds: Int64) { self.nanoseconds = nanoseconds }

    /// The same instant; a fraction of a nanosecond is left out.
    package init(_ instant: ContinuousClock.Instant) {
        self = BootInstant(nanoseconds: 0).advanced(by: Self.start.duration(to: instant))
    }

    /// The same instant for interfaces of the standard library.
    package var continuous: ContinuousClock.Instant { Self.start.advanced(by: .nanoseconds(nanoseconds)) }

    package static var now: BootInstant { BootInstant(ContinuousClock.now) }

    private static var start: ContinuousClock.Instant { ContinuousClock().systemEpoch }

    /// A fraction of a nanosecond is rounded down. Beyond the range, 292 years, it is the first or the last instant.
    package func advanced(by duration: Duration) -> BootInstant {
        let sum = Int128(nanoseconds) + duration.nanosecondsRoundedDown
        return BootInstant(nanoseconds: Int64(clamping: sum))
    }

    package func duration(to other: BootInstant) -> Duration {
        let (span, overflow) = other.nanoseconds.subtractingReportingOverflow(nanoseconds)
        return .nanoseconds(overflow ? (other > self ? .max : .min) : span)
    }

    package static func + (left: Self, right: Duration) -> Self { left.advanced(by: right) }
    package static func - (left: Self, right: Duration) -> Self { left.advanced(by: .zero - right) }
    package static func - (left: Self, right: Self) -> Duration { right.duration(to: left) }
    package static func += (left: inout Self, right: Duration) { left = left + right }

    package static func < (left: Self, right: Self) -> Bool { left.nanoseconds < right.nanoseconds }
}

extension Duration {
    /// Whole nanoseconds; a fraction is rounded down. `components` costs three times as much, and each run needs some
    /// dozens of such numbers.
    fileprivate var nanosecondsRoundedDown: Int128 {
        let (whole, fraction) = attoseconds.quotientAndRemainder(dividingBy: 1_000_000_000)
        return fraction < 0 ? whole - 1 : whole
    }
}
