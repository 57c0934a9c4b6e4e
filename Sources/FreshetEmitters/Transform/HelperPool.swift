/// Who may use a jq helper when: at most so many at once, the rest in order; a helper that is free stays warm for a
/// while. It knows helpers by nothing but that they are there.
struct HelperPool<Helper> {
    /// Names a request that waits.
    typealias Ticket = UInt64

    enum EnterAction {
        /// Go on, with a warm helper or by starting one.
        case proceed(Helper?)
        /// Wait until the ticket is called.
        case wait
    }

    enum LeaveAction {
        /// The next in line goes on, with a warm helper or by starting one.
        case call(Ticket, Helper?)
        /// Nobody waits; see that ``cool(at:)`` is called at this instant.
        case cool(at: ContinuousClock.Instant)
        /// Nobody waits, and nothing is to be kept.
        case none
    }

    /// Two: one endless program does not hold up the others for the length of its deadline.
    static var limit: Int { 2 }
    /// How long a free helper stays: long enough for the pipelines of one burst, short enough that an idle daemon has
    /// none.
    let warmth: Duration
    private var busy = 0
    private var waiting: [Ticket] = []
    /// The one that was free last comes last and is used first, so that the others cool.
    private(set) var warm: [(helper: Helper, since: ContinuousClock.Instant)] = []

    init(warmth: Duration = .seconds(5)) { self.warmth = warmth }

    mutating func enter(_ ticket: Ticket) -> EnterAction {
        guard busy < Self.limit else {
            waiting.append(ticket)
            return .wait
        }
        busy += 1
        return .proceed(warm.popLast()?.helper)
    }

    /// A request is over.
    ///
    /// - Parameter helper: the helper if it can serve again, nil if it is gone.
    mutating func leave(_ helper: Helper?, at now: ContinuousClock.Instant) -> LeaveAction {
        guard waiting.isEmpty else {
            return .call(waiting.removeFirst(), helper ?? warm.popLast()?.helper)
        }
        busy -= 1
        guard let helper else { return .none }
        warm.append((helper, now))
        return .cool(at: now + warmth)
    }

    /// A request is cancelled. Returns whether it was still waiting; if not, it has been called and will leave.
    mutating func abandon(_ ticket: Ticket) -> Bool {
        guard let index = waiting.firstIndex(of: ticket) else { return false }
        waiting.remove(at: index)
        return true
    }

    /// The helpers that have been free for long enough: end them. And when to look again, if any are left.
    mutating func cool(at now: ContinuousClock.Instant) -> (ended: [Helper], again: ContinuousClock.Instant?) {
        let ended = warm.prefix { now - $0.since >= warmth }
        warm.removeFirst(ended.count)
        return (ended.map(\.helper), warm.first.map { $0.since + warmth })
    }
}

extension HelperPool.EnterAction: Equatable where Helper: Equatable {}
extension HelperPool.LeaveAction: Equatable where Helper: Equatable {}
