/// Remembers the cursors of the pages so far, in bounded memory.
///
/// It remembers the last ``exactCapacity`` cursors, so a cycle of at most that many pages is detected when it closes.
/// Longer cycles are detected by Brent's method: the cursor of the last page whose number is a power of two is
/// remembered, too. Such a cycle is detected after at most three passes.
struct SeenCursors<Cursor: Hashable> {
    /// The number of remembered cursors. A cursor is seldom longer than 1 KiB, so they take at most about 1 MiB.
    static var exactCapacity: Int { 1_024 }

    private var recent: Set<Cursor> = []
    /// The recent cursors in the order of their arrival, as a ring buffer that begins at `oldest`.
    private var order: [Cursor] = []
    private var oldest = 0
    private var mark: Cursor?
    private var count = 0
    private var nextMark = 1

    /// Remembers a cursor.
    ///
    /// - Returns: False if it was seen before.
    mutating func insert(_ cursor: Cursor) -> Bool {
        if cursor == mark { return false }
        guard recent.insert(cursor).inserted else { return false }
        if order.count < Self.exactCapacity {
            order.append(cursor)
        } else {
            recent.remove(order[oldest])
            order[oldest] = cursor
            oldest = (oldest + 1) % Self.exactCapacity
        }
        count += 1
        if count == nextMark {
            mark = cursor
            nextMark *= 2
        }
        return true
    }
}

extension SeenCursors: Sendable where Cursor: Sendable {}
