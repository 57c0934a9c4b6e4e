/// The sources of signals that names stand for: a row of `Signals` by its whole name, or all rows of a signal by its first
/// word: `network` is `network 192.0.2.7` too, and `file` is every path.
package struct SignalSelection: Hashable, Sendable {
    /// Nil: all.
    private let names: [String]?

    package init(_ names: [String]?) { self.names = names }

    /// Whether an event is of one of them.
    package func wants(_ event: ControlEvent) -> Bool {
        switch event.kind {
        case .signal, .fact: wants(event.source ?? event.signal ?? "")
        case .runStarted, .runEnded, .state, .reloaded, .unknown: false
        case .skipped: true
        }
    }

    private func wants(_ row: String) -> Bool {
        names?.contains { Self.row(row, isOf: $0) } ?? true
    }

    private static func row(_ row: String, isOf name: String) -> Bool {
        row == name || row.hasPrefix(name + " ")
    }

    /// The first name that stands for none of the rows.
    func stray(among rows: [String]) -> String? {
        names?.first { name in !rows.contains { Self.row($0, isOf: name) } }
    }

    /// The row that was probably meant by a name.
    package static func suggestion(for name: String, among rows: [String]) -> String? {
        rows.first { row($0, isOf: name) } ?? NameSuggestion.closest(to: name, among: rows)
    }
}
