/// The characters that pictures on a terminal are made of: those of Unicode, or of ASCII where the locale has no more.
package struct Glyphs: Hashable, Sendable {
    package let charset: Charset

    package let horizontal: Character
    package let vertical: Character
    package let downRight: Character
    package let upLeft: Character
    package let upRight: Character
    package let verticalRight: Character
    /// Where a wire is connected.
    package let dot: Character
    /// Where all wires of a row become one.
    package let gather: Character
    package let arrow: Character
    /// A lane on which nothing happens.
    package let quiet: Character
    package let waiting: Character
    package let offline: Character
    package let asleep: Character
    /// Nobody was there to see what happened.
    package let unseen: Character
    /// A firing.
    package let fired: Character
    package let changed: Character
    package let unchanged: Character
    package let underWay: Character
    package let held: Character
    package let tick: Character

    package static let unicode = Glyphs(
        isUnicode: true, horizontal: "─", vertical: "│", downRight: "┌", upLeft: "┘", upRight: "└", verticalRight: "├",
        dot: "●", gather: "◆", arrow: "▶", quiet: "─", waiting: "┄", offline: "░", asleep: "▒", unseen: " ", fired: "•",
        changed: "█", unchanged: "▄", underWay: "▸", held: "‖", tick: "│")

    package static let ascii = Glyphs(
        isUnicode: false, horizontal: "-", vertical: "|", downRight: "+", upLeft: "+", upRight: "`", verticalRight: "|",
        dot: "o", gather: "*", arrow: ">", quiet: "-", waiting: ".", offline: "~", asleep: "z", unseen: " ", fired: "o",
        changed: "#", unchanged: "=", underWay: ">", held: "H", tick: "|")

    /// Those that a terminal has.
    package init(_ charset: Charset) { self = charset == .ascii ? .ascii : .unicode }

    private init(
        isUnicode: Bool, horizontal: Character, vertical: Character, downRight: Character, upLeft: Character,
        upRight: Character, verticalRight: Character, dot: Character, gather: Character, arrow: Character,
        quiet: Character, waiting: Character, offline: Character, asleep: Character, unseen: Character,
        fired: Character, changed: Character, unchanged: Character, underWay: Character, held: Character,
        tick: Character
    ) {
        charset = isUnicode ? .unicode : .ascii
        self.horizontal = horizontal
        self.vertical = vertical
        self.downRight = downRight
        self.upLeft = upLeft
        self.upRight = upRight
        self.verticalRight = verticalRight
        self.dot = dot
        self.gather = gather
        self.arrow = arrow
        self.quiet = quiet
        self.waiting = waiting
        self.offline = offline
        self.asleep = asleep
        self.unseen = unseen
        self.fired = fired
        self.changed = changed
        self.unchanged = unchanged
        self.underWay = underWay
        self.held = held
        self.tick = tick
    }

    /// Text of others as these characters can show it: harmless to a terminal.
    package func text(_ text: String) -> String { charset.text(DisplayText.harmless(text)) }

    /// The same, cut to so many columns.
    package func text(_ text: String, columns: Int) -> String {
        DisplayText.truncated(self.text(text), to: columns, ellipsis: charset.ellipsis)
    }
}
