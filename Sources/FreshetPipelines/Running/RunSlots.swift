internal import FreshetSignals

/// The places for runs that go on at once, of all pipelines together. First come, first served; a pipeline asks for
/// one place at a time, so that none can keep the others out.
package final class RunSlots: Sendable {
    /// A place, or the wish for one.
    package struct Ticket: Hashable, Sendable {
        fileprivate let number: UInt64
    }

    /// What a request for a place came to.
    package enum Reply: Hashable, Sendable {
        case granted(Ticket)
        /// The handler will be called.
        case queued(Ticket)
    }

    private let state: Lock<RunSlotsMachine<@Sendable () -> Void>>

    /// - Parameter limit: how many places there are, at least one.
    package init(limit: Int) {
        state = Lock(RunSlotsMachine(limit: limit))
    }

    /// Asks for a place.
    ///
    /// - Parameter granted: called once when a place becomes free, from the thread that gave it back, unless there is
    ///   one now or the ticket is given back before. It must not block.
    package func request(_ granted: @escaping @Sendable () -> Void) -> Reply {
        let (ticket, isGranted) = state.withLock { $0.request(granted) }
        return isGranted ? .granted(Ticket(number: ticket)) : .queued(Ticket(number: ticket))
    }

    /// Gives a place back, or the wish for one. A second time has no effect.
    package func release(_ ticket: Ticket) {
        state.withLock { $0.release(ticket.number) }?()
    }

    /// Another number of places from now on. With fewer, those that are taken too many are not given out again.
    package func change(limit: Int) {
        for grant in state.withLock({ $0.change(limit: limit) }) { grant() }
    }

    /// How many places are taken, and how many wait for one.
    package var counts: (taken: Int, waiting: Int) {
        state.withLock { ($0.takenCount, $0.waitingCount) }
    }
}

/// Who has a place and who waits for one.
struct RunSlotsMachine<Grant> {
    private var limit: Int
    private var lastTicket: UInt64 = 0
    private var taken: Set<UInt64> = []
    private var waiting: [UInt64: Grant] = [:]
    /// Tickets in the order of their requests, those before `head` done with. One that is not in `waiting` was given
    /// back.
    private var order: [UInt64] = []
    private var head = 0

    init(limit: Int) {
        self.limit = max(1, limit)
    }

    var takenCount: Int { taken.count }
    var waitingCount: Int { waiting.count }

    mutating func request(_ grant: Grant) -> (ticket: UInt64, isGranted: Bool) {
        lastTicket += 1
        if taken.count < limit {
            taken.insert(lastTicket)
            return (lastTicket, true)
        }
        waiting[lastTicket] = grant
        order.append(lastTicket)
        return (lastTicket, false)
    }

    /// Returns whom to tell that it has a place now.
    mutating func release(_ ticket: UInt64) -> Grant? {
        if taken.remove(ticket) == nil { waiting[ticket] = nil }
        defer { compact() }
        return next()
    }

    /// Returns those who have a place now.
    mutating func change(limit: Int) -> [Grant] {
        self.limit = max(1, limit)
        var granted: [Grant] = []
        while let grant = next() { granted.append(grant) }
        compact()
        return granted
    }

    /// Gives a free place to the first who waits.
    private mutating func next() -> Grant? {
        while taken.count < limit, head < order.count {
            let ticket = order[head]
            head += 1
            guard let grant = waiting.removeValue(forKey: ticket) else { continue }
            taken.insert(ticket)
            return grant
        }
        return nil
    }

    /// Forgets tickets that are done with when they are most of the list, so that its length stays that of the queue.
    private mutating func compact() {
        guard order.count > 2 * waiting.count + 16 else { return }
        order = order[head...].filter { waiting[$0] != nil }
        head = 0
    }
}
