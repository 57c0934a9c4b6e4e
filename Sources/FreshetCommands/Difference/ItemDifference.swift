/// The difference between two lists, by the keys of their items.
///
/// The time is O(N log N) in the number of items, for any difference.
struct ItemDifference {
    struct Change: Hashable {
        enum Kind: String, Hashable {
            case added, removed, changed, moved
        }

        var kind: Kind
        var key: ItemKey
        /// The index in the old list; nil if the item was added.
        var old: Int?
        /// The index in the new list; nil if the item was removed.
        var new: Int?
        /// Whether the order among the remaining items has changed. A changed item may have moved too.
        var hasMoved = false
    }

    /// First the removed items, by old index; then the others, by new index.
    let changes: [Change]

    init(from old: ItemList, to new: ItemList) {
        let before = Dictionary(old.items.enumerated().map { ($1.key, $0) }) { first, _ in first }
        let now = Set(new.items.map(\.key))
        let stayed = new.items.enumerated().compactMap { index, item in
            before[item.key].map { (old: $0, new: index) }
        }
        let kept = Self.longestRise(of: stayed.map(\.old))
        var changes = old.items.enumerated().compactMap { index, item in
            now.contains(item.key) ? nil : Change(kind: .removed, key: item.key, old: index)
        }
        var next = 0
        for (index, item) in new.items.enumerated() {
            guard let place = before[item.key] else {
                changes.append(Change(kind: .added, key: item.key, new: index))
                continue
            }
            let hasMoved = !kept[next]
            next += 1
            let hasChanged = old.value(place) != new.value(index)
            guard hasMoved || hasChanged else { continue }
            changes.append(
                Change(
                    kind: hasChanged ? .changed : .moved, key: item.key, old: place, new: index, hasMoved: hasMoved))
        }
        self.changes = changes
    }

    func count(_ kind: Change.Kind) -> Int { changes.count { $0.kind == kind } }

    /// A longest increasing subsequence of these different numbers: true for each number that belongs to it. These
    /// items have not moved.
    static func longestRise(of numbers: [Int]) -> [Bool] {
        // For each length, the index of the smallest number that ends a subsequence of this length.
        var ends: [Int] = []
        var previous = [Int?](repeating: nil, count: numbers.count)
        for (index, number) in numbers.enumerated() {
            var (low, high) = (0, ends.count)
            while low < high {
                let middle = (low + high) / 2
                if numbers[ends[middle]] < number { low = middle + 1 } else { high = middle }
            }
            previous[index] = low > 0 ? ends[low - 1] : nil
            if low == ends.count { ends.append(index) } else { ends[low] = index }
        }
        var belongs = [Bool](repeating: false, count: numbers.count)
        var index = ends.last
        while let current = index {
            belongs[current] = true
            index = previous[current]
        }
        return belongs
    }
}
