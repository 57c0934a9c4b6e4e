/// A binary heap of items with their instants. Items of the same instant keep their order.
struct TimeQueue<Item> {
    private struct Entry {
        var at: ContinuousClock.Instant
        var order: Int
        var item: Item

        func isBefore(_ other: Entry) -> Bool { at == other.at ? order < other.order : at < other.at }
    }

    private var entries: [Entry] = []
    private var order = 0

    var first: ContinuousClock.Instant? { entries.first?.at }

    mutating func push(_ item: Item, at instant: ContinuousClock.Instant) {
        order += 1
        entries.append(Entry(at: instant, order: order, item: item))
        var index = entries.count - 1
        while index > 0, entries[index].isBefore(entries[(index - 1) / 2]) {
            entries.swapAt(index, (index - 1) / 2)
            index = (index - 1) / 2
        }
    }

    mutating func pop() -> Item? {
        guard let first = entries.first, let last = entries.popLast() else { return nil }
        guard !entries.isEmpty else { return first.item }
        entries[0] = last
        var index = 0
        while true {
            var least = index
            for child in [2 * index + 1, 2 * index + 2]
            where child < entries.count && entries[child].isBefore(entries[least]) {
                least = child
            }
            guard least != index else { return first.item }
            entries.swapAt(index, least)
            index = least
        }
    }
}
