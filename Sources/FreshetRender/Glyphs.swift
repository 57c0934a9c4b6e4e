/// The characters of pictures on a terminal, in Unicode or in ASCII.
package struct Glyphs: Hashable, Sendable {
    package let charset: Charset

    package let horizontal: Character
    package let vertical: Character
    package let downRight: Character
    package let upLeft: Character
    package let upRight: Character
    package let verticalRight: Character
    /// A connection to a wire.
    package let dot: Character
    /// The point at which all wires of a row become one.
    package let gather: Character
    package let arrow: Character
    /// A lane without events.
    package let idle: Character
    package let waiting: Character
    package let offline: Character
    package let asleep: Character
    /// A time without known events.
    package var unseen: Character { " " }
    /// A firing.
    package let fired: Character
    package let changed: Character
    package let unchanged: Character
    package let inProgress: Character
    package let held: Character
    package let tick: Character

    package static let unicode = Glyphs(
        isUnicode: true, horizontal: "─", vertical: "│", downRight: "┌", upLeft: "┘", upRight: "└", verticalRight: "├",
        dot: "●", gather: "◆", arrow: "▶", idle: "─", waiting: "┄", offline: "░", asleep: "▒", fired: "•",
        changed: "█", unchanged: "▄", inProgress: "▸", held: "‖", tick: "│")

    package static let ascii = Glyphs(
        isUnicode: false, horizontal: "-", vertical: "|", downRight: "+", upLeft: "+", upRight: "`", verticalRight: "|",
        dot: "o", gather: "*", arrow: ">", idle: "-", waiting: ".", offline: "~", asleep: "z", fired: "o",
        changed: "#", unchanged: "=", inProgress: ">", held: "H", tick: "|")

    /// The characters that a terminal can show.
    package init(_ charset: Charset) { self = charset == .ascii ? .ascii : .unicode }

    private init(
        isUnicode: Bool, horizontal: Character, vertical: Character, downRight: Character, upLeft: Character,
        upRight: Character, verticalRight: Character, dot: Character, gather: Character, arrow: Character,
        idle: Character, waiting: Character, offline: Character, asleep: Character, fired: Character,
        changed: Character, unchanged: Character, inProgress: Character, held: Character,
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
        self.idle = idle
        self.waiting = waiting
        self.offline = offline
        self.asleep = asleep
        self.fired = fired
        self.changed = changed
        self.unchanged = unchanged
        self.inProgress = inProgress
        self.held = held
        self.tick = tick
    }

    /// The text in these characters, harmless for a terminal.
    package func text(_ text: String) -> String { charset.text(DisplayText.harmless(text)) }

    /// The same text, cut to a number of columns.
    package func text(_ text: String, columns: Int) -> String {
        DisplayText.truncated(self.text(text), to: columns, ellipsis: charset.ellipsis)
    }
}
