public import Logging
import Synchronization

/// The level below which nothing is logged, shared by all loggers of a program and changeable while it runs.
public final class LogThreshold: Sendable {
    private let stored: Mutex<Logger.Level>

    public init(_ level: Logger.Level = .info) {
        stored = Mutex(level)
    }

    /// The active level. It may be set from any thread and applies from the next event on.
    public var level: Logger.Level {
        get { stored.withLock { $0 } }
        set { stored.withLock { $0 = newValue } }
    }
}
