/// An instant of the wall clock, for times that are kept across restarts. This type does not read a clock.
package struct WallTime: Hashable, Comparable, Sendable {
    /// Nanoseconds since 1970-01-01 00:00 UTC.
    package var nanoseconds: Int64

    package init(nanoseconds: Int64) { self.nanoseconds = nanoseconds }

    /// From whole seconds since 1970-01-01 00:00 UTC; beyond the year 2262 it is the last instant that fits.
    package init(seconds: Int64) { self.init(seconds, by: 1_000_000_000) }

    /// From microseconds since 1970-01-01 00:00 UTC; beyond the year 2262 it is the last instant that fits.
    package init(microseconds: Int64) { self.init(microseconds, by: 1_000) }

    private init(_ value: Int64, by factor: Int64) {
        let (product, overflow) = value.multipliedReportingOverflow(by: factor)
        nanoseconds = overflow ? (value < 0 ? .min : .max) : product
    }

    /// Microseconds since 1970-01-01 00:00 UTC.
    package var microseconds: Int64 { nanoseconds / 1_000 }

    /// The time until another instant, negative if that is earlier. An overflow, which only nonsensical times cause, is
    /// clamped.
    package func duration(to other: WallTime) -> Duration {
        let (span, overflow) = other.nanoseconds.subtractingReportingOverflow(nanoseconds)
        return .nanoseconds(overflow ? (other > self ? .max : .min) : span)
    }

    /// The instant after a time, which is rounded toward zero to whole microseconds. Beyond the range, it is the last
    /// or the first instant that fits.
    package func advanced(by span: Duration) -> WallTime {
        let microseconds = span.attoseconds / 1_000_000_000_000
        return WallTime(nanoseconds: Int64(clamping: Int128(nanoseconds) + microseconds * 1_000))
    }

    package static func < (left: Self, right: Self) -> Bool { left.nanoseconds < right.nanoseconds }
}
