/// How much the daemon logs: what is of this level and of those after it.
package enum LogLevel: String, Codable, CaseIterable, Hashable, Sendable {
    case trace, debug, info, notice, warning, error, critical

    /// From a priority of syslog(3), 0 to 7; nil: it is none. Nothing of ours is more urgent than critical.
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

    /// From a name of ours, or a name or number as `systemctl log-level` takes it; nil: it is none.
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

    /// All that ``init(name:)`` takes besides numbers, the most urgent first.
    package static let names = [
        "emerg", "alert", "crit", "critical", "err", "error", "warning", "notice", "info", "debug", "trace",
    ]
}
