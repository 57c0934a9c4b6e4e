/// By which rule an operator holds back elements: when each of them is due, and what newer ones do to one that is held.
///
/// A struct without a clock: time is a parameter, and never goes back.
protocol PaceRule: Sendable {
    associatedtype Instant: InstantProtocol where Instant.Duration == Duration

    /// An element arrived. One that was due before has gone out already, if somebody asked for it.
    ///
    /// - Parameter isHolding: There is one that was not delivered.
    mutating func arrival(at now: Instant, isHolding: Bool) -> PaceDecision<Instant>

    /// The held element was delivered.
    mutating func delivered(at now: Instant)

    /// At the end of the upstream a held element is due at once, and not at its time.
    var endsAtOnce: Bool { get }
}

/// What becomes of an element that arrived.
enum PaceDecision<Instant: InstantProtocol>: Equatable {
    /// It is due at once. It takes the place of one that was held.
    case pass
    /// It is due at this instant, after all elements of that instant. It takes the place of one that was held.
    case hold(until: Instant)
    /// It is dropped.
    case drop
}

extension Duration {
    /// The longest time that an operator waits; a longer one is taken for this. Some hundred years, which no clock
    /// takes for an overflow.
    static var longestPace: Duration { .seconds(1 << 32) }

    /// Between zero and ``longestPace``: a negative time has passed already.
    var asPace: Duration { min(max(self, .zero), .longestPace) }
}
