/// Text from elsewhere, made fit for one line that people read.
///
/// What the network, the kernel or a child process says may hold line breaks, terminal sequences or characters that
/// turn the direction of writing. On a line for people they show as what they are.
package enum PlainText {
    /// Escapes control characters, format characters and line separators as `\n`, `\t`, `\u{7f}`. A backslash stays
    /// as it is: the line is for reading, and nothing parses it.
    package static func escaping(_ text: String) -> String {
        guard text.unicodeScalars.contains(where: needsEscape) else { return text }
        var result = ""
        result.reserveCapacity(text.utf8.count + 8)
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\n": result += "\\n"
            case "\r": result += "\\r"
            case "\t": result += "\\t"
            case _ where needsEscape(scalar): result += "\\u{\(String(scalar.value, radix: 16))}"
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result
    }

    private static func needsEscape(_ scalar: Unicode.Scalar) -> Bool {
        if scalar.isASCII { return scalar.value < 0x20 || scalar.value == 0x7f }
        switch scalar.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator: return true
        default: return false
        }
    }
}

extension String {
    /// The text, or its beginning and `…` so that it is at most `limit` bytes of UTF-8.
    func truncated(toBytes limit: Int) -> String {
        guard utf8.count > limit else { return self }
        let mark = "…"
        var end = utf8.index(startIndex, offsetBy: max(0, limit - mark.utf8.count))
        // Not into the middle of a character.
        while end > startIndex, end.samePosition(in: unicodeScalars) == nil { end = utf8.index(before: end) }
        return String(self[..<end]) + mark
    }
}
