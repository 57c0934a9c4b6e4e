/// Finds the word that a user probably meant.
enum Suggestion {
    /// Words longer than this are not compared: no key is that long, and the cost is quadratic.
    static let maximumLength = 40

    /// The candidate nearest to a word, with at most one typing error in three characters; nil if there is no such
    /// candidate. Case and the choice between `-`, `_` and capitals do not count as errors.
    static func nearest(to word: String, among candidates: some Sequence<String>) -> String? {
        guard word.utf8.count <= maximumLength else { return nil }
        let plainWord = plain(word)
        var best: (candidate: String, distance: Int)?
        for candidate in candidates {
            let distance = distance(plainWord, plain(candidate))
            guard distance <= max(1, min(plainWord.count, candidate.utf8.count) / 3), plainWord.count > 1 else {
                continue
            }
            if let best, best.distance <= distance { continue }
            best = (candidate, distance)
        }
        return best?.candidate
    }

    private static func plain(_ word: String) -> [UInt8] {
        word.lowercased().utf8.filter { $0 != UInt8(ascii: "-") && $0 != UInt8(ascii: "_") }
    }

    /// How many insertions, deletions, replacements and swaps of neighbours turn one word into the other (optimal
    /// string alignment).
    static func distance(_ one: [UInt8], _ other: [UInt8]) -> Int {
        var beforeLast = [Int](repeating: 0, count: other.count + 1)
        var last = Array(0...other.count)
        for row in 0..<one.count {
            var current = [row + 1]
            current.reserveCapacity(other.count + 1)
            for column in 0..<other.count {
                var least = min(
                    last[column + 1] + 1, current[column] + 1, last[column] + (one[row] == other[column] ? 0 : 1))
                if row > 0, column > 0, one[row] == other[column - 1], one[row - 1] == other[column] {
                    least = min(least, beforeLast[column - 1] + 1)
                }
                current.append(least)
            }
            beforeLast = last
            last = current
        }
        return last[other.count]
    }
}
