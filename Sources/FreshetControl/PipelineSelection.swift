/// The pipelines that a caller names: by their names, or by patterns as in a shell (``GlobPattern``).
package struct PipelineSelection: Hashable, Sendable {
    /// The bytes of all patterns of one selection. A selection is asked about each event and each pipeline, so its cost
    /// must be small whoever made it.
    package static let patternBytesLimit = 1_024

    /// The patterns of a selection are longer than ``patternBytesLimit``.
    package struct TooManyPatterns: Error, Hashable {}

    /// Nil: all pipelines.
    private let names: Set<String>?
    private let patterns: [GlobPattern]

    package init(_ names: [String]?) throws(TooManyPatterns) {
        let patterns = names?.filter(GlobPattern.isPattern) ?? []
        guard patterns.reduce(0, { $0 + $1.utf8.count }) <= Self.patternBytesLimit else { throw TooManyPatterns() }
        self.patterns = patterns.map(GlobPattern.init)
        self.names = names.map { Set($0.filter { !GlobPattern.isPattern($0) }) }
    }

    /// The names that are no patterns. Nil: all pipelines are selected.
    package var exact: Set<String>? { names }

    /// What was found of pipelines, in the order in which the caller gave names and patterns. A name that is given twice
    /// is there twice; a pattern adds only pipelines that are not there yet.
    package static func ordered<Found>(
        _ found: [Found], as names: [String], by name: (Found) -> String
    ) -> [Found] {
        let byName = Dictionary(found.map { (name($0), $0) }) { first, _ in first }
        var seen: Set<String> = []
        return names.flatMap { asked in
            let selected: [Found]
            if GlobPattern.isPattern(asked) {
                let pattern = GlobPattern(asked)
                selected = found.filter { pattern.matches(name($0)) && !seen.contains(name($0)) }
            } else {
                selected = byName[asked].map { [$0] } ?? []
            }
            seen.formUnion(selected.map(name))
            return selected
        }
    }

    /// Whether a pipeline is selected. An event that belongs to no pipeline (nil) is for everybody.
    package func contains(_ name: String?) -> Bool {
        guard let names, let name else { return true }
        return names.contains(name) || patterns.contains { $0.matches(name) }
    }
}
