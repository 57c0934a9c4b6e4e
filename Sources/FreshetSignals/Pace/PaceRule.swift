/// Decides how an operator holds back elements: when an element is due, and whether a newer element replaces a held
/// one.
///
/// A rule is a struct without a clock: time is a parameter, and never goes back.
protocol PaceRule: Sendable {
    associatedtype Instant: InstantProtocol where Instant.Duration == Duration

    /// An element arrived. A held element that was due before has been delivered already, if the consumer waits for
    /// one.
    ///
    /// - Parameter isHolding: Whether an element is held.
    mutating func arrival(at now: Instant, isHolding: Bool) -> PaceDecision<Instant>

    /// The held element was delivered.
    mutating func delivered(at now: Instant)

    /// Whether the end of the upstream makes a held element due immediately, and not at its time.
    var flushesAtEnd: Bool { get }
}

/// The decision about an element that arrived.
enum PaceDecision<Instant: InstantProtocol>: Equatable {
    /// It is due immediately. It replaces a held element.
    case pass
    /// It is due at this instant, after all elements of that instant. It replaces a held element.
    case hold(until: Instant)
    /// It is dropped.
    case drop
}

extension Duration {
    /// The longest time that an operator waits; longer times are shortened to it. It is over a hundred years, and no
    /// clock overflows with it.
    static var longestPace: Duration { .seconds(1 << 32) }

    /// The duration, limited to zero … ``longestPace``. A negative duration counts as zero.
    var asPace: Duration { min(max(self, .zero), .longestPace) }
}
