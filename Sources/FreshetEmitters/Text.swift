/// Formats values and untrusted text for messages on a terminal and in a journal.
enum Text {
    /// A number with separated thousands: 12,345.
    static func grouped(_ number: UInt64) -> String {
        let digits = String(number)
        var text = ""
        for (index, digit) in digits.enumerated() {
            if index > 0 && (digits.count - index).isMultiple(of: 3) { text.append(",") }
            text.append(digit)
        }
        return text
    }

    /// A duration in whole seconds, rounded up: 10 s.
    static func seconds(_ duration: Duration) -> String {
        "\(duration.components.seconds + (duration.components.attoseconds > 0 ? 1 : 0)) s"
    }

    /// The text with control characters escaped, so that untrusted output cannot move a cursor or end a line. Bytes
    /// that are not UTF-8 become U+FFFD.
    static func escaped(_ bytes: some Collection<UInt8>) -> String {
        escaped(String(decoding: bytes, as: UTF8.self))
    }

    static func escaped(_ text: String) -> String {
        // Nearly all texts have nothing to escape, and the categories of characters are slow to look up.
        if text.utf8.allSatisfy({ (0x20..<0x7F).contains($0) }) { return text }
        var result = ""
        for scalar in text.unicodeScalars {
            switch scalar.properties.generalCategory {
            // Format characters are escaped too: some of them reverse the direction of the following text.
            case .control, .format, .lineSeparator, .paragraphSeparator:
                let digits = String(scalar.value, radix: 16)
                result += "\\u{\(digits)}"
            default:
                result.unicodeScalars.append(scalar)
            }
        }
        return result
    }
}
