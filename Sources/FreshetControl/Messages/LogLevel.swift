/// The least urgent messages that the daemon logs: messages of this level and of more urgent levels.
package enum LogLevel: String, Codable, CaseIterable, Hashable, Sendable {
    case trace, debug, info, notice, warning, error, critical

    /// Makes a level from a priority of syslog(3), 0 to 7; nil: not a priority. Critical is the most urgent level here.
    package init?(syslog priority: Int64) {
        switch priority {
        case 0, 1, 2: self = .critical
        case 3: self = .error
        case 4: self = .warning
        case 5: self = .notice
        case 6: self = .info
        case 7: self = .debug
        default: return nil
        }
    }

    /// Makes a level from a name of this type, or from a name or number that `systemctl log-level` accepts; nil: not a
    /// level.
    package init?(name: String) {
        switch name {
        case "emerg", "alert", "crit": self = .critical
        case "err": self = .error
        default:
            guard let level = LogLevel(rawValue: name) ?? Int64(name).flatMap(LogLevel.init(syslog:)) else {
                return nil
            }
            self = level
        }
    }

    /// The names that ``init(name:)`` accepts, most urgent first. It accepts numbers too.
    package static let names = [
        "emerg", "alert", "crit", "critical", "err", "error", "warning", "notice", "info", "debug", "trace",
    ]
}
