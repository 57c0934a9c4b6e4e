import FreshetModel

/// Finds the name that was probably meant.
package enum NameSuggestion {
    /// A longer name gets no suggestion: it is hardly a misspelt name.
    static let nameBytesLimit = 64
    /// The pairs of characters that one search may compare: about a millisecond.
    static let comparisonsLimit = 200_000

    /// The most similar of the candidates, or nil if none is similar enough; the first of equals.
    ///
    /// A name is similar if it differs in at most a third of its characters (or in two, if it is short), such as `jkws`
    /// and `jwks`. Candidates beyond ``comparisonsLimit`` are skipped.
    package static func closest(to name: String, among candidates: some Sequence<String>) -> String? {
        guard name.utf8.count <= nameBytesLimit else { return nil }
        let wanted = Array(name.lowercased())
        let limit = max(2, wanted.count / 3)
        var best: (name: String, distance: Int)?
        var comparisons = 0
        for candidate in candidates where abs(candidate.utf8.count - name.utf8.count) <= 4 * limit {
            let other = Array(candidate.lowercased())
            // The lengths alone differ by more than the names of a suggestion may differ.
            guard abs(other.count - wanted.count) <= limit else { continue }
            comparisons += wanted.count * other.count
            guard comparisons <= comparisonsLimit else { break }
            let distance = EditDistance.between(wanted, other)
            // Two names of two letters that share none are not similar.
            guard distance <= limit, distance < max(wanted.count, other.count), distance < best?.distance ?? .max
            else { continue }
            best = (candidate, distance)
        }
        return best?.name
    }
}
