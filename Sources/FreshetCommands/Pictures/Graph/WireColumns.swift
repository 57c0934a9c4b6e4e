/// The column of each wire in the text picture. The column of a wire that has ended is used again: the wires of a
/// thousand pipelines would be wider than any screen.
struct WireColumns: Hashable, Sendable {
    /// The column of each wire.
    private(set) var column: [Int]
    /// The number of columns.
    private(set) var count: Int
    /// For each row, the signals that are named just above it, not at the top.
    private(set) var late: [[Int]]

    /// - Parameter isCrowded: whether a signal with a single subscriber begins above that pipeline.
    init(_ graph: PipelineGraph, isCrowded: Bool) {
        var listeners = [[Int]](repeating: [], count: graph.wires.count)
        for (row, line) in graph.rows.enumerated() { for wire in line.subscriptions { listeners[wire].append(row) } }
        column = [Int](repeating: 0, count: graph.wires.count)
        late = [[Int]](repeating: [], count: graph.rows.count)
        count = 0
        for (wire, rows) in listeners.enumerated() where graph.wires[wire].origin == nil {
            if isCrowded, rows.count == 1, let row = rows.first {
                late[row].append(wire)
            } else {
                column[wire] = count
                count += 1
            }
        }
        // Wires of pipelines begin below their row, beside the signals, so that none is below the name of another.
        var ends: [Int] = []
        for (wire, rows) in listeners.enumerated() {
            guard let origin = graph.wires[wire].origin else { continue }
            let end = max(origin, rows.last ?? origin)
            if let free = ends.firstIndex(where: { $0 < origin }) {
                ends[free] = end
                column[wire] = count + free
            } else {
                column[wire] = count + ends.count
                ends.append(end)
            }
        }
        count += ends.count
        // Late signals are to the right of all other wires, so that their names cross no wire.
        for wires in late { for (place, wire) in wires.enumerated() { column[wire] = count + place } }
        count += late.map(\.count).max() ?? 0
    }
}
