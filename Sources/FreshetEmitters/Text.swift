/// Text of messages that comes from elsewhere, made fit for a terminal and a journal.
enum Text {
    /// A number with its thousands apart: 12,345.
    static func grouped(_ number: UInt64) -> String {
        let digits = String(number)
        var text = ""
        for (index, digit) in digits.enumerated() {
            if index > 0 && (digits.count - index).isMultiple(of: 3) { text.append(",") }
            text.append(digit)
        }
        return text
    }

    /// A time in whole seconds, rounded up: 10 s.
    static func seconds(_ duration: Duration) -> String {
        "\(duration.components.seconds + (duration.components.attoseconds > 0 ? 1 : 0)) s"
    }

    /// The text with its control characters escaped, so that nobody's output can move a cursor or end a line. What is
    /// no UTF-8 becomes U+FFFD.
    static func escaped(_ bytes: some Collection<UInt8>) -> String {
        escaped(String(decoding: bytes, as: UTF8.self))
    }

    static func escaped(_ text: String) -> String {
        var result = ""
        for scalar in text.unicodeScalars {
            switch scalar.properties.generalCategory {
            // Format characters too: some of them reverse the direction of what follows.
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
