public import FreshetEventLoop
public import FreshetSignals
import Synchronization

/// The signals `resume` and `clock-stepped`, and whether the machine is awake.
///
/// Three witnesses, one firing for each wake, whoever sees it first:
///
/// - the clocks: at each wake-up of the loop CLOCK_BOOTTIME is compared with CLOCK_MONOTONIC, which does not count
///   sleep. This needs nobody's help, and comes before any timer of the loop that is overdue;
/// - a timer on CLOCK_REALTIME that the kernel cancels when the machine resumes or the clock is set
///   (timerfd_create(2)): it wakes a loop that has nothing else to do;
/// - logind's `PrepareForSleep` (org.freedesktop.login1(5)), from logind itself and nobody else: also for a suspend that
///   failed, after which no clock jumps. Such a machine is awake again, and so `resume` fires.
///
/// ```swift
/// let monitor = SleepMonitor(loop, bus: BusConnection(loop, .system)) { connections.dropIdle() }
/// for await _ in monitor.resumed { … }
/// ```
///
/// A sleep shorter than a second fires nothing. A wall clock that was set by a second or more, without a sleep, is
/// ``clockStepped``: an administrator, NTP, or a virtual machine that was paused or moved; one that is slewed is not.
///
/// **Order.** At a wake the hook is called, then the fact changes, then `resume` fires, all on the loop's thread; if
/// the clocks told, the tasks that hear it run before any timer of the loop expires (`EventLoop.observeWakeUps(_:)`).
///
/// **What is missing** is no error: ``SleepFact/logind`` says so, and the other witnesses go on.
///
/// **Threading.** All methods may be called from any thread.
public final class SleepMonitor: Sendable {
    /// The name of the signal of a wake.
    public static let signalName = "resume"
    /// The name of the signal of a wall clock that was set.
    public static let clockSteppedName = "clock-stepped"

    private static let logind = "org.freedesktop.login1"
    private static let manager = "org.freedesktop.login1.Manager"
    private static let path = "/org/freedesktop/login1"

    private struct State {
        var machine: SleepMachine
        var observation: WakeUpObservation?
        var clockSet: ClockSetDescriptor?
        var deadline: LoopTimer?
        /// What ``deadline`` is armed for.
        var armed: ContinuousClock.Instant?
        var subscription: BusSubscription?
    }

    private let resume = SignalSource(signalName)
    private let stepped = SignalSource(clockSteppedName)
    let current: CurrentValue<SleepFact>
    private let onResume: @Sendable () -> Void
    private let read: @Sendable () -> ClockReading
    private let bus: BusConnection?
    private let state: Mutex<State>

    /// Begins to watch the clocks, and logind if there is a bus. It always succeeds: see ``SleepFact/logind``.
    ///
    /// - Parameters:
    ///   - loop: whose wake-ups are watched.
    ///   - bus: the system bus; nil: only the clocks are watched.
    ///   - onResume: called on the loop's thread at each wake of the machine, before anybody hears of it: a new epoch
    ///     begins there. It must not block.
    public convenience init(
        _ loop: EventLoop, bus: BusConnection?, onResume: @escaping @Sendable () -> Void = {}
    ) {
        self.init(loop, bus: bus, onResume: onResume, read: { .now() })
    }

    /// - Parameter read: looks at the clocks; tests move them.
    init(
        _ loop: EventLoop, bus: BusConnection?, onResume: @escaping @Sendable () -> Void,
        read: @escaping @Sendable () -> ClockReading
    ) {
        self.onResume = onResume
        self.read = read
        self.bus = bus
        let logind = bus == nil ? .unavailable(reason: "the system bus is not used") : SleepFact.Availability.pending
        current = CurrentValue(SleepFact(logind: logind))
        state = Mutex(State(machine: SleepMachine(read(), logind: logind, at: .now)))
        // Without such a descriptor (a sandbox, none left) steps are looked for at each wake-up.
        let clockSet = try? ClockSetDescriptor(loop) { [weak self] in self?.clockWasSet() }
        let observation = loop.observeWakeUps { [weak self] in self?.wokeUp() ?? false }
        let deadline = LoopTimer(loop) { [weak self] in self?.deadlinePassed() }
        state.withLock {
            $0.observation = observation
            $0.deadline = deadline
            $0.clockSet = clockSet
            $0.machine.hearsSteps = clockSet != nil
        }
        if let bus { listen(to: bus) }
    }

    /// The machine woke up: one firing for each wake, whoever witnessed it first.
    public var resumed: Signal { resume.signal }

    /// The wall clock was set, and the machine did not sleep: what was planned by it is to be planned anew.
    public var clockStepped: Signal { stepped.signal }

    /// The present state.
    public var fact: SleepFact { current.value }

    /// The present state first, then what becomes of it; a slow reader gets the newest.
    public var facts: some AsyncSequence<SleepFact, Never> & Sendable { current }

    /// How often a witness told of what was no wake: a sleep shorter than a second, a wall clock that was set, a sleep
    /// that was announced and did not come. Two witnesses of one wake are not counted.
    public var minorChanges: UInt64 { state.withLock { $0.machine.minor } }

    /// Fires `resume` by hand, as if the machine had woken up: the hook is called first. The fact stays. To be called on
    /// the loop's thread.
    package func raise(_ detail: String) {
        onResume()
        resume.fire(detail)
    }

    // MARK: Witnesses

    /// Returns whether the machine woke up: then who hears of it comes before the timers.
    private func wokeUp() -> Bool {
        let reading = read()
        return step { $0.wokeUp(reading, at: .now) }
    }

    private func clockWasSet() {
        let reading = read()
        _ = step { $0.clockWasSet(reading, at: .now) }
    }

    private func deadlinePassed() {
        _ = step { machine in
            machine.deadlinePassed(at: .now)
            return SleepMachine.Outcome()
        }
    }

    private func listen(to bus: BusConnection) {
        let match = BusMatch(
            valid: Self.logind, path: Self.path, interface: Self.manager, member: "PrepareForSleep")
        let subscription = bus.subscribe(match) { [weak self] standing in
            self?.logindBecame(standing)
        } _: { [weak self] message in
            guard let self, case .boolean(let begins)? = message.arguments?.first else { return }
            let reading = self.read()
            _ = self.step { $0.prepareForSleep(begins, reading, at: .now) }
        }
        state.withLock { $0.subscription = subscription }
    }

    private func logindBecame(_ standing: BusSubscriptionState) {
        let availability: SleepFact.Availability
        switch standing {
        case .connecting: availability = .pending
        case .inForce(sender: .some): availability = .available
        case .inForce(sender: nil): availability = .unavailable(reason: "logind does not run")
        case .refused(let reason), .disconnected(let reason): availability = .unavailable(reason: reason)
        }
        _ = step { machine in
            machine.logindBecame(availability)
            return SleepMachine.Outcome()
        }
        guard availability == .available else { return }
        // What was said while nobody listened: it is asked for now that whatever comes next is heard.
        bus?.getProperty("PreparingForSleep", of: Self.manager, at: Self.path, from: Self.logind) {
            [weak self] answer in
            guard let self, case .success(.boolean(let isPreparing)) = answer else { return }
            let reading = self.read()
            _ = self.step { $0.isPreparingForSleep(isPreparing, reading, at: .now) }
        }
    }

    /// Has the machine decide, and does what it says. On the loop's thread. Returns whether the machine woke up.
    private func step(_ body: (inout SleepMachine) -> SleepMachine.Outcome) -> Bool {
        let (outcome, changed) = state.withLock { state -> (SleepMachine.Outcome, SleepFact?) in
            let before = state.machine.fact
            let outcome = body(&state.machine)
            if state.machine.deadline != state.armed {
                state.armed = state.machine.deadline
                if let deadline = state.armed { state.deadline?.arm(at: deadline) } else { state.deadline?.disarm() }
            }
            return (outcome, state.machine.fact == before ? nil : state.machine.fact)
        }
        if outcome.resumed != nil { onResume() }
        if let changed { current.value = changed }
        if let detail = outcome.resumed { resume.fire(detail) }
        if let detail = outcome.stepped { stepped.fire(detail) }
        return outcome.resumed != nil
    }
}
