import Glibc

/// The service manager's watchdog (sd_watchdog_enabled(3), `WatchdogSec=`): it restarts a service from which it has
/// heard nothing for longer than a limit.
///
/// ```swift
/// if let watchdog = Watchdog(environment: environment) {
///     // notifier.watchdog(), each watchdog.interval
/// }
/// ```
public struct Watchdog: Hashable, Sendable {
    /// The longest silence that is taken for life.
    public let limit: Duration

    /// How often to say `WATCHDOG=1`: half the limit, as sd_watchdog_enabled(3) recommends.
    public var interval: Duration { limit / 2 }

    /// Nil where the manager watches nobody, or another process.
    ///
    /// - Parameter environment: looked at are `WATCHDOG_USEC`, and `WATCHDOG_PID`, without which every process is meant.
    public init?(environment: [String: String]) {
        self.init(environment: environment, process: getpid())
    }

    /// What the variables say to a process.
    init?(environment: [String: String], process: Int32) {
        // Beyond what fits is never, as UINT64_MAX is for systemd.
        guard let limit = environment["WATCHDOG_USEC"].flatMap({ Int64($0) }), limit > 0 else { return nil }
        if let owner = environment["WATCHDOG_PID"], Int32(owner) != process { return nil }
        self.limit = .microseconds(limit)
    }
}
