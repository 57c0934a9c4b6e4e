/// Finds the name that was probably meant.
package enum NameSuggestion {
    /// The most similar of the candidates, if it is similar enough to be worth saying; the first of equals.
    ///
    /// Similar is what differs in at most a third of its characters, and in one at least: `jkws` for `jwks`.
    package static func closest(to name: String, among candidates: some Sequence<String>) -> String? {
        let wanted = Array(name.lowercased())
        let limit = max(2, wanted.count / 3)
        var best: (name: String, distance: Int)?
        for candidate in candidates {
            let other = Array(candidate.lowercased())
            let distance = distance(wanted, other)
            // Two names of two letters that share none are not similar.
            guard distance <= limit, distance < max(wanted.count, other.count), distance < best?.distance ?? .max
            else { continue }
            best = (candidate, distance)
        }
        return best?.name
    }

    /// Insertions, deletions, replacements and exchanges of neighbours that make one into the other (optimal string
    /// alignment).
    static func distance(_ left: [Character], _ right: [Character]) -> Int {
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
