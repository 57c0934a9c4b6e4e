/// A grid of styled characters, which becomes lines of a terminal.
package struct TextCanvas: Sendable {
    private struct Cell {
        /// Nil for the right half of a wide character.
        var character: Character?
        var style: Palette.Style
    }

    /// The number of columns; text beyond is not drawn.
    package let columns: Int
    private var rows: [[Cell]] = []

    package init(columns: Int) { self.columns = max(0, columns) }

    /// Draws a text to the right of a cell. The text has to be harmless.
    package mutating func put(_ text: String, row: Int, column: Int, _ style: Palette.Style = .plain) {
        var column = column
        for character in text {
            put(character, row: row, column: column, style)
            column += DisplayText.width(of: character)
        }
    }

    package mutating func put(_ character: Character, row: Int, column: Int, _ style: Palette.Style = .plain) {
        let width = DisplayText.width(of: character)
        guard row >= 0, column >= 0, column + width <= columns else { return }
        while rows.count <= row { rows.append([]) }
        while rows[row].count < column + width { rows[row].append(Cell(character: " ", style: .plain)) }
        guard width > 0 else {
            // A combining mark belongs to the character before it. Other invisible characters, such as a zero-width
            // space, do not combine; they are left out.
            if column > 0, let before = rows[row][column - 1].character {
                let whole = String(before) + String(character)
                if whole.count == 1, let whole = whole.first { rows[row][column - 1].character = whole }
            }
            return
        }
        rows[row][column] = Cell(character: character, style: style)
        for place in 1..<max(1, width) { rows[row][column + place] = Cell(character: nil, style: style) }
    }

    /// Fills a range of columns with a character.
    package mutating func fill(
        _ character: Character, row: Int, from first: Int, to end: Int, _ style: Palette.Style = .plain
    ) {
        for column in first..<max(first, end) { put(character, row: row, column: column, style) }
    }

    package func isBlank(row: Int, column: Int) -> Bool {
        guard rows.indices.contains(row), rows[row].indices.contains(column) else { return true }
        return rows[row][column].character == " "
    }

    /// The lines, without line feeds and without space at their ends.
    package func lines(_ palette: Palette) -> [String] {
        rows.map { row in
            var line = ""
            var run = ""
            var style = Palette.Style.plain
            let end = row.lastIndex { $0.character != " " }.map { $0 + 1 } ?? 0
            for cell in row[..<end] {
                guard let character = cell.character else { continue }
                // A space has no colour, but may be underlined.
                if cell.style != style, character != " " || style == .heading || cell.style == .heading {
                    line += palette.paint(run, style)
                    (run, style) = ("", cell.style)
                }
                run.append(character)
            }
            return line + palette.paint(run, style)
        }
    }
}
