/// What stands behind one firing of a source.
///
/// A signal carries no value. Whoever must know why something happens, a log or an engine that decides by it, reads
/// the occurrences beside the signal, as ``Signal/causes``.
public struct Occurrence: Sendable, Hashable {
    /// The name of the source that fired.
    public let signal: String
    /// 1 for the source's first firing, then 2, and so on.
    public let number: UInt64
    /// When it fired, by the source's clock.
    public let instant: ContinuousClock.Instant
    /// What happened, for people: `default route via enp3s0`.
    public let detail: String?

    /// Makes an occurrence by hand, as tests and replays do. Sources make their own.
    public init(signal: String, number: UInt64, instant: ContinuousClock.Instant, detail: String? = nil) {
        self.signal = signal
        self.number = number
        self.instant = instant
        self.detail = detail
    }
}

/// One source's share in what happens next: all its firings since the last time somebody took them.
public struct Cause: Sendable, Hashable {
    /// The first of the firings.
    public let first: Occurrence
    /// The last of the firings; the first one again if there was only one.
    public internal(set) var last: Occurrence
    /// How many firings there were, at least 1.
    public internal(set) var count: Int

    /// Makes a cause by hand, as tests and replays do.
    ///
    /// - Parameters:
    ///   - first: The first occurrence.
    ///   - last: The last occurrence, or nil if there was only one.
    ///   - count: How many there were.
    public init(first: Occurrence, last: Occurrence? = nil, count: Int = 1) {
        self.first = first
        self.last = last ?? first
        self.count = count
    }
}
