/// Values with numeric keys, in the order in which they were added.
///
/// Adding is amortised O(1), removing O(log n), iterating O(n): keys only grow, so the slots are sorted by key. Slots
/// of removed values stay empty until they are the majority.
struct OrderedTable<Value> {
    /// The number of a slot; never used twice in one table.
    struct Key: Hashable, Sendable {
        fileprivate let number: UInt64
    }

    fileprivate struct Slot {
        let key: Key
        var value: Value?

        @discardableResult
        mutating func update<Result>(_ body: (inout Value) -> Result) -> Result? {
            // Move the value out and back, so that it is changed in place and never copied.
            guard var changing = value.take() else { return nil }
            defer { value = changing }
            return body(&changing)
        }
    }

    private var slots: [Slot] = []
    private var lastNumber: UInt64 = 0

    /// The number of values.
    private(set) var count = 0

    /// How many empty slots a table may keep, even if it has few values, before it is compacted.
    static var toleratedGaps: Int { 16 }

    mutating func append(_ value: Value) -> Key {
        lastNumber += 1
        let key = Key(number: lastNumber)
        slots.append(Slot(key: key, value: value))
        count += 1
        return key
    }

    /// Removes and returns the value, or returns nil if the table has no value with this key.
    mutating func remove(_ key: Key) -> Value? {
        guard let index = index(of: key), let value = slots[index].value else { return nil }
        slots[index].value = nil
        count -= 1
        let gaps = slots.count - count
        if gaps > count, gaps > Self.toleratedGaps {
            slots.removeAll { $0.value == nil }
        }
        return value
    }

    /// Removes and returns all values, in order.
    mutating func removeAll() -> [Value] {
        defer {
            slots = []
            count = 0
        }
        return slots.compactMap(\.value)
    }

    /// Changes one value in place. Returns nil if the table has no value with this key.
    mutating func update<Result>(_ key: Key, _ body: (inout Value) -> Result) -> Result? {
        guard let index = index(of: key) else { return nil }
        return slots[index].update(body)
    }

    /// Changes all values in place, in order.
    mutating func updateEach(_ body: (inout Value) -> Void) {
        for index in slots.indices {
            slots[index].update(body)
        }
    }

    /// Visits all values, in order.
    func forEach(_ body: (Value) -> Void) {
        for slot in slots {
            if let value = slot.value {
                body(value)
            }
        }
    }

    private func index(of key: Key) -> Int? {
        var low = 0
        var high = slots.count
        while low < high {
            let middle = low + (high - low) / 2
            if slots[middle].key.number < key.number {
                low = middle + 1
            } else {
                high = middle
            }
        }
        return low < slots.count && slots[low].key == key ? low : nil
    }
}

extension OrderedTable: Sendable where Value: Sendable {}
extension OrderedTable.Slot: Sendable where Value: Sendable {}
