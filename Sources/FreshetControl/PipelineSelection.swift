import Glibc

/// Pipelines as somebody names them: by their names, or by patterns as in a shell.
package struct PipelineSelection: Hashable, Sendable {
    /// Nil: all pipelines.
    private let names: Set<String>?
    private let patterns: [String]

    package init(_ names: [String]?) {
        self.names = names.map { Set($0.filter { !Self.isPattern($0) }) }
        patterns = names?.filter(Self.isPattern) ?? []
    }

    /// The names that are to be those of pipelines.
    var exact: [String]? { names.map(Array.init) }

    /// No name of a pipeline has one of these characters.
    package static func isPattern(_ name: String) -> Bool { name.contains { "*?[".contains($0) } }

    /// What was found of pipelines, in the order in which their names, or patterns of them, were given, as often as they
    /// were named; what a pattern fits too is not told again for it.
    package static func ordered<Found>(
        _ found: [Found], as names: [String], by name: (Found) -> String
    ) -> [Found] {
        let byName = Dictionary(found.map { (name($0), $0) }) { first, _ in first }
        var told: Set<String> = []
        return names.flatMap { asked in
            let meant =
                isPattern(asked)
                ? found.filter { fnmatch(asked, name($0), 0) == 0 && !told.contains(name($0)) }
                : byName[asked].map { [$0] } ?? []
            told.formUnion(meant.map(name))
            return meant
        }
    }

    /// Whether a pipeline is meant; what is about none is about all.
    package func wants(_ name: String?) -> Bool {
        guard let names, let name else { return true }
        return names.contains(name) || patterns.contains { fnmatch($0, name, 0) == 0 }
    }
}
