/// A table of text in aligned columns, as systemctl prints it.
package struct Table: Sendable {
    package enum Alignment: Sendable { case left, right }

    package struct Column: Sendable {
        package var title: String
        package var alignment: Alignment
        /// Whether it gives way when the terminal is too narrow, and then to how many columns at least.
        package var shrinksTo: Int?

        package init(_ title: String, _ alignment: Alignment = .left, shrinksTo: Int? = nil) {
            self.title = title
            self.alignment = alignment
            self.shrinksTo = shrinksTo
        }
    }

    package struct Cell: Sendable, ExpressibleByStringLiteral {
        package var text: String
        package var style: Palette.Style

        /// - Parameter text: is made harmless for terminals.
        package init(_ text: String, _ style: Palette.Style = .plain) {
            self.text = DisplayText.harmless(text)
            self.style = style
        }

        package init(stringLiteral text: String) { self.init(text) }
    }

    package var columns: [Column]
    package var rows: [[Cell]]

    package init(columns: [Column], rows: [[Cell]] = []) {
        self.columns = columns
        self.rows = rows
    }

    /// The lines, without line feeds and without space at their ends.
    ///
    /// - Parameters:
    ///   - width: the terminal's columns; nil: as wide as it takes.
    ///   - legend: whether the titles are the first line.
    package func lines(width: Int?, legend: Bool, palette: Palette) -> [String] {
        var table = self
        if palette.charset != .unicode {
            // Likenesses first, since they decide how wide a column is.
            table.rows = rows.map { row in row.map { Cell(palette.charset.text($0.text), $0.style) } }
        }
        return table.shownLines(width: width, legend: legend, palette: palette)
    }

    private func shownLines(width: Int?, legend: Bool, palette: Palette) -> [String] {
        let widths = columnWidths(within: width, legend: legend)
        var lines: [String] = []
        if legend { lines.append(line(columns.map { Cell($0.title, .heading) }, widths, palette)) }
        lines += rows.map { line($0, widths, palette) }
        return lines
    }

    private func line(_ cells: [Cell], _ widths: [Int], _ palette: Palette) -> String {
        var line = ""
        for (index, column) in columns.enumerated() {
            let cell = index < cells.count ? cells[index] : ""
            let text = DisplayText.truncated(cell.text, to: widths[index], ellipsis: palette.charset.ellipsis)
            let padding = String(repeating: " ", count: max(0, widths[index] - DisplayText.width(of: text)))
            let isLast = index == columns.count - 1
            if column.alignment == .right { line += padding }
            line += palette.paint(text, cell.style)
            if column.alignment == .left && !isLast { line += padding }
            if !isLast { line += " " }
        }
        while line.last == " " { line.removeLast() }
        return line
    }

    private func columnWidths(within width: Int?, legend: Bool) -> [Int] {
        var widths = columns.indices.map { index in
            rows.reduce(legend ? DisplayText.width(of: columns[index].title) : 0) { widest, row in
                max(widest, index < row.count ? DisplayText.width(of: row[index].text) : 0)
            }
        }
        guard let width else { return widths }
        var excess = widths.reduce(columns.count - 1, +) - width
        // The widest that may shrink gives first, so that short columns stay whole as long as possible.
        while excess > 0 {
            let candidates = columns.indices.filter { widths[$0] > columns[$0].shrinksTo ?? .max }
            guard let widest = candidates.max(by: { widths[$0] < widths[$1] }) else { break }
            widths[widest] -= 1
            excess -= 1
        }
        return widths
    }
}
