/// A table of text in aligned columns, in the format of systemctl.
package struct Table: Sendable {
    package enum Alignment: Sendable { case left, right }

    package struct Column: Sendable {
        package var title: String
        package var alignment: Alignment
        /// The least width to which the column shrinks on a narrow terminal; nil if it does not shrink.
        package var shrinksTo: Int?
        /// The order in which columns are omitted if shrinking is not enough: the highest number first; nil for a
        /// column that is never omitted.
        package var goes: Int?
        /// The least width on a terminal that is wide enough.
        package var least = 0

        package init(_ title: String, _ alignment: Alignment = .left, shrinksTo: Int? = nil, goes: Int? = nil) {
            self.title = title
            self.alignment = alignment
            self.shrinksTo = shrinksTo
            self.goes = goes
        }
    }

    package struct Cell: Sendable, ExpressibleByStringLiteral {
        package var text: String
        package var style: Palette.Style

        /// - Parameter text: made harmless for terminals here.
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
    ///   - width: the width of the terminal; nil for no limit.
    ///   - legend: whether the titles are the first line.
    package func lines(width: Int?, legend: Bool, palette: Palette) -> [String] {
        var table = self
        if palette.charset != .unicode {
            // Replace characters first: the replacements decide the widths.
            table.rows = rows.map { row in row.map { Cell(palette.charset.text($0.text), $0.style) } }
        }
        return table.shownLines(width: width, legend: legend, palette: palette)
    }

    private func shownLines(width: Int?, legend: Bool, palette: Palette) -> [String] {
        var table = self
        var widths = table.widestColumns(legend: legend)
        if let width {
            let mayGo = nextToGo != nil
            while true {
                let excess = table.shrink(&widths, to: width)
                guard excess > 0 else { break }
                guard let first = table.nextToGo else {
                    // All other columns are omitted already: cut the rest.
                    if mayGo { table.cut(&widths, by: excess) }
                    break
                }
                table.remove(first)
                widths = table.widestColumns(legend: legend)
            }
        }
        var lines: [String] = []
        if legend { lines.append(table.line(table.columns.map { Cell($0.title, .heading) }, widths, palette)) }
        lines += table.rows.map { table.line($0, widths, palette) }
        return lines
    }

    /// The column that is omitted next.
    private var nextToGo: Int? {
        columns.indices.filter { columns[$0].goes != nil }
            .max { (columns[$0].goes ?? 0) < (columns[$1].goes ?? 0) }
    }

    private mutating func remove(_ column: Int) {
        columns.remove(at: column)
        for row in rows.indices where column < rows[row].count { rows[row].remove(at: column) }
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

    private func widestColumns(legend: Bool) -> [Int] {
        columns.indices.map { index in
            let title = legend ? DisplayText.width(of: columns[index].title) : 0
            return rows.reduce(max(title, columns[index].least)) { widest, row in
                max(widest, index < row.count ? DisplayText.width(of: row[index].text) : 0)
            }
        }
    }

    /// Shrinks columns that may shrink; returns the remaining excess width.
    private func shrink(_ widths: inout [Int], to width: Int) -> Int {
        var excess = widths.reduce(columns.count - 1, +) - width
        // The widest column shrinks first, so that short columns stay complete as long as possible.
        while excess > 0 {
            let candidates = columns.indices.filter { widths[$0] > columns[$0].shrinksTo ?? .max }
            guard let widest = candidates.max(by: { widths[$0] < widths[$1] }) else { break }
            widths[widest] -= 1
            excess -= 1
        }
        return excess
    }

    /// Shrinks columns below their least width, to at least one column each.
    private func cut(_ widths: inout [Int], by excess: Int) {
        for _ in 0..<excess {
            let candidates = columns.indices.filter { columns[$0].shrinksTo != nil && widths[$0] > 1 }
            guard let widest = candidates.max(by: { widths[$0] < widths[$1] }) else { return }
            widths[widest] -= 1
        }
    }
}
