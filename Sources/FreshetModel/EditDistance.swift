/// The number of typing errors between two names.
package enum EditDistance {
    /// The number of insertions, deletions, replacements and exchanges of neighbours that turn one name into the other
    /// (optimal string alignment). The time is the product of both lengths.
    @inlinable
    package static func between<Element: Equatable>(_ left: [Element], _ right: [Element]) -> Int {
        var beforeLast: [Int] = []
        var last = Array(0...right.count)
        for (row, first) in left.enumerated() {
            var current = [row + 1]
            current.reserveCapacity(right.count + 1)
            for (column, second) in right.enumerated() {
                var cost = min(last[column] + (first == second ? 0 : 1), last[column + 1] + 1, current[column] + 1)
                if row > 0, column > 0, first == right[column - 1], left[row - 1] == second {
                    cost = min(cost, beforeLast[column - 1] + 1)
                }
                current.append(cost)
            }
            beforeLast = last
            last = current
        }
        return last[right.count]
    }
}
