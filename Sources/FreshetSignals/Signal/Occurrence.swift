/// The record of one firing of a source.
///
/// A signal carries no value. A consumer that needs the reasons, such as a log, reads the occurrences from
/// ``Signal/causes``.
public struct Occurrence: Sendable, Hashable {
    /// The name of the source that fired.
    public let signal: String
    /// 1 for the source's first firing, then 2, and so on.
    public let number: UInt64
    /// When it fired, according to the source's clock.
    public let instant: ContinuousClock.Instant
    /// A description of the event, for people: `default route via enp3s0`.
    public let detail: String?

    /// Makes an occurrence, for tests and replays. Sources make their own occurrences.
    public init(signal: String, number: UInt64, instant: ContinuousClock.Instant, detail: String? = nil) {
        self.signal = signal
        self.number = number
        self.instant = instant
        self.detail = detail
    }
}

/// All firings of one source since the causes were last taken.
public struct Cause: Sendable, Hashable {
    /// The first of the firings.
    public let first: Occurrence
    /// The last of the firings; equal to ``first`` if there was only one.
    public internal(set) var last: Occurrence
    /// The number of firings, at least 1.
    public internal(set) var count: Int

    /// Makes a cause, for tests and replays.
    ///
    /// - Parameters:
    ///   - first: The first occurrence.
    ///   - last: The last occurrence, or nil if there was only one.
    ///   - count: The number of firings.
    public init(first: Occurrence, last: Occurrence? = nil, count: Int = 1) {
        self.first = first
        self.last = last ?? first
        self.count = count
    }
}
