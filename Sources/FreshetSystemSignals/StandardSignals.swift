public import FreshetSignals

/// The signals that a daemon fires itself.
public struct StandardSignals: Sendable {
    /// The daemon is ready.
    public let start: SignalSource
    /// A reload was requested, and its configuration is active.
    public let reload: SignalSource

    /// - Parameter now: The clock for the instants of occurrences.
    public init(now: @escaping @Sendable () -> ContinuousClock.Instant = { .now }) {
        start = SignalSource("start", now: now)
        reload = SignalSource("reload", now: now)
    }
}
