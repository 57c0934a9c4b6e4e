/// The pipelines that a caller selects by names or by patterns as in a shell (``GlobPattern``).
package struct PipelineSelection: Hashable, Sendable {
    /// The most bytes of all patterns of one selection. A selection is checked for each event and each pipeline, so no
    /// caller may make it expensive.
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

    /// The names that are not patterns. Nil: all pipelines are selected.
    package var exact: Set<String>? { names }

    /// Sorts items of pipelines in the order of the caller's names and patterns. A name that is given twice appears
    /// twice; a pattern adds only pipelines that have not appeared yet.
    package static func ordered<Found>(
        _ found: [Found], as names: [String], by name: (Found) -> String
    ) -> [Found] {
        let byName = Dictionary(found.map { (name($0), $0) }) { first, _ in first }
        var seen: Set<String> = []
        return names.flatMap { requested in
            let selected: [Found]
            if GlobPattern.isPattern(requested) {
                let pattern = GlobPattern(requested)
                selected = found.filter { pattern.matches(name($0)) && !seen.contains(name($0)) }
            } else {
                selected = byName[requested].map { [$0] } ?? []
            }
            seen.formUnion(selected.map(name))
            return selected
        }
    }

    /// Whether a pipeline is selected. Nil stands for an event that belongs to no pipeline: it is always selected.
    package func contains(_ name: String?) -> Bool {
        guard let names, let name else { return true }
        return names.contains(name) || patterns.contains { $0.matches(name) }
    }
}
