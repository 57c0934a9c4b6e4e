/// The armed timers of a loop: an indexed binary heap. Arming, moving and removing a timer are O(log n), and a timer
/// that is moved often still has one entry.
///
/// Timers with the same deadline expire in the order in which they were armed.
struct TimerQueue {
    typealias Instant = ContinuousClock.Instant
    typealias Identifier = UInt64

    /// An instant in nanoseconds since the first use of a queue. `ContinuousClock.Instant` is a type of another module
    /// whose layout is not fixed: to copy and compare it costs more than the rest of the queue.
    typealias Nanoseconds = Int64

    private struct Entry {
        var deadline: Nanoseconds
        /// Orders equal deadlines: first armed, first out.
        var order: UInt64
        var identifier: Identifier

        static func < (left: Entry, right: Entry) -> Bool {
            left.deadline == right.deadline ? left.order < right.order : left.deadline < right.deadline
        }
    }

    private var heap: [Entry] = []
    private var positions: [Identifier: Int] = [:]
    private var nextOrder: UInt64 = 0

    var count: Int { heap.count }
    var earliest: Nanoseconds? { heap.first?.deadline }
    /// The allocated capacity, for tests.
    var capacity: Int { max(heap.capacity, positions.capacity) }

    private static let zero = Instant.now

    /// An instant, rounded up so that no timer expires early; the least or the greatest number if it is out of range.
    static func nanoseconds(_ instant: Instant) -> Nanoseconds {
        let (whole, fraction) = (instant - zero).attoseconds.quotientAndRemainder(dividingBy: 1_000_000_000)
        return Int64(clamping: fraction > 0 ? whole + 1 : whole)
    }

    /// Sets a timer's deadline, whether or not it was armed before.
    mutating func arm(_ identifier: Identifier, at deadline: Instant) {
        nextOrder += 1
        let entry = Entry(deadline: Self.nanoseconds(deadline), order: nextOrder, identifier: identifier)
        if let position = positions[identifier] {
            heap[position] = entry
            siftDown(siftUp(position))
        } else {
            heap.append(entry)
            positions[identifier] = heap.count - 1
            _ = siftUp(heap.count - 1)
        }
    }

    /// Removes a timer; does nothing if it is not armed.
    mutating func disarm(_ identifier: Identifier) {
        if let position = positions[identifier] { remove(at: position) }
    }

    /// Removes and returns the earliest timer whose deadline is not after `now`.
    mutating func popExpired(at now: Instant) -> Identifier? {
        guard let first = heap.first, first.deadline <= Self.nanoseconds(now) else { return nil }
        remove(at: 0)
        return first.identifier
    }

    private mutating func remove(at position: Int) {
        positions[heap[position].identifier] = nil
        let last = heap.removeLast()
        guard position < heap.count else { return }
        heap[position] = last
        positions[last.identifier] = position
        siftDown(siftUp(position))
    }

    /// Moves the entry at a position up to its place, and returns that. Only entries that move get another position.
    private mutating func siftUp(_ start: Int) -> Int {
        let entry = heap[start]
        var child = start
        while child > 0 {
            let parent = (child - 1) / 2
            guard entry < heap[parent] else { break }
            put(heap[parent], at: child)
            child = parent
        }
        if child != start { put(entry, at: child) }
        return child
    }

    /// Moves the entry at a position down to its place.
    private mutating func siftDown(_ start: Int) {
        let entry = heap[start]
        var parent = start
        while true {
            var least = 2 * parent + 1
            if least + 1 < heap.count, heap[least + 1] < heap[least] { least += 1 }
            guard least < heap.count, heap[least] < entry else { break }
            put(heap[least], at: parent)
            parent = least
        }
        if parent != start { put(entry, at: parent) }
    }

    private mutating func put(_ entry: Entry, at position: Int) {
        heap[position] = entry
        positions[entry.identifier] = position
    }
}
