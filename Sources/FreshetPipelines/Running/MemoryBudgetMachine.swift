/// Which reservations of memory hold and which wait, in the order in which they came.
///
/// A reservation is granted as a whole and never grows, and whoever holds one waits for no other. So each comes to an end by
/// itself, and no order in which they are asked for leads to a deadlock. Nobody goes ahead of another that waits, so each
/// is granted in the end, however large it is.
struct MemoryBudgetMachine {
    typealias Ticket = UInt64

    /// Bytes.
    private(set) var limit: UInt64
    private(set) var taken: UInt64 = 0
    private var lastTicket: Ticket = 0
    private var granted: [Ticket: UInt64] = [:]
    private var waiting: [(ticket: Ticket, bytes: UInt64)] = []

    init(limit: UInt64) { self.limit = limit }

    var waitingCount: Int { waiting.count }

    /// Asks for so many bytes. More than the limit are granted as the limit is: alone.
    mutating func request(_ bytes: UInt64) -> (ticket: Ticket, isGranted: Bool) {
        lastTicket += 1
        waiting.append((lastTicket, bytes))
        return (lastTicket, settle().contains(lastTicket))
    }

    /// Ends a reservation, or the wait for one. A second time has no effect.
    ///
    /// - Returns: whose reservations hold from now on.
    mutating func release(_ ticket: Ticket) -> [Ticket] {
        if let bytes = granted.removeValue(forKey: ticket) {
            taken -= bytes
        } else {
            waiting.removeAll { $0.ticket == ticket }
        }
        return settle()
    }

    /// Sets another limit. Reservations that hold stay.
    mutating func change(limit: UInt64) -> [Ticket] {
        self.limit = limit
        return settle()
    }

    /// The reservations that are ahead of one that waits; nil: it does not wait.
    func ahead(of ticket: Ticket) -> Int? { waiting.firstIndex { $0.ticket == ticket } }

    private mutating func settle() -> [Ticket] {
        var granted: [Ticket] = []
        while let next = waiting.first {
            // With a limit that was lowered since, what was asked for may be more than all.
            guard taken == 0 || taken <= limit && next.bytes <= limit - taken else { break }
            waiting.removeFirst()
            self.granted[next.ticket] = next.bytes
            taken += next.bytes
            granted.append(next.ticket)
        }
        return granted
    }
}
