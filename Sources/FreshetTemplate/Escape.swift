/// How `{{name}}` is written, for the program that reads the copy. `{{{name}}}` is never escaped.
enum Escape: String, CaseIterable {
    /// The text as it is.
    case none
    /// Text of HTML, or the value of an attribute in quotation marks.
    case html
    /// The inside of a JSON string.
    case json
    /// One word of a POSIX shell, in single quotation marks.
    case shell
    /// The inside of a string in double quotation marks of nginx's configuration.
    case nginx

    /// Why a text cannot be written in this form.
    struct Impossible: Error, Hashable {
        var reason: String
    }

    func escaped(_ text: String) throws(Impossible) -> String {
        switch self {
        case .none: text
        case .html: Self.replacing(in: text, Self.html)
        case .json: Self.replacing(in: text, Self.json)
        case .shell: try Self.shell(text)
        case .nginx: try Self.nginx(text)
        }
    }

    /// Replaces scalars, not characters: a combining character after a quotation mark makes one character of both.
    private static func replacing(in text: String, _ replacement: (Unicode.Scalar) -> String?) -> String {
        var result = ""
        result.reserveCapacity(text.utf8.count)
        for scalar in text.unicodeScalars {
            if let replacement = replacement(scalar) {
                result += replacement
            } else {
                result.unicodeScalars.append(scalar)
            }
        }
        return result
    }

    private static func html(_ scalar: Unicode.Scalar) -> String? {
        switch scalar {
        case "&": "&amp;"
        case "<": "&lt;"
        case ">": "&gt;"
        case "\"": "&quot;"
        case "'": "&#39;"
        default: nil
        }
    }

    /// RFC 8259, section 7.
    private static func json(_ scalar: Unicode.Scalar) -> String? {
        switch scalar {
        case "\"": return "\\\""
        case "\\": return "\\\\"
        case "\n": return "\\n"
        case "\r": return "\\r"
        case "\t": return "\\t"
        case "\0"..<" ":
            let digits = String(scalar.value, radix: 16)
            return "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
        default: return nil
        }
    }

    /// Within single quotation marks every character has its own meaning, also a line break (POSIX, XCU 2.2.2). A
    /// single quotation mark ends the string, is written itself after a backslash, and the string begins again.
    private static func shell(_ text: String) throws(Impossible) -> String {
        guard !text.unicodeScalars.contains("\0") else {
            throw Impossible(reason: "contains a NUL, which a word of a shell cannot")
        }
        return "'" + replacing(in: text) { $0 == "'" ? "'\\''" : nil } + "'"
    }

    /// nginx replaces `\"`, `\\`, `\t`, `\r` and `\n` in a string (ngx_conf_read_token). It has no escape for `$`.
    private static func nginx(_ text: String) throws(Impossible) -> String {
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\0": throw Impossible(reason: "contains a NUL, which a string of nginx cannot")
            case "$": throw Impossible(reason: "contains '$', which nginx reads as a variable and cannot escape")
            default: break
            }
        }
        return replacing(in: text) { scalar in
            switch scalar {
            case "\"": "\\\""
            case "\\": "\\\\"
            case "\n": "\\n"
            case "\r": "\\r"
            case "\t": "\\t"
            default: nil
            }
        }
    }
}
