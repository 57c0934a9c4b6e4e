/// Text for a terminal: made harmless, measured in columns, and cut to a width.
package enum DisplayText {
    /// One line without effects on a terminal: control characters, line feeds and characters that change the writing
    /// direction become `\u{…}`. All text from the network or the kernel has to pass through here.
    package static func harmless(_ text: String) -> String {
        guard text.unicodeScalars.contains(where: isHarmful) else { return text }
        var result = ""
        for scalar in text.unicodeScalars {
            if isHarmful(scalar) {
                result += "\\u{\(String(scalar.value, radix: 16))}"
            } else {
                result.unicodeScalars.append(scalar)
            }
        }
        return result
    }

    /// Several lines without effects on a terminal, except for line feeds and tabs.
    package static func harmlessLines(_ text: String) -> String {
        guard text.unicodeScalars.contains(where: { isHarmful($0) && $0 != "\n" && $0 != "\t" }) else { return text }
        var result = ""
        for scalar in text.unicodeScalars {
            if scalar == "\n" || scalar == "\t" {
                result.unicodeScalars.append(scalar)
            } else {
                result += harmless(String(scalar))
            }
        }
        return result
    }

    /// The number of columns of the text on a terminal.
    package static func width(of text: String) -> Int {
        // The usual case: the width of ASCII text is its length.
        if text.utf8.allSatisfy({ $0 >= 0x20 && $0 < 0x7F }) { return text.utf8.count }
        return text.reduce(0) { $0 + width(of: $1) }
    }

    /// The text, cut to a number of columns; a cut text ends with an ellipsis if that fits.
    package static func truncated(_ text: String, to columns: Int, ellipsis: String = "…") -> String {
        guard width(of: text) > columns else { return text }
        guard columns > 0 else { return "" }
        let ellipsis = columns > ellipsis.count || ellipsis.count == 1 ? ellipsis : ""
        var result = ""
        var used = 0
        for character in text {
            used += width(of: character)
            if used > columns - ellipsis.count { break }
            result.append(character)
        }
        return result + ellipsis
    }

    private static func isHarmful(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        case 0..<0x20, 0x7F..<0xA0, 0x2028, 0x2029, 0x061C, 0x200E, 0x200F, 0x202A...0x202E, 0x2066...0x2069: true
        default: false
        }
    }

    package static func width(of character: Character) -> Int {
        let scalars = character.unicodeScalars
        guard let first = scalars.first else { return 0 }
        // An emoji with the variation selector for its coloured form is as wide as an ideograph.
        if scalars.contains(where: { $0.value == 0xFE0F }) && first.properties.isEmoji { return 2 }
        switch first.properties.generalCategory {
        case .nonspacingMark, .enclosingMark, .format, .control: return 0
        default: return isWide(first) ? 2 : 1
        }
    }

    /// Whether a character is in a block of East Asian width W or F (Unicode Annex 11); blocks count as a whole.
    private static func isWide(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        case 0x1100...0x115F,  // Hangul initial consonants
            0x2E80...0x303E, 0x3041...0x33FF, 0x3400...0x4DBF, 0x4E00...0x9FFF,  // CJK, kana
            0xA000...0xA4CF, 0xA960...0xA97F, 0xAC00...0xD7A3,  // Yi, Hangul
            0xF900...0xFAFF, 0xFE30...0xFE6F, 0xFF00...0xFF60, 0xFFE0...0xFFE6,  // compatibility and full-width forms
            0x1F300...0x1F64F, 0x1F680...0x1F6FF, 0x1F900...0x1F9FF,  // pictographs
            0x20000...0x3FFFD:
            true
        default: scalar.properties.isEmojiPresentation
        }
    }
}
