import FreshetRender

/// Lines such as `    State: loaded`, as in systemctl. Text that does not fit in a line of the terminal continues in
/// the next line, below its beginning.
struct LabelledText {
    let palette: Palette
    /// The width of the terminal; nil for no limit.
    let columns: Int?
    private(set) var lines: [String] = []

    /// The width of a label, with the colon and the space after it.
    private static let labelColumns = 11
    /// The narrowest text: narrower terminals wrap the lines themselves.
    private static let leastColumns = 20

    /// Adds a title with a mark.
    mutating func add(title: String, mark: String, _ style: Palette.Style) {
        add(head: palette.paint(mark, style) + " ", title, .plain, indent: 2)
    }

    /// Adds a labelled line.
    ///
    /// - Parameter text: made harmless for terminals here.
    mutating func add(_ label: String, _ text: String, _ style: Palette.Style = .plain) {
        let padding = String(repeating: " ", count: max(0, Self.labelColumns - 2 - label.utf8.count))
        add(head: "\(padding)\(label): ", text, style, indent: Self.labelColumns)
    }

    /// Adds a further text to the last label.
    mutating func add(below text: String) {
        add(head: String(repeating: " ", count: Self.labelColumns), text, .plain, indent: Self.labelColumns + 2)
    }

    /// A text without line breaks at its spaces.
    static func word(_ text: String) -> String { String(text.map { $0 == " " ? noBreakSpace : $0 }) }

    private static let noBreakSpace: Character = "\u{A0}"

    private mutating func add(head: String, _ text: String, _ style: Palette.Style, indent: Int) {
        let text = DisplayText.harmless(text)
        guard let columns else { return lines.append(head + palette.paint(text, style)) }
        let margin = String(repeating: " ", count: indent)
        let parts = WrappedText.lines(text, columns: max(Self.leastColumns, columns - indent))
        for (index, part) in (parts.isEmpty ? [""] : parts).enumerated() {
            let shown = String(part.map { $0 == Self.noBreakSpace ? " " : $0 })
            lines.append((index == 0 ? head : margin) + palette.paint(shown, style))
        }
    }
}
