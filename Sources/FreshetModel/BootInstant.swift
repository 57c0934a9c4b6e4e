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
        let (seconds, attoseconds) = duration.components
        let (whole, isLarge) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
        // Rounded toward zero, and one less for a negative fraction.
        var fraction = attoseconds / 1_000_000_000
        if attoseconds % 1_000_000_000 < 0 { fraction -= 1 }
        let (span, isOver) = whole.addingReportingOverflow(fraction)
        let (sum, isBeyond) = nanoseconds.addingReportingOverflow(span)
        return BootInstant(nanoseconds: isLarge || isOver || isBeyond ? (duration < .zero ? .min : .max) : sum)
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
