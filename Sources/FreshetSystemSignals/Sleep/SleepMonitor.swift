public import FreshetEventLoop
public import FreshetSignals

/// The signals `resume` and `clock-stepped`.
public final class SleepMonitor: Sendable {
    /// The name of the signal of a wake.
    public static let signalName = "resume"
    /// The name of the signal of a wall clock that was set.
    public static let clockSteppedName = "clock-stepped"

    private let resume = SignalSource(signalName)
    private let stepped = SignalSource(clockSteppedName)
    private let current = CurrentValue(SleepFact())

    /// Begins to watch the clocks, and logind if there is a bus. It always succeeds: see ``SleepFact/logind``.
    ///
    /// - Parameters:
    ///   - loop: whose wake-ups are watched.
    ///   - bus: the system bus; nil: only the clocks are watched.
    ///   - onResume: called on the loop's thread at each wake of the machine, before anybody hears of it: a new epoch
    ///     begins there. It must not block.
    public init(_ loop: EventLoop, bus: BusConnection?, onResume: @escaping @Sendable () -> Void = {}) {}

    /// The machine woke up: one firing for each wake, whoever witnessed it first.
    public var resumed: Signal { resume.signal }
    /// The wall clock was set, and the machine did not sleep.
    public var clockStepped: Signal { stepped.signal }
    /// The present state.
    public var fact: SleepFact { current.value }
    /// The present state first, then what becomes of it; a slow reader gets the newest.
    public var facts: CurrentValue<SleepFact> { current }
}
