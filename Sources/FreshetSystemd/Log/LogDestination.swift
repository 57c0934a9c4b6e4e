import Glibc

/// Where log lines go, and in what dress.
public enum LogDestination: Hashable, Sendable {
    /// The journal's own protocol: values become fields.
    case journal
    /// Lines on standard error, each with `<N>` before it: the priority of syslog(3), as sd-daemon(3) has it, for
    /// whoever collects them.
    case lines
    /// Lines on standard error for a person: time, level, text.
    case terminal(colour: Bool)

    /// What suits this process's standard error.
    ///
    /// - Parameter environment: looked at are `JOURNAL_STREAM`, `SYSTEMD_COLORS`, `NO_COLOR` and `TERM`.
    public static func detect(environment: [String: String]) -> LogDestination {
        var status = stat()
        let known = fstat(STDERR_FILENO, &status) == 0
        return choose(
            environment: environment, isTerminal: isatty(STDERR_FILENO) == 1,
            stream: known ? (device: UInt64(status.st_dev), inode: UInt64(status.st_ino)) : nil)
    }

    /// The choice itself.
    ///
    /// `JOURNAL_STREAM` is inherited by everything that a service starts, so it counts only if standard error still is
    /// the stream that it names, by device and inode (systemd.exec(5)).
    static func choose(
        environment: [String: String], isTerminal: Bool, stream: (device: UInt64, inode: UInt64)?
    ) -> LogDestination {
        if let stream, environment["JOURNAL_STREAM"] == "\(stream.device):\(stream.inode)" { return .journal }
        return isTerminal ? .terminal(colour: wantsColour(environment)) : .lines
    }

    /// `SYSTEMD_COLORS` decides if it is set, as in systemd's own tools; then `NO_COLOR` (no-color.org: set and not
    /// empty), then what the terminal can do.
    private static func wantsColour(_ environment: [String: String]) -> Bool {
        if let wish = environment["SYSTEMD_COLORS"], !wish.isEmpty {
            return !["0", "no", "n", "false", "f", "off"].contains(wish.lowercased())
        }
        if let wish = environment["NO_COLOR"], !wish.isEmpty { return false }
        return environment["TERM"] != "dumb"
    }
}
