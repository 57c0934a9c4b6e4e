import FreshetModel

/// Names with a deadline each, the earliest first. Setting, moving and removing a deadline are O(log n) on average.
struct DeadlineQueue {
    typealias Instant = BootInstant

    private struct Entry {
        var deadline: Instant
        var name: String
    }

    /// A binary heap. An entry whose name has another deadline now is stale, and is skipped.
    private var heap: [Entry] = []
    private var deadlines: [String: Instant] = [:]

    /// The entries in memory, stale ones included, for tests.
    var entryCount: Int { heap.count }

    /// Sets the deadline of a name; nil removes it.
    mutating func set(_ name: String, to deadline: Instant?) {
        guard deadlines[name] != deadline else { return }
        deadlines[name] = deadline
        if let deadline {
            heap.append(Entry(deadline: deadline, name: name))
            siftUp(heap.count - 1)
        }
        // So that deadlines that move often do not fill the memory. A sorted array is a heap.
        if heap.count > 2 * deadlines.count + 64 {
            heap = deadlines.map { Entry(deadline: $0.value, name: $0.key) }.sorted { $0.deadline < $1.deadline }
        }
    }

    /// The earliest deadline; nil: there is none.
    mutating func earliest() -> Instant? {
        while let first = heap.first, deadlines[first.name] != first.deadline { removeFirst() }
        return heap.first?.deadline
    }

    /// Removes the names whose deadline is not after `now`, and returns them in their alphabetical order.
    mutating func popDue(at now: Instant) -> [String] {
        var names: [String] = []
        while let deadline = earliest(), deadline <= now {
            deadlines[heap[0].name] = nil
            names.append(heap[0].name)
            removeFirst()
        }
        return names.sorted()
    }

    private mutating func removeFirst() {
        let last = heap.removeLast()
        guard !heap.isEmpty else { return }
        heap[0] = last
        siftDown()
    }

    private mutating func siftUp(_ start: Int) {
        var child = start
        while child > 0 {
            let parent = (child - 1) / 2
            guard heap[child].deadline < heap[parent].deadline else { return }
            heap.swapAt(child, parent)
            child = parent
        }
    }

    private mutating func siftDown() {
        var parent = 0
        while true {
            var least = parent
            for child in [2 * parent + 1, 2 * parent + 2]
            where child < heap.count && heap[child].deadline < heap[least].deadline {
                least = child
            }
            guard least != parent else { return }
            heap.swapAt(parent, least)
            parent = least
        }
    }
}
