import Glibc

/// The destination and format of log lines.
public enum LogDestination: Hashable, Sendable {
    /// The journal's own protocol: values become fields.
    case journal
    /// Lines on standard error for a log collector, each with the prefix `<N>`: the priority of syslog(3), according to
    /// sd-daemon(3).
    case lines
    /// Lines on standard error for a person: time, level, text.
    case terminal(colour: Bool)

    /// The right destination for this process's standard error.
    ///
    /// - Parameter environment: The variables `JOURNAL_STREAM`, `SYSTEMD_COLORS`, `NO_COLOR` and `TERM` are used.
    public static func detect(environment: [String: String]) -> LogDestination {
        var status = stat()
        let known = fstat(STDERR_FILENO, &status) == 0
        return choose(
            environment: environment, isTerminal: isatty(STDERR_FILENO) == 1,
            stream: known ? (device: UInt64(status.st_dev), inode: UInt64(status.st_ino)) : nil)
    }

    /// Chooses the destination.
    ///
    /// Every process that a service starts inherits `JOURNAL_STREAM`, so it counts only if standard error still is the
    /// stream that it names, by device and inode (systemd.exec(5)).
    static func choose(
        environment: [String: String], isTerminal: Bool, stream: (device: UInt64, inode: UInt64)?
    ) -> LogDestination {
        if let stream, environment["JOURNAL_STREAM"] == "\(stream.device):\(stream.inode)" { return .journal }
        return isTerminal ? .terminal(colour: usesColour(environment)) : .lines
    }

    /// `SYSTEMD_COLORS` decides if it is set, as in systemd's own tools; then `NO_COLOR` (no-color.org: set and not
    /// empty), then the terminal type.
    private static func usesColour(_ environment: [String: String]) -> Bool {
        if let setting = environment["SYSTEMD_COLORS"], !setting.isEmpty {
            return !["0", "no", "n", "false", "f", "off"].contains(setting.lowercased())
        }
        if let setting = environment["NO_COLOR"], !setting.isEmpty { return false }
        return environment["TERM"] != "dumb"
    }
}
