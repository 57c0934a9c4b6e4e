import Glibc

/// The service manager's watchdog (sd_watchdog_enabled(3), `WatchdogSec=`): it restarts a service that has not sent
/// `WATCHDOG=1` for longer than a limit.
///
/// ```swift
/// if let watchdog = Watchdog(environment: environment) {
///     // notifier.watchdog(), each watchdog.interval
/// }
/// ```
public struct Watchdog: Hashable, Sendable {
    /// The longest time without `WATCHDOG=1`.
    public let limit: Duration

    /// How often to send `WATCHDOG=1`: every half of the limit, as sd_watchdog_enabled(3) recommends.
    public var interval: Duration { limit / 2 }

    /// Nil if the service manager has no watchdog for this process.
    ///
    /// - Parameter environment: The variables `WATCHDOG_USEC` and `WATCHDOG_PID` are used. Without `WATCHDOG_PID`,
    ///   every process is watched.
    public init?(environment: [String: String]) {
        self.init(environment: environment, process: getpid())
    }

    /// Reads the variables for a process.
    init?(environment: [String: String], process: Int32) {
        // A value that does not fit means no limit, like UINT64_MAX for systemd.
        guard let limit = environment["WATCHDOG_USEC"].flatMap({ Int64($0) }), limit > 0 else { return nil }
        if let owner = environment["WATCHDOG_PID"], Int32(owner) != process { return nil }
        self.limit = .microseconds(limit)
    }
}
