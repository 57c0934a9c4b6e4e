import FreshetRender

/// The graph in DOT, for Graphviz, and in Mermaid, for pages of documentation.
struct GraphLanguages {
    let graph: PipelineGraph

    var dot: String {
        var lines = [
            "digraph freshet {", "  rankdir=LR;", "  node [fontname=\"sans-serif\", fontsize=11, shape=box];",
            "  edge [color=\"#57606a\"];",
        ]
        for (index, wire) in graph.wires.enumerated() where wire.origin == nil {
            lines.append("  s\(index) [label=\(Self.quoted(wire.name)), shape=oval];")
        }
        for (index, row) in graph.rows.enumerated() {
            let terms = row.terms.isEmpty ? "" : row.terms.joined(separator: "\n")
            lines.append("  g\(index) [label=\(Self.quoted(terms)), shape=diamond, fontsize=9];")
            lines.append(
                "  p\(index) [label=\(Self.quoted(Self.label(row))), style=\"rounded,filled\", "
                    + "fillcolor=\"\(Self.colour(row.style))\"];")
            lines.append("  g\(index) -> p\(index);")
            for (number, file) in row.files.enumerated() {
                lines.append("  f\(index)_\(number) [label=\(Self.quoted(file)), shape=note];")
                lines.append("  p\(index) -> f\(index)_\(number);")
            }
            for (number, hook) in row.hooks.enumerated() {
                lines.append("  h\(index)_\(number) [label=\(Self.quoted(hook)), shape=cds];")
                lines.append("  \(row.files.isEmpty ? "p\(index)" : "f\(index)_0") -> h\(index)_\(number);")
            }
            for wire in row.subscriptions.sorted() { lines.append("  \(origin(wire)) -> g\(index);") }
        }
        return (lines + ["}"]).joined(separator: "\n") + "\n"
    }

    var mermaid: String {
        var lines = ["flowchart LR"]
        for (index, wire) in graph.wires.enumerated() where wire.origin == nil {
            lines.append("  s\(index)([\(Self.words(wire.name))])")
        }
        for (index, row) in graph.rows.enumerated() {
            let terms = row.terms.isEmpty ? " " : row.terms.joined(separator: "\n")
            lines.append("  g\(index){{\(Self.words(terms))}}")
            lines.append("  p\(index)(\(Self.words(Self.label(row)))):::\(Self.styleName(row.style))")
            lines.append("  g\(index) --> p\(index)")
            for (number, file) in row.files.enumerated() {
                lines.append("  p\(index) --> f\(index)_\(number)[\(Self.words(file))]")
            }
            for (number, hook) in row.hooks.enumerated() {
                let from = row.files.isEmpty ? "p\(index)" : "f\(index)_0"
                lines.append("  \(from) --> h\(index)_\(number)[[\(Self.words(hook))]]")
            }
            for wire in row.subscriptions.sorted() { lines.append("  \(origin(wire)) --> g\(index)") }
        }
        for style in ["good", "busy", "bad", "plain"] {
            lines.append("  classDef \(style) fill:\(Self.colour(Self.style(style))),color:#1f2328")
        }
        return lines.joined(separator: "\n") + "\n"
    }

    /// The most characters of an error in a node.
    private static let mostErrorCharacters = 160

    private static func label(_ row: PipelineGraph.Row) -> String {
        let error = row.error.map { DisplayText.truncated(DisplayText.harmless($0), to: mostErrorCharacters) }
        return [row.name, row.state, row.from, error].compactMap(\.self).joined(separator: "\n")
    }

    /// The node from which a wire comes.
    private func origin(_ wire: Int) -> String {
        guard let row = graph.wires[wire].origin else { return "s\(wire)" }
        return graph.rows[row].files.isEmpty ? "p\(row)" : "f\(row)_0"
    }

    private static func colour(_ style: Palette.Style) -> String {
        switch style {
        case .good: "#c8ebd1"
        case .busy: "#f6e3b1"
        case .bad: "#f7cfcb"
        case .plain, .faint, .heading: "#e4e8ec"
        }
    }

    private static func styleName(_ style: Palette.Style) -> String {
        switch style {
        case .good: "good"
        case .busy: "busy"
        case .bad: "bad"
        case .plain, .faint, .heading: "plain"
        }
    }

    private static func style(_ name: String) -> Palette.Style {
        switch name {
        case "good": .good
        case "busy": .busy
        case "bad": .bad
        default: .plain
        }
    }

    /// A string of DOT; a line feed becomes `\n`. Scalars are escaped, not characters: a combining mark after a
    /// quotation mark makes one character of both.
    static func quoted(_ text: String) -> String {
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false).map { line in
            DisplayText.harmless(String(line)).unicodeScalars.reduce(into: "") { result, scalar in
                if scalar == "\"" || scalar == "\\" { result.append("\\") }
                result.unicodeScalars.append(scalar)
            }
        }
        return "\"\(lines.joined(separator: "\\n"))\""
    }

    /// A string of Mermaid; special scalars become entities, as in HTML.
    static func words(_ text: String) -> String {
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false).map { line in
            DisplayText.harmless(String(line)).unicodeScalars.reduce(into: "") { result, scalar in
                switch scalar {
                case "\"": result += "#quot;"
                case "#": result += "#35;"
                case "<": result += "#lt;"
                case ">": result += "#gt;"
                case "&": result += "#amp;"
                case "`": result += "#96;"
                default: result.unicodeScalars.append(scalar)
                }
            }
        }
        return "\"\(lines.joined(separator: "<br/>"))\""
    }
}
