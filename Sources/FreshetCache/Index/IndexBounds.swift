import FreshetModel

/// The range of each kind of value in the index. A disk may return other bytes than were written, so rows of the index
/// are untrusted input: Freshet did not write a value that is out of range.
///
/// The ranges are such that no sum, difference or successor of a few values overflows.
enum IndexBounds {
    /// Numbers of generations and runs: integers that JSON represents exactly. See ``next(after:)``.
    static let numbers: ClosedRange<Int64> = 1...(1 << 53 - 1)
    /// Nanoseconds since 1970, to the year 2255. One week or a `Retry-After` beyond that still fits.
    static let times: ClosedRange<Int64> = 0...9_000_000_000_000_000_000
    /// Bytes of a file: 1 PiB.
    static let sizes: ClosedRange<Int64> = 0...(1 << 50)
    /// Attempts, requests and pages.
    static let counts: ClosedRange<Int64> = 0...1_000_000_000
    static let flags: ClosedRange<Int64> = 0...1
    /// The limit in bytes of texts that have no other limit, such as the name of a part.
    static let textBytes = 1 << 20

    /// The number after this one. The last number is its own successor: the digest still distinguishes the contents.
    static func next(after number: Int64) -> Int64 { min(max(number, 0), numbers.upperBound - 1) + 1 }
}

extension Int64 {
    /// The sum, or the number nearest to it.
    func addingClamped(_ other: Int64) -> Int64 {
        let (sum, overflow) = addingReportingOverflow(other)
        return overflow ? (other < 0 ? .min : .max) : sum
    }
}

/// Reads values so that they are always in range: the start has replaced values that were out of range
/// (``IndexValidation``), and values that were damaged since are brought into their range here.
extension SQLiteRow {
    func number(_ column: Int32) -> Int64 { integer(column).clamped(to: IndexBounds.numbers) }
    func size(_ column: Int32) -> Int64 { integer(column).clamped(to: IndexBounds.sizes) }
    func count(_ column: Int32) -> Int64 { integer(column).clamped(to: IndexBounds.counts) }
    func flag(_ column: Int32) -> Bool { integer(column) == 1 }
    func time(_ column: Int32) -> WallTime { WallTime(nanoseconds: integer(column).clamped(to: IndexBounds.times)) }

    /// Nil: the value is not a digest.
    func digest(_ column: Int32) -> ContentDigest? { withBlob(column) { ContentDigest(bytes: $0) } }

    /// Returns nil also for a number that is out of range.
    func optionalNumber(_ column: Int32) -> Int64? {
        optionalInteger(column).flatMap { IndexBounds.numbers.contains($0) ? $0 : nil }
    }

    /// Returns nil also for a time that is out of range.
    func optionalTime(_ column: Int32) -> WallTime? {
        optionalInteger(column).flatMap { IndexBounds.times.contains($0) ? WallTime(nanoseconds: $0) : nil }
    }
}

extension Comparable {
    func clamped(to range: ClosedRange<Self>) -> Self { min(max(self, range.lowerBound), range.upperBound) }
}

extension SQLiteValue {
    /// A time, or NULL. A written time is always in the range that is read.
    static func time(_ time: WallTime?) -> SQLiteValue {
        SQLiteValue(time?.nanoseconds.clamped(to: IndexBounds.times))
    }
}
