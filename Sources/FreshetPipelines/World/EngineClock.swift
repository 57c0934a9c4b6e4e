package import FreshetModel

/// The clock of the engine, and its timers.
///
/// A timer calls a handler instead of suspending a task, so that a pipeline that waits for its next check costs a timer
/// and no task.
package protocol EngineClock: Sendable {
    /// Boot time, which also advances while the machine sleeps.
    var now: BootInstant { get }
    /// The wall clock, which may jump.
    var wallNow: WallTime { get }
    /// Makes a timer that is not armed. Its handler may run on any thread and must not block.
    func makeTimer(_ handler: @escaping @Sendable () -> Void) -> any EngineTimer
    /// The rules of the time zone of this name, as they are now; nil is the local time zone. An unknown time zone is
    /// UTC.
    func zone(named name: String?) -> TimeZoneRules
}

extension EngineClock {
    package func zone(named name: String?) -> TimeZoneRules { .utc }
}

/// A timer that is armed for one instant and calls its handler once. A released timer does not call its handler.
package protocol EngineTimer: AnyObject, Sendable {
    /// Arms the timer, replacing the previous instant; a past instant is due immediately. The handler does not run
    /// inside this call.
    func arm(at instant: BootInstant)
    /// Disarms the timer. A call of the handler in progress may still finish.
    func disarm()
}

extension Duration {
    /// Whole microseconds, rounded toward zero and clamped to the range of `Int64`.
    package var microseconds: Int64 {
        Int64(clamping: attoseconds / 1_000_000_000_000)
    }
}
