/// When what may come again and again is news: the first change at once, then one summary with the number of changes
/// when it has been calm for a while. A link that flaps is a line or two, not two a flap.
struct FlapLimiter: Hashable, Sendable {
    /// How long without a change is calm.
    static let quiet: Duration = .seconds(5)
    /// What never calms down is said to be so this often.
    static let atMost: Duration = .seconds(60)

    enum Decision: Hashable, Sendable {
        case say
        /// It is counted, and the summary will tell.
        case passOver
    }

    enum Summary: Hashable, Sendable {
        /// It is calm again, after so many changes that nothing was said of.
        case calm(changes: Int)
        /// So many were passed over, and it goes on.
        case goesOn(changes: Int)
    }

    private struct Burst: Hashable {
        var last: ContinuousClock.Instant
        /// Since when changes are passed over.
        var since: ContinuousClock.Instant
        var changes = 0
        /// It was said that it goes on, so its end is news.
        var wasSaid = false
    }

    private var storm: Burst?

    /// When ``elapsed(at:)`` is to be called; nil: it is calm.
    var due: ContinuousClock.Instant? {
        storm.map { $0.changes == 0 ? $0.last + Self.quiet : min($0.last + Self.quiet, $0.since + Self.atMost) }
    }

    /// Changes that nothing was said of yet.
    var passedOver: Int { storm?.changes ?? 0 }
    /// There is, or may be, something to be summed up.
    var isOwed: Bool { storm.map { $0.changes > 0 || $0.wasSaid } ?? false }

    mutating func changed(at now: ContinuousClock.Instant) -> Decision {
        guard var storm, now < storm.last + Self.quiet else {
            storm = Burst(last: now, since: now)
            return .say
        }
        storm.last = now
        storm.changes += 1
        self.storm = storm
        return .passOver
    }

    /// What there is to say after a time without calls; nil: nothing, or it is not due yet.
    mutating func elapsed(at now: ContinuousClock.Instant) -> Summary? {
        guard let due, now >= due, let storm else { return nil }
        if now >= storm.last + Self.quiet {
            self.storm = nil
            return storm.changes > 0 || storm.wasSaid ? .calm(changes: storm.changes) : nil
        }
        self.storm = Burst(last: storm.last, since: now, wasSaid: true)
        return .goesOn(changes: storm.changes)
    }
}
