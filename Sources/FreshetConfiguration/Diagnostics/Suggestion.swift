import FreshetModel

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
            let distance = EditDistance.between(plainWord, plain(candidate))
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
}
