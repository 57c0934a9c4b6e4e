/// Decides which memory reservations are granted and which wait, in the order in which they came.
///
/// A reservation is granted as a whole and never grows, and a holder never waits for a second one. So each reservation
/// ends, and no order of requests leads to a deadlock. No reservation overtakes a waiting one, so each is granted in
/// the end, however large it is.
struct MemoryBudgetMachine {
    typealias Ticket = UInt64

    /// The limit in bytes.
    private(set) var limit: UInt64
    private(set) var taken: UInt64 = 0
    private var lastTicket: Ticket = 0
    private var granted: [Ticket: UInt64] = [:]
    private var waiting: [(ticket: Ticket, bytes: UInt64)] = []

    init(limit: UInt64) { self.limit = limit }

    var waitingCount: Int { waiting.count }

    /// Requests this number of bytes. A request above the limit is granted when no other reservation is held.
    mutating func request(_ bytes: UInt64) -> (ticket: Ticket, isGranted: Bool) {
        lastTicket += 1
        waiting.append((lastTicket, bytes))
        return (lastTicket, settle().contains(lastTicket))
    }

    /// Ends a reservation, or the wait for one. A second call has no effect.
    ///
    /// - Returns: the reservations that are granted now.
    mutating func release(_ ticket: Ticket) -> [Ticket] {
        if let bytes = granted.removeValue(forKey: ticket) {
            taken -= bytes
        } else {
            waiting.removeAll { $0.ticket == ticket }
        }
        return settle()
    }

    /// Sets another limit. Granted reservations stay.
    mutating func change(limit: UInt64) -> [Ticket] {
        self.limit = limit
        return settle()
    }

    private mutating func settle() -> [Ticket] {
        var granted: [Ticket] = []
        while let next = waiting.first {
            // After the limit was lowered, a request may exceed it.
            guard taken == 0 || taken <= limit && next.bytes <= limit - taken else { break }
            waiting.removeFirst()
            self.granted[next.ticket] = next.bytes
            taken += next.bytes
            granted.append(next.ticket)
        }
        return granted
    }
}
