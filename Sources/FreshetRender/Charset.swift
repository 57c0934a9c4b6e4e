/// Which characters the reader's terminal has.
package enum Charset: Hashable, Sendable {
    case unicode
    /// A C or POSIX locale, or an old one of eight bits: what is not ASCII gets a likeness.
    case ascii

    /// By the locale, as systemd's tools have it: where none is named at all it is UTF-8.
    package static func choose(environment: [String: String]) -> Charset {
        let named = ["LC_ALL", "LC_CTYPE", "LANG"].lazy.compactMap { environment[$0] }.first { !$0.isEmpty }
        guard let named else { return .unicode }
        // Such as de_DE.UTF-8@euro. Compared as a whole: to search a text for another builds tables first, and this is
        // done at each start.
        let codeset = named.split(separator: ".", maxSplits: 1).last?.split(separator: "@").first?.lowercased()
        return codeset == "utf-8" || codeset == "utf8" ? .unicode : .ascii
    }

    /// The text in characters that the terminal has. What has no likeness becomes question marks, as many as it takes
    /// columns, so that tables stay tables.
    package func text(_ text: String) -> String {
        guard self == .ascii, !text.utf8.allSatisfy({ $0 < 0x80 }) else { return text }
        return text.map { character in
            if character.isASCII { return String(character) }
            return Self.likenesses[character]
                ?? String(repeating: "?", count: DisplayText.width(of: String(character)))
        }.joined()
    }

    /// What stands for a text that was cut.
    package var ellipsis: String { self == .ascii ? "..." : "…" }

    /// Each as wide as what it stands for, but the ellipsis, which nothing has to stand below of.
    private static let likenesses: [Character: String] = [
        "●": "*", "○": "o", "↻": "~", "×": "x", "✓": "+", "✗": "x", "–": "-", "—": "-", "…": "...", "µ": "u", "→": ">",
        "←": "<", "↑": "^", "↓": "v", "│": "|", "─": "-", "├": "|", "└": "`", "┌": ".", "┐": ".", "┘": "'", "┤": "|",
        "·": ".", "•": "*", "“": "\"", "”": "\"", "‘": "'", "’": "'", "\u{A0}": " ",
    ]
}
