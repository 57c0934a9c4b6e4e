/// Finds bursts, which are series of elements with gaps no longer than `quiet`: it lets the first element of a burst
/// through and holds the others.
///
/// | state | an element comes | `quiet` passes without any | `atMost` passes since the first one held |
/// | --- | --- | --- | --- |
/// | quiet | passes, burst | | |
/// | burst | is held | what is held passes, quiet | what is held passes, still burst |
///
/// At the same instant elements come before timers. So at the last instant of a burst an element still belongs to the
/// burst, unless ``elapse(at:)`` has ended the burst before. A quiet period of zero means that there are no bursts.
///
/// The debouncer only decides what passes; the caller keeps the held elements.
///
/// It is inlinable, so that a module which uses it with its own instant has no unspecialized code.
@usableFromInline
package struct Debouncer<Instant: InstantProtocol>: Hashable, Sendable where Instant.Duration == Duration {
    /// The time without an element after which a burst is over.
    @usableFromInline package var quiet: Duration
    /// The longest time that an element is held.
    @usableFromInline package var atMost: Duration
    /// The last element of the burst; nil: there is no burst.
    @usableFromInline var last: Instant?
    /// The first element that is held.
    @usableFromInline var firstHeld: Instant?

    /// A debouncer without a burst.
    @inlinable package init(quiet: Duration, atMost: Duration) {
        self.quiet = quiet
        self.atMost = atMost
    }

    /// When the burst ends, if no element comes before; nil: there is no burst.
    @inlinable package var quietAt: Instant? { last?.advanced(by: quiet) }

    /// When the held elements pass, if no element comes before; nil: nothing is held.
    @inlinable package var deliversAt: Instant? {
        guard let firstHeld, let quietAt else { return nil }
        return min(quietAt, firstHeld.advanced(by: atMost))
    }

    /// Whether an element that comes now belongs to the burst.
    @inlinable package func isBurst(at now: Instant) -> Bool {
        guard quiet > .zero, let quietAt else { return false }
        return now <= quietAt
    }

    /// Receives an element; returns whether it passes. Otherwise it is held.
    @inlinable package mutating func receive(at now: Instant) -> Bool {
        guard isBurst(at: now) else {
            last = now
            return true
        }
        hold(at: now)
        return false
    }

    /// Receives an element that is held in any case.
    @inlinable package mutating func hold(at now: Instant) {
        last = now
        firstHeld = firstHeld ?? now
    }

    /// Receives an element that neither passes nor is held: it prolongs a burst and begins none.
    @inlinable package mutating func touch(at now: Instant) {
        if isBurst(at: now) { last = now }
    }

    /// Advances the time, after all elements of this instant; returns whether the held elements pass now.
    @inlinable package mutating func elapse(at now: Instant) -> Bool {
        let delivers = deliversAt.map { now >= $0 } ?? false
        if delivers { firstHeld = nil }
        if let quietAt, now >= quietAt { last = nil }
        return delivers
    }

    /// Counts `atMost` from this instant of a burst on, instead of from the next element that is held.
    @inlinable package mutating func startHolding(at now: Instant) {
        if last != nil { firstHeld = now }
    }

    /// The held elements were taken otherwise.
    @inlinable package mutating func nothingIsHeld() {
        firstHeld = nil
    }
}
