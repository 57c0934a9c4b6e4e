import FreshetRender

/// The graph on a terminal: a column for each wire, a row for each pipeline, and a dot where it subscribes.
struct GraphText {
    let graph: PipelineGraph
    let palette: Palette
    var legend = true

    func lines(columns: Int) -> [String] {
        let glyphs = Glyphs(palette.charset)
        var wires = WireColumns(graph, isCrowded: false)
        // Wires may use half of a line; if they would use more, only wires with several subscribers begin at the top.
        if wires.count * 2 > columns / 2 { wires = WireColumns(graph, isCrowded: true) }
        let text = wires.count * 2 + 4
        let rest = max(24, columns - text)
        // Names and states may use half of the rest, and terms too if they then need no further line.
        let widest =
            graph.rows.map { row in
                max(DisplayText.width(of: glyphs.text(head(row))), row.terms.joined(separator: ", ").count)
            }.max() ?? 0
        // Names and states may use more, where the names of files and the hooks leave it.
        let widestHead = graph.rows.map { DisplayText.width(of: glyphs.text(head($0))) }.max() ?? 0
        let widestOutlet = graph.rows.flatMap(outlets).map { Self.leastWidth($0, glyphs) }.max() ?? 0
        let left = max(12, min(widest, rest / 2), min(widestHead, rest - widestOutlet - Self.outletSpace))
        let out = text + left + 1
        // With very many wires, lines are longer than the terminal, so that nothing is lost.
        var canvas = TextCanvas(columns: max(columns, out + 10))
        // The first and the last row of each wire.
        var first = [Int](repeating: .max, count: graph.wires.count)
        var last = [Int](repeating: -1, count: graph.wires.count)
        var starts: [Int] = []

        var row = 0
        func begin(_ wire: Int) {
            canvas.put(glyphs.text(graph.wires[wire].name), row: row, column: wires.column[wire] * 2)
            first[wire] = row + 1
            row += 1
        }
        let late = Set(wires.late.joined())
        for (wire, source) in graph.wires.enumerated() where source.origin == nil && !late.contains(wire) {
            begin(wire)
        }
        for (line, late) in zip(graph.rows, wires.late) {
            for wire in late { begin(wire) }
            starts.append(row)
            for wire in line.subscriptions { last[wire] = max(last[wire], row) }
            let height = max(
                2, 1 + notes(line, left).count, outlets(line).count, line.ownWire == nil ? 0 : 2)
            if let ownWire = line.ownWire { first[ownWire] = row + 1 }
            row += height
        }
        for index in graph.wires.indices where last[index] >= first[index] {
            for row in first[index]...last[index] {
                canvas.put(glyphs.vertical, row: row, column: wires.column[index] * 2, .faint)
            }
        }
        for (line, row) in zip(graph.rows, starts) {
            drawWire(line, row, wires, &canvas, glyphs)
            drawName(line, row, column: text, width: left, out: out, &canvas, glyphs)
            drawOutlets(line, row, column: out, &canvas, glyphs)
        }
        var lines = canvas.lines(palette)
        if legend {
            lines.append("")
            let words =
                "\(glyphs.dot) subscribes   \(glyphs.gather) gathers signals into one   "
                + "\(glyphs.arrow) runs, then files and hooks"
            lines += MarblesText.wrapped(words, "   ", columns)
        }
        return lines
    }

    private func head(_ row: PipelineGraph.Row) -> String { "\(row.name)  \(row.state)" }

    private func drawWire(
        _ line: PipelineGraph.Row, _ row: Int, _ wires: WireColumns, _ canvas: inout TextCanvas, _ glyphs: Glyphs
    ) {
        let end = wires.count * 2
        let dots = line.subscriptions.map { wires.column[$0] * 2 }
        if let begin = dots.min() {
            for column in begin..<end {
                // A crossing wire is not interrupted.
                let isCrossing = column % 2 == 0 && !canvas.isBlank(row: row, column: column)
                if !isCrossing { canvas.put(glyphs.horizontal, row: row, column: column) }
            }
            for column in dots { canvas.put(glyphs.dot, row: row, column: column) }
        }
        canvas.put(glyphs.gather, row: row, column: end)
        canvas.put(glyphs.horizontal, row: row, column: end + 1)
        canvas.put(glyphs.arrow, row: row, column: end + 2)
        if let ownWire = line.ownWire {
            let begin = wires.column[ownWire] * 2
            canvas.put(glyphs.downRight, row: row + 1, column: begin)
            for column in (begin + 1)..<(end + 2) where canvas.isBlank(row: row + 1, column: column) {
                canvas.put(glyphs.horizontal, row: row + 1, column: column)
            }
            canvas.put(glyphs.upLeft, row: row + 1, column: end + 2)
        }
    }

    private func drawName(
        _ line: PipelineGraph.Row, _ row: Int, column: Int, width: Int, out: Int, _ canvas: inout TextCanvas,
        _ glyphs: Glyphs
    ) {
        let state = glyphs.text(line.state)
        let free = width - DisplayText.width(of: state) - 2
        let name = glyphs.text(line.name, columns: max(6, free))
        let place = column + DisplayText.width(of: name) + 2
        canvas.put(name, row: row, column: column, line.style)
        canvas.put(
            glyphs.text(line.state, columns: max(0, column + width - place)), row: row, column: place, line.style)
        for (index, note) in notes(line, width).enumerated() {
            canvas.put(glyphs.text(note.text), row: row + 1 + index, column: column, note.style)
        }
        guard !line.files.isEmpty || !line.hooks.isEmpty else { return }
        let end = place + min(DisplayText.width(of: state), max(0, column + width - place))
        canvas.fill(glyphs.horizontal, row: row, from: end + 1, to: out, .faint)
    }

    /// The columns before the text of a hook: a line, an arrow and the space around them.
    private static let outletSpace = 7
    /// The most lines of an error.
    private static let mostErrorLines = 2

    /// The lines below a pipeline's name: its origin, its terms, and its error.
    private func notes(_ row: PipelineGraph.Row, _ width: Int) -> [(text: String, style: Palette.Style)] {
        func cut(_ text: String) -> String {
            DisplayText.truncated(text, to: width, ellipsis: palette.charset.ellipsis)
        }
        var notes: [(text: String, style: Palette.Style)] = []
        if let from = row.from { notes.append((cut(DisplayText.harmless(from)), .plain)) }
        notes += terms(row, width).map { ($0, .faint) }
        if let error = row.error {
            let lines = WrappedText.lines(DisplayText.harmless(error), columns: width)
            notes += lines.prefix(Self.mostErrorLines).enumerated().map { index, line in
                (cut(index == Self.mostErrorLines - 1 && lines.count > Self.mostErrorLines ? line + " …" : line), .bad)
            }
        }
        return notes
    }

    /// The width of a hook, or of the name of a file without its directory.
    private static func leastWidth(_ outlet: Outlet, _ glyphs: Glyphs) -> Int {
        let text = outlet.isHook ? outlet.text : outlet.text.split(separator: "/").last.map(String.init) ?? ""
        return DisplayText.width(of: glyphs.text(text))
    }

    /// The terms, in as many lines as necessary.
    private func terms(_ row: PipelineGraph.Row, _ width: Int) -> [String] {
        var lines: [String] = []
        for term in row.terms {
            if let last = lines.last, last.count + 2 + term.count <= width {
                lines[lines.count - 1] = last + ", " + term
            } else {
                lines.append(DisplayText.truncated(term, to: width, ellipsis: palette.charset.ellipsis))
            }
        }
        return lines
    }

    private struct Outlet {
        var text: String
        /// Whether it is a hook, which follows the files.
        var isHook: Bool
    }

    private func outlets(_ row: PipelineGraph.Row) -> [Outlet] {
        row.files.map { Outlet(text: $0, isHook: false) } + row.hooks.map { Outlet(text: $0, isHook: true) }
    }

    private func drawOutlets(
        _ line: PipelineGraph.Row, _ row: Int, column: Int, _ canvas: inout TextCanvas, _ glyphs: Glyphs
    ) {
        let all = outlets(line)
        for (index, outlet) in all.enumerated() {
            let indent = outlet.isHook && !line.files.isEmpty ? 2 : 0
            let start = column + indent
            let isLast = index == all.count - 1 || !outlet.isHook && all[index + 1].isHook
            if index == 0 {
                canvas.put(glyphs.horizontal, row: row, column: start)
            } else {
                canvas.put(isLast ? glyphs.upRight : glyphs.verticalRight, row: row + index, column: start)
            }
            canvas.put(glyphs.arrow, row: row + index, column: start + 1)
            let free = canvas.columns - start - 3
            let text = outlet.isHook ? outlet.text : Self.path(outlet.text, columns: free)
            canvas.put(
                glyphs.text(text, columns: free), row: row + index, column: start + 3,
                outlet.isHook ? .plain : line.style == .good ? .good : .plain)
        }
    }

    /// A path, or its last component if the path is too long.
    private static func path(_ path: String, columns: Int) -> String {
        guard DisplayText.width(of: path) > columns, let name = path.split(separator: "/").last else { return path }
        return String(name)
    }
}
