/// What became of the items of a list, by their keys.
///
/// Its time grows as N log N with the number of items, whatever the difference is.
struct ItemDifference {
    struct Change: Hashable {
        enum Kind: String, Hashable {
            case added, removed, changed, moved
        }

        var kind: Kind
        var key: ItemKey
        /// Its place before; nil: there was none.
        var old: Int?
        /// Its place now; nil: there is none.
        var new: Int?
        /// It is in another order among those that stayed. A changed item may have moved too.
        var hasMoved = false
    }

    /// First what was removed, by its place before; then the others, by their places now.
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

    /// Which of these numbers, all different, belong to a longest part of them that rises: those that need not move.
    static func longestRise(of numbers: [Int]) -> [Bool] {
        // Of each length so far, the index of the smallest number that such a part can end with.
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
