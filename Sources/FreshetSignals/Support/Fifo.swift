/// A queue: first in, first out, amortised O(1) at both ends.
struct Fifo<Element> {
    private var incoming: [Element] = []
    /// Reversed, so that its last is the queue's first.
    private var outgoing: [Element] = []

    var isEmpty: Bool { incoming.isEmpty && outgoing.isEmpty }

    mutating func append(_ element: Element) {
        incoming.append(element)
    }

    mutating func removeFirst() -> Element? {
        if outgoing.isEmpty {
            guard incoming.count > 1 else { return incoming.popLast() }
            outgoing = incoming.reversed()
            incoming.removeAll(keepingCapacity: true)
        }
        return outgoing.popLast()
    }

    /// Removes and returns all, in order.
    mutating func removeAll() -> [Element] {
        defer {
            incoming = []
            outgoing = []
        }
        return outgoing.reversed() + incoming
    }
}
