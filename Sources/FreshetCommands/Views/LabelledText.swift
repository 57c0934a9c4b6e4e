import FreshetRender

/// Lines such as `    State: loaded`, as systemctl has them. What does not fit in a terminal's line goes on below its own
/// beginning.
struct LabelledText {
    let palette: Palette
    /// The terminal's; nil: a line is as long as it is.
    let columns: Int?
    private(set) var lines: [String] = []

    init(palette: Palette, columns: Int?) {
        self.palette = palette
        self.columns = columns
    }

    /// The columns of the labels, with the colon and the space behind it.
    private static let labelColumns = 11
    /// On a terminal that is narrower than that, its own breaks are no worse.
    private static let leastColumns = 20

    /// A mark, and whom the lines below it are about.
    mutating func add(title: String, mark: String, _ style: Palette.Style) {
        add(head: palette.paint(mark, style) + " ", title, .plain, indent: 2)
    }

    /// - Parameter text: is made harmless for terminals.
    mutating func add(_ label: String, _ text: String, _ style: Palette.Style = .plain) {
        let padding = String(repeating: " ", count: max(0, Self.labelColumns - 2 - label.utf8.count))
        add(head: "\(padding)\(label): ", text, style, indent: Self.labelColumns)
    }

    /// One of several texts of the same label, below it.
    mutating func add(below text: String) {
        add(head: String(repeating: " ", count: Self.labelColumns), text, .plain, indent: Self.labelColumns + 2)
    }

    /// A text that is not broken at its spaces, for a terminal.
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
