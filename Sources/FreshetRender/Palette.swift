/// Colours, or none: the ANSI sequences (ECMA-48, SGR) that systemctl uses for the same purposes.
package struct Palette: Hashable, Sendable {
    package enum Style: Hashable, Sendable {
        case plain, good, busy, bad, faint, heading

        fileprivate var sequence: String {
            switch self {
            case .plain: ""
            case .good: "\u{1B}[0;1;32m"
            case .busy: "\u{1B}[0;1;33m"
            case .bad: "\u{1B}[0;1;31m"
            case .faint: "\u{1B}[0;2m"
            case .heading: "\u{1B}[0;4m"
            }
        }
    }

    package var isColourful: Bool
    /// The characters that the terminal can show.
    package var charset: Charset

    package init(isColourful: Bool, charset: Charset = .unicode) {
        self.isColourful = isColourful
        self.charset = charset
    }

    package func paint(_ text: String, _ style: Style) -> String {
        guard isColourful, style != .plain, !text.isEmpty else { return text }
        return "\(style.sequence)\(text)\u{1B}[0m"
    }

    /// Chooses as systemd's tools do: `SYSTEMD_COLORS` decides if it is a boolean; else a non-empty `NO_COLOR` and
    /// `TERM=dumb` disable colours; else a terminal gets colours.
    package static func choose(environment: [String: String], isTerminal: Bool) -> Palette {
        Palette(
            isColourful: hasColours(environment: environment, isTerminal: isTerminal),
            charset: .choose(environment: environment))
    }

    private static func hasColours(environment: [String: String], isTerminal: Bool) -> Bool {
        switch environment["SYSTEMD_COLORS"]?.lowercased() {
        case "1", "yes", "y", "true", "t", "on", "16", "256", "24bit": return true
        case "0", "no", "n", "false", "f", "off": return false
        default: break
        }
        let isForbidden = environment["NO_COLOR"].map { !$0.isEmpty } ?? false
        return isTerminal && !isForbidden && environment["TERM"] != "dumb"
    }
}
