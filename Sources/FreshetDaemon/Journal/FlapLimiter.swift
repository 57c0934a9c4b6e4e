import FreshetModel
import FreshetSignals

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

    private var debouncer = Debouncer<BootInstant>(quiet: Self.quiet, atMost: Self.atMost)
    /// The number of changes since the last message.
    private(set) var suppressed = 0
    /// A summary has said that the burst continues, so its end is logged too.
    private var wasLogged = false

    /// When to call ``elapsed(at:)``; nil: there is no burst.
    var due: BootInstant? { debouncer.deliversAt ?? debouncer.quietAt }

    /// A summary is due when the burst ends.
    var isPending: Bool { suppressed > 0 || wasLogged }

    mutating func changed(at now: BootInstant) -> Decision {
        guard debouncer.receive(at: now) else {
            suppressed += 1
            return .suppress
        }
        debouncer.startHolding(at: now)
        (suppressed, wasLogged) = (0, false)
        return .log
    }

    /// Returns the summary that is due; nil: no summary is due.
    mutating func elapsed(at now: BootInstant) -> Summary? {
        guard let due, now >= due else { return nil }
        _ = debouncer.elapse(at: now)
        let (changes, wasPending) = (suppressed, isPending)
        suppressed = 0
        wasLogged = debouncer.quietAt != nil
        if wasLogged {
            debouncer.startHolding(at: now)
            return .goesOn(changes: changes)
        }
        return wasPending ? .quiet(changes: changes) : nil
    }
}
