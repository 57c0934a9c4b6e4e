/// A queue: first in, first out. Both ends are amortised O(1).
struct Fifo<Element> {
    private var incoming: [Element] = []
    /// Reversed: its last element is the queue's first.
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

    /// Removes and returns all elements, in order.
    mutating func removeAll() -> [Element] {
        defer {
            incoming = []
            outgoing = []
        }
        return outgoing.reversed() + incoming
    }
}
