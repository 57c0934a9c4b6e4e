/// The cursors that were seen, in bounded memory.
///
/// The last ``exactly`` are remembered, so a cycle of no more pages than that is seen when it closes. Longer ones are
/// found by Brent's method: one further cursor is remembered, of a page whose number is a power of two, and a cycle is
/// seen at the latest when it has been passed through three times.
struct SeenCursors<Cursor: Hashable> {
    /// How many cursors are remembered: a cursor is seldom longer than 1 KiB, so they are 1 MiB.
    static var exactly: Int { 1_024 }

    private var recent: Set<Cursor> = []
    /// The recent ones in the order of their coming, from `oldest` on, around.
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
        if order.count < Self.exactly {
            order.append(cursor)
        } else {
            recent.remove(order[oldest])
            order[oldest] = cursor
            oldest = (oldest + 1) % Self.exactly
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
