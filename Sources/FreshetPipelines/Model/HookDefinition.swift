/// An action after each change of the published file: a command, or a unit of the service manager that is reloaded.
package struct HookDefinition: Hashable, Sendable {
    /// An absolute path and arguments, without a shell. Empty: a unit is reloaded.
    package var command: [String]
    /// The name of the unit that is reloaded; nil: a command runs.
    package var unit: String?
    /// The longest time that one run may take.
    package var timeout: Duration
    /// The longest delay of a run after a change; each host and pipeline has its own part of it, always the same.
    package var splay: Duration = .zero
    /// The group whose hooks take turns; nil: only the daemon's own limit applies.
    package var limit: HookLimit?

    /// The timeout unless configured.
    package static let defaultTimeout: Duration = .seconds(30)
    /// The allowed timeouts. A task of more than an hour should be a service, not a hook.
    package static let timeouts: ClosedRange<Duration> = .seconds(1) ... .seconds(3_600)
    /// The longest allowed splay. A change should not wait longer for its readers.
    package static let longestSplay: Duration = .seconds(3_600)
    /// The most hooks of one pipeline; they run one after the other.
    package static let perPipeline = 16

    package init(_ command: [String], timeout: Duration = HookDefinition.defaultTimeout) {
        self.command = command
        self.timeout = timeout
    }

    package init(reloading unit: String, timeout: Duration = HookDefinition.defaultTimeout) {
        command = []
        self.unit = unit
        self.timeout = timeout
    }

    /// Identifies the hook across restarts and reloads: the command or the unit, without the other settings. It is one
    /// line; two different hooks never have the same line, since a command begins with its path. It is ASCII: commands
    /// that differ only in their Unicode normalization are different.
    package var identity: String {
        if let unit { return "reload-unit \(Self.ascii(unit, escaped: ""))" }
        return command.map { Self.ascii($0, escaped: "\\ ") }.joined(separator: " ")
    }

    /// The text with each byte of a character besides ASCII as `\xc3`, and a backslash before each of the characters of
    /// `escaped`. It works on bytes: a space and a combining mark after it are one character.
    private static func ascii(_ text: String, escaped: String) -> String {
        text.utf8.reduce(into: "") { result, byte in
            guard byte < 0x80 else {
                result += "\\x" + String(byte, radix: 16)
                return
            }
            if escaped.utf8.contains(byte) { result += "\\" }
            result.unicodeScalars.append(UnicodeScalar(byte))
        }
    }
}
