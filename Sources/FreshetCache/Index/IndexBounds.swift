/// The range of each kind of value in the index. A disk may return other bytes than were written, and so rows of the index
/// are hostile input: a value outside of its range was not written by us.
///
/// The ranges are such that no sum, difference or successor of a few values overflows.
enum IndexBounds {
    /// Numbers of generations and runs: what JSON has exactly. See ``next(after:)``.
    static let numbers: ClosedRange<Int64> = 1...(1 << 53 - 1)
    /// Nanoseconds since 1970, to the year 2255. A week or a Retry-After after that still fits.
    static let times: ClosedRange<Int64> = 0...9_000_000_000_000_000_000
    /// Bytes of a file: 1 PiB.
    static let sizes: ClosedRange<Int64> = 0...(1 << 50)
    /// Attempts, requests and pages.
    static let counts: ClosedRange<Int64> = 0...1_000_000_000
    static let flags: ClosedRange<Int64> = 0...1
    /// Bytes of a text without a limit of its own, such as the name of a part.
    static let textBytes = 1 << 20

    /// The number after this one. The last one is its own successor: the digest still tells the contents apart.
    static func next(after number: Int64) -> Int64 { min(max(number, 0), numbers.upperBound - 1) + 1 }
}

extension Int64 {
    /// The sum, or the number nearest to it.
    func addingClamped(_ other: Int64) -> Int64 {
        let (sum, overflow) = addingReportingOverflow(other)
        return overflow ? (other < 0 ? .min : .max) : sum
    }
}

/// Values as they may be used, whatever the disk returns: the start has replaced what was out of range
/// (``IndexValidation``), and what has been damaged since is brought into its range here.
extension SQLiteRow {
    func number(_ column: Int32) -> Int64 { integer(column).clamped(to: IndexBounds.numbers) }
    func size(_ column: Int32) -> Int64 { integer(column).clamped(to: IndexBounds.sizes) }
    func count(_ column: Int32) -> Int64 { integer(column).clamped(to: IndexBounds.counts) }
    func flag(_ column: Int32) -> Bool { integer(column) == 1 }
    func time(_ column: Int32) -> WallTime { WallTime(nanoseconds: integer(column).clamped(to: IndexBounds.times)) }

    /// Nil also for a number out of range.
    func optionalNumber(_ column: Int32) -> Int64? {
        optionalInteger(column).flatMap { IndexBounds.numbers.contains($0) ? $0 : nil }
    }

    /// Nil also for a time out of range.
    func optionalTime(_ column: Int32) -> WallTime? {
        optionalInteger(column).flatMap { IndexBounds.times.contains($0) ? WallTime(nanoseconds: $0) : nil }
    }
}

extension Comparable {
    func clamped(to range: ClosedRange<Self>) -> Self { min(max(self, range.lowerBound), range.upperBound) }
}

extension SQLiteValue {
    /// A time, or NULL: what we write is in the range that we read.
    static func time(_ time: WallTime?) -> SQLiteValue {
        SQLiteValue(time?.nanoseconds.clamped(to: IndexBounds.times))
    }
}
