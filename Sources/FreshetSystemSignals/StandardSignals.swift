public import FreshetSignals

/// The signals that a daemon fires itself, at the moments that only it knows.
public struct StandardSignals: Sendable {
    /// The daemon is ready.
    public let start: SignalSource
    /// A reload was asked for, and the configuration that was read is in force.
    public let reload: SignalSource

    /// - Parameter now: the clock that occurrences are stamped by.
    public init(now: @escaping @Sendable () -> ContinuousClock.Instant = { .now }) {
        start = SignalSource("start", now: now)
        reload = SignalSource("reload", now: now)
    }
}
