/// The sources of signals that a caller selects: a row of `Signals` by its whole name, or all rows of a signal by its
/// first word. `network` selects `network 192.0.2.7` too, and `file` selects every path.
package struct SignalSelection: Hashable, Sendable {
    /// Nil: all sources.
    private let names: Set<String>?

    package init(_ names: [String]?) { self.names = names.map(Set.init) }

    /// Whether an event comes from one of the sources.
    package func contains(_ event: ControlEvent) -> Bool {
        switch event.kind {
        case .signal, .fact: contains(row: event.source ?? event.signal ?? "")
        case .runStarted, .runEnded, .state, .reloaded, .unknown: false
        case .skipped: true
        }
    }

    private func contains(row: String) -> Bool {
        guard let names else { return true }
        return Self.names(of: row).contains(where: names.contains)
    }

    /// The names that select a row: the row, and each part of it that ends before a space.
    private static func names(of row: String) -> [String] {
        [row] + row.indices.filter { row[$0] == " " }.map { String(row[..<$0]) }
    }

    /// The first name, in sorted order, that selects no row; nil: each name selects a row.
    func unknownName(among rows: [String]) -> String? {
        guard let names else { return nil }
        return names.subtracting(rows.flatMap(Self.names)).min()
    }

    /// The row that was probably meant by a name.
    package static func suggestion(for name: String, among rows: [String]) -> String? {
        rows.first { names(of: $0).contains(name) } ?? NameSuggestion.closest(to: name, among: rows)
    }
}
