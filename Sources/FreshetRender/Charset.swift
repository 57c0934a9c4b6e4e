/// The characters that the terminal can show.
package enum Charset: Hashable, Sendable {
    case unicode
    /// A C or POSIX locale, or an 8-bit locale: other characters are replaced by similar ASCII characters.
    case ascii

    /// Chooses by the locale, as systemd's tools do: without a locale it is UTF-8.
    package static func choose(environment: [String: String]) -> Charset {
        let named = ["LC_ALL", "LC_CTYPE", "LANG"].lazy.compactMap { environment[$0] }.first { !$0.isEmpty }
        guard let named else { return .unicode }
        // Such as de_DE.UTF-8@euro. Compared as a whole: a substring search builds tables first, and this runs at each
        // start.
        let codeset = named.split(separator: ".", maxSplits: 1).last?.split(separator: "@").first?.lowercased()
        return codeset == "utf-8" || codeset == "utf8" ? .unicode : .ascii
    }

    /// The text in characters that the terminal can show. A character without a replacement becomes question marks of
    /// the same width, so that tables stay aligned.
    package func text(_ text: String) -> String {
        guard self == .ascii, !text.utf8.allSatisfy({ $0 < 0x80 }) else { return text }
        return text.map { character in
            if character.isASCII { return String(character) }
            return Self.replacements[character]
                ?? String(repeating: "?", count: DisplayText.width(of: String(character)))
        }.joined()
    }

    /// The end of a text that was cut.
    package var ellipsis: String { self == .ascii ? "..." : "…" }

    /// The replacements. Each is as wide as the original, except the ellipsis, which is at the end of a text.
    private static let replacements: [Character: String] = [
        "●": "*", "○": "o", "↻": "~", "×": "x", "✓": "+", "✗": "x", "–": "-", "—": "-", "…": "...", "µ": "u", "→": ">",
        "←": "<", "↑": "^", "↓": "v", "│": "|", "─": "-", "├": "|", "└": "`", "┌": ".", "┐": ".", "┘": "'", "┤": "|",
        "·": ".", "•": "*", "“": "\"", "”": "\"", "‘": "'", "’": "'", "\u{A0}": " ",
    ]
}
