/// The time of the engine, and its timers.
///
/// Timers call instead of being slept for, so that a pipeline that waits for its next check costs a timer and no task.
package protocol EngineClock: Sendable {
    /// Boot time: goes on while the machine sleeps.
    var now: ContinuousClock.Instant { get }
    /// The wall clock: microseconds since 1970-01-01 UTC. It may jump.
    var wallNow: Int64 { get }
    /// Makes a timer that is not armed. Its handler may run on any thread and must not block.
    func makeTimer(_ handler: @escaping @Sendable () -> Void) -> any EngineTimer
}

/// A timer that is armed for one instant and calls its handler once. Released, it is silent.
package protocol EngineTimer: Sendable {
    /// Replaces the instant that it was armed for; one that has passed is due at once. The handler does not run inside.
    func arm(at instant: ContinuousClock.Instant)
    /// Takes the instant back. A call of the handler that is under way may still end.
    func disarm()
}

extension Duration {
    /// Whole microseconds, rounded toward zero; what does not fit is the most that does.
    package var microseconds: Int64 {
        let (seconds, attoseconds) = components
        let (product, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000)
        if overflow { return seconds < 0 ? .min : .max }
        return product.addingReportingOverflow(attoseconds / 1_000_000_000_000).partialValue
    }
}
