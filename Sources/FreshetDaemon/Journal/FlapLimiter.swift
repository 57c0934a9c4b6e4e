/// Limits the messages about a state that may change repeatedly. The first change is logged immediately; the following
/// changes are counted and summed up after a quiet period. So a flapping link causes one or two lines, not two per
/// flap.
struct FlapLimiter: Hashable, Sendable {
    /// The quiet period: a burst ends after this time without a change.
    static let quiet: Duration = .seconds(5)
    /// The interval of the summaries of a burst that does not end.
    static let atMost: Duration = .seconds(60)

    enum Decision: Hashable, Sendable {
        case log
        /// The change is only counted; the summary includes it.
        case suppress
    }

    enum Summary: Hashable, Sendable {
        /// The burst has ended after this number of suppressed changes.
        case quiet(changes: Int)
        /// This number of changes was suppressed, and the burst continues.
        case goesOn(changes: Int)
    }

    private struct Burst: Hashable {
        var last: ContinuousClock.Instant
        /// Since when changes are suppressed.
        var since: ContinuousClock.Instant
        var changes = 0
        /// A summary has said that the burst continues, so its end is logged too.
        var wasLogged = false
    }

    private var burst: Burst?

    /// When to call ``elapsed(at:)``; nil: there is no burst.
    var due: ContinuousClock.Instant? {
        burst.map { $0.changes == 0 ? $0.last + Self.quiet : min($0.last + Self.quiet, $0.since + Self.atMost) }
    }

    /// The number of changes since the last message.
    var suppressed: Int { burst?.changes ?? 0 }
    /// A summary is due when the burst ends.
    var isPending: Bool { burst.map { $0.changes > 0 || $0.wasLogged } ?? false }

    mutating func changed(at now: ContinuousClock.Instant) -> Decision {
        guard var burst, now < burst.last + Self.quiet else {
            burst = Burst(last: now, since: now)
            return .log
        }
        burst.last = now
        burst.changes += 1
        self.burst = burst
        return .suppress
    }

    /// Returns the summary that is due; nil: no summary is due.
    mutating func elapsed(at now: ContinuousClock.Instant) -> Summary? {
        guard let due, now >= due, let burst else { return nil }
        if now >= burst.last + Self.quiet {
            self.burst = nil
            return burst.changes > 0 || burst.wasLogged ? .quiet(changes: burst.changes) : nil
        }
        self.burst = Burst(last: burst.last, since: now, wasLogged: true)
        return .goesOn(changes: burst.changes)
    }
}
