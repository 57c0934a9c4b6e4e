/// Which column of the text picture each wire has. What has ended makes room for others, since a thousand pipelines would
/// be wider than any screen.
struct WireColumns: Hashable, Sendable {
    /// By wire.
    private(set) var column: [Int]
    /// How many there are.
    private(set) var count: Int
    /// By row: the sources that are named just above it, and not at the top.
    private(set) var late: [[Int]]

    /// - Parameter isCrowded: a source that one pipeline alone listens to begins above that one.
    init(_ graph: PipelineGraph, isCrowded: Bool) {
        var listeners = [[Int]](repeating: [], count: graph.wires.count)
        for (row, line) in graph.rows.enumerated() { for wire in line.listens { listeners[wire].append(row) } }
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
        // Those of pipelines, from the row below their own: beside the sources, so that none is below another's name.
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
        // To the right of all others, so that their names cross none.
        for wires in late { for (place, wire) in wires.enumerated() { column[wire] = count + place } }
        count += late.map(\.count).max() ?? 0
    }
}
