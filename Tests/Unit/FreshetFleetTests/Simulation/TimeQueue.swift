import Synchronization

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

/// SplitMix64: random numbers that depend on the seed only.
struct SplitMix: Sendable {
    private var state: UInt64

    init(_ seed: UInt64) { state = seed }

    /// From 0 to 1.
    mutating func fraction() -> Double {
        state &+= 0x9E37_79B9_7F4A_7C15
        var value = state
        value = (value ^ (value >> 30)) &* 0xBF58_476D_1CE4_E5B9
        value = (value ^ (value >> 27)) &* 0x94D0_49BB_1331_11EB
        return Double((value ^ (value >> 31)) >> 11) * 0x1p-53
    }
}

/// Random numbers of one member.
final class SeededFractions: Sendable {
    private let random: Mutex<SplitMix>

    init(_ seed: UInt64) { random = Mutex(SplitMix(seed)) }

    func next() -> Double { random.withLock { $0.fraction() } }
}
