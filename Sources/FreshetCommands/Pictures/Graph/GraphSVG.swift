import FreshetRender

/// The graph as SVG: a vertical line for each source of signals, and a dot where a pipeline subscribes. Lines of any
/// number never overlap.
struct GraphSVG {
    let graph: PipelineGraph

    private static let wireDistance = 26.0
    /// The widths of boxes: as their texts need, between the least and the most.
    private static let boxWidths = 230.0...420.0
    private static let fileWidths = 250.0...460.0
    /// The most lines of an error; the tooltip has all of it.
    private static let mostErrorLines = 3
    private let boxWidth: Double
    private let fileWidth: Double
    private static let gap = 40.0
    private static let lineHeight = 15.0

    init(graph: PipelineGraph) {
        self.graph = graph
        let heads = graph.rows.flatMap { row in
            [
                SVGWriter.width(of: row.name, size: 13) * 1.1, SVGWriter.width(of: row.state),
                SVGWriter.width(of: row.from ?? "", size: 11),
            ]
        }
        boxWidth = Self.clamped((heads.max() ?? 0) + 18, Self.boxWidths)
        let outlets = graph.rows.flatMap { $0.files + $0.hooks }.map { SVGWriter.width(of: $0, size: 11) }
        fileWidth = Self.clamped((outlets.max() ?? 0) + 16, Self.fileWidths)
    }

    private static func clamped(_ width: Double, _ range: ClosedRange<Double>) -> Double {
        max(range.lowerBound, min(range.upperBound, width))
    }

    /// The position of a row.
    private struct Place {
        var top: Double
        var height: Double
        /// The y coordinate of the line through the row.
        var y: Double { top + 22 }
    }

    /// The document.
    var text: String { drawing.text }

    var drawing: SVGWriter {
        let left = 24.0
        let wiresEnd = left + Double(graph.wires.count) * Self.wireDistance
        let box = wiresEnd + 52
        let files = box + boxWidth + Self.gap
        let hasHooks = graph.rows.contains { !$0.hooks.isEmpty }
        let hooks = files + fileWidth + Self.gap
        let labels = graph.wires.filter { $0.origin == nil }.map { SVGWriter.width(of: Self.label($0)) }
        // Labels are rotated: they extend above and to the right.
        let top = 20 + (labels.max() ?? 0) * 0.66
        let lean =
            graph.wires.enumerated().filter { $1.origin == nil }
            .map { left + Double($0) * Self.wireDistance + SVGWriter.width(of: Self.label($1)) * 0.78 }.max() ?? 0
        let places = self.places(from: top + 12)
        let width = max(lean, hasHooks ? hooks + fileWidth : files + fileWidth) + 20
        let bottom = (places.last.map { $0.top + $0.height } ?? top) + 34
        var svg = SVGWriter(
            width: width, height: bottom,
            title: "From signals to files: \(graph.rows.map(\.name).joined(separator: ", "))")

        func x(_ wire: Int) -> Double { left + Double(wire) * Self.wireDistance }
        // The last row that subscribes to each wire.
        var lasts = [Int?](repeating: nil, count: graph.wires.count)
        for (index, row) in graph.rows.enumerated() { for wire in row.subscriptions { lasts[wire] = index } }
        // Lines first, boxes above them.
        for (index, wire) in graph.wires.enumerated() {
            guard let last = lasts[index] else { continue }
            if let origin = wire.origin {
                drawReturn(places[origin], x(index), to: places[last].y, box, &svg)
            } else {
                svg.line(x(index), top, x(index), places[last].y, .plain)
                svg.words(Self.label(wire), x(index) + 3, top - 6, .ink, turned: -40, hint: wire.name)
            }
        }
        for (row, place) in zip(graph.rows, places) {
            draw(row, place, x, box: box, files: files, hooks: hooks, &svg)
        }
        svg.words(
            "A dot: the pipeline subscribes. The diamond: its signals become one, and each time that fires, it runs.",
            12, bottom - 12, .faint, size: 11)
        return svg
    }

    private static func label(_ wire: PipelineGraph.Wire) -> String { SVGWriter.cut(wire.name, to: 230) }

    private func places(from top: Double) -> [Place] {
        var next = top
        return graph.rows.map { row in
            let outlets = max(row.files.count, row.hooks.count)
            let height =
                max(boxHeight(row) + 16, Double(outlets) * 30 + 14) + (row.ownWire == nil ? 0 : 8)
            defer { next += height }
            return Place(top: next, height: height)
        }
    }

    /// The terms, as many in a line as fit into the box.
    private func terms(_ row: PipelineGraph.Row) -> [String] {
        var lines: [String] = []
        for term in row.terms {
            if let last = lines.last, SVGWriter.width(of: last + ", " + term, size: 10) < boxWidth - 16 {
                lines[lines.count - 1] = last + ", " + term
            } else {
                lines.append(term)
            }
        }
        return lines
    }

    private func boxHeight(_ row: PipelineGraph.Row) -> Double {
        Double(2 + notes(row).count) * Self.lineHeight + 10
    }

    /// The lines below a pipeline's state: its origin, its terms, and its error.
    private func notes(_ row: PipelineGraph.Row) -> [(text: String, role: SVGWriter.Role, size: Double)] {
        var notes: [(text: String, role: SVGWriter.Role, size: Double)] = []
        if let from = row.from { notes.append((SVGWriter.cut(from, to: boxWidth - 16, size: 11), .ink, 11)) }
        notes += terms(row).map { ($0, .faint, 10) }
        if let error = row.error {
            let columns = Int((boxWidth - 16) / (11 * 0.6))
            let lines = WrappedText.lines(DisplayText.harmless(error), columns: columns)
            notes += lines.prefix(Self.mostErrorLines).enumerated().map { index, line in
                let isCut = index == Self.mostErrorLines - 1 && lines.count > Self.mostErrorLines
                return (SVGWriter.cut(isCut ? line + " …" : line, to: boxWidth - 16, size: 11), .bad, 11)
            }
        }
        return notes
    }

    /// Draws the line from a pipeline back to the wire of its new copies.
    private func drawReturn(_ place: Place, _ x: Double, to end: Double, _ box: Double, _ svg: inout SVGWriter) {
        let y = place.top + place.height - 5
        func n(_ value: Double) -> String { SVGWriter.number(value) }
        svg.path(
            "M\(n(box + 14)) \(n(place.y))V\(n(y - 6))Q\(n(box + 14)) \(n(y)) \(n(box + 8)) \(n(y))H\(n(x + 6))"
                + "Q\(n(x)) \(n(y)) \(n(x)) \(n(y + 6))V\(n(end))", .good, width: 1.6)
    }

    private func draw(
        _ row: PipelineGraph.Row, _ place: Place, _ x: (Int) -> Double, box: Double, files: Double, hooks: Double,
        _ svg: inout SVGWriter
    ) {
        let y = place.y
        let role = SVGWriter.Role(row.style)
        func n(_ value: Double) -> String { SVGWriter.number(value) }
        if let first = row.subscriptions.min() { svg.line(x(first), y, box, y) } else { svg.line(box - 40, y, box, y) }
        for wire in row.subscriptions.sorted() {
            svg.circle(x(wire), y, radius: 4.5, graph.wires[wire].origin == nil ? .ink : .good)
        }
        let gather = box - 30
        svg.shape(
            "M\(n(gather - 9)) \(n(y))L\(n(gather)) \(n(y - 9))L\(n(gather + 9)) \(n(y))L\(n(gather)) \(n(y + 9))Z",
            .busy, hint: "gathered into one signal")
        Self.arrow(box, y, &svg)

        let height = boxHeight(row)
        let boxTop = y - 18
        // Paper below pale boxes hides the lines behind them.
        svg.paper(box, boxTop, boxWidth, height, radius: 5)
        svg.box(
            box, boxTop, boxWidth, height, role, radius: 5, isPale: true,
            hint: row.error.map { (row.description.map { "\($0): " } ?? "") + $0 } ?? row.description)
        svg.words(
            SVGWriter.cut(row.name, to: boxWidth - 16, size: 13), box + 9, boxTop + 18, .ink, size: 13,
            isBold: true)
        svg.words(
            SVGWriter.cut(row.state, to: boxWidth - 16), box + 9, boxTop + 34, role == .plain ? .faint : .ink,
            size: 12)
        for (index, note) in notes(row).enumerated() {
            svg.words(
                note.text, box + 9, boxTop + 49 + Double(index) * Self.lineHeight, note.role, size: note.size,
                hint: note.role == .bad ? row.error : nil)
        }
        outlets(row.files, files, from: box + boxWidth, y, role, &svg)
        outlets(
            row.hooks, row.files.isEmpty ? files : hooks,
            from: row.files.isEmpty ? box + boxWidth : files + fileWidth, y, .plain, &svg)
    }

    private func outlets(
        _ texts: [String], _ x: Double, from start: Double, _ y: Double, _ role: SVGWriter.Role, _ svg: inout SVGWriter
    ) {
        for (index, text) in texts.enumerated() {
            let line = y + Double(index) * 30
            if index == 0 {
                svg.line(start, y, x, y)
            } else {
                let corner = start + (x - start) / 2
                svg.path(
                    "M\(SVGWriter.number(corner)) \(SVGWriter.number(y))V\(SVGWriter.number(line))H\(SVGWriter.number(x))"
                )
            }
            Self.arrow(x, line, &svg)
            svg.paper(x, line - 12, fileWidth, 24, radius: 3)
            svg.box(x, line - 12, fileWidth, 24, role, radius: 3, isPale: true, hint: text)
            svg.words(Self.end(of: text, pixels: fileWidth - 14), x + 8, line + 4, .ink, size: 11)
        }
    }

    /// Shortens a path at its beginning, and any other text at its end.
    private static func end(of text: String, pixels: Double) -> String {
        guard SVGWriter.width(of: text, size: 11) > pixels, text.hasPrefix("/"), !text.contains(" "),
            let name = text.split(separator: "/").last
        else { return SVGWriter.cut(text, to: pixels, size: 11) }
        return SVGWriter.cut("…/" + name, to: pixels, size: 11)
    }

    private static func arrow(_ x: Double, _ y: Double, _ svg: inout SVGWriter) {
        func n(_ value: Double) -> String { SVGWriter.number(value) }
        svg.shape("M\(n(x)) \(n(y))L\(n(x - 8)) \(n(y - 4))L\(n(x - 8)) \(n(y + 4))Z", .arrow)
    }
}

extension SVGWriter.Role {
    /// The colour of a state, as in tables.
    fileprivate init(_ style: Palette.Style) {
        self =
            switch style {
            case .good: .good
            case .busy: .busy
            case .bad: .bad
            case .plain, .faint, .heading: .plain
            }
    }
}
