public import FreshetEventLoop
public import FreshetSignals
import Synchronization

/// The signals `resume` and `clock-stepped`, and whether the machine is awake.
///
/// It uses three sources and fires once for each resume, for the first source that shows it:
///
/// - the clocks: at each wake-up of the loop CLOCK_BOOTTIME is compared with CLOCK_MONOTONIC, which does not count
///   sleep. This works without a service, and precedes any overdue timer of the loop;
/// - a timer on CLOCK_REALTIME that the kernel cancels when the machine resumes or the clock is set
///   (timerfd_create(2)): it wakes an idle loop;
/// - logind's `PrepareForSleep` (org.freedesktop.login1(5)); messages of other senders are ignored. It also covers a
///   suspend that failed, after which no clock jumps. Such a machine is awake again, so `resume` fires.
/// ```swift
/// let monitor = SleepMonitor(loop, bus: BusConnection(loop, .system)) { connections.dropIdle() }
/// for await _ in monitor.resumed { … }
/// ```
///
/// A sleep shorter than a second does not fire. If the wall clock was set by a second or more without a sleep,
/// ``clockStepped`` fires: by an administrator, by NTP, or in a virtual machine that was paused or moved. Slewing the
/// clock does not fire.
///
/// **Order.** At a resume the hook is called, then the fact changes, then `resume` fires, all on the loop's thread. If
/// the clocks showed the resume, the tasks that receive the signal run before any timer of the loop expires
/// (`EventLoop.observeWakeUps(_:)`).
///
/// **Availability.** Missing services are not an error: ``SleepFact/logind`` shows them, and the other sources
/// continue.
///
/// **Threading.** All methods may be called from any thread.
public final class SleepMonitor: Sendable {
    /// The name of the signal of a resume.
    public static let signalName = "resume"
    /// The name of the signal of a wall clock step.
    public static let clockSteppedName = "clock-stepped"

    private static let logind = "org.freedesktop.login1"
    private static let manager = "org.freedesktop.login1.Manager"
    private static let path = "/org/freedesktop/login1"

    private struct State {
        var machine: SleepMachine
        var observation: WakeUpObservation?
        var clockSet: ClockSetDescriptor?
        var deadline: LoopTimer?
        /// The instant for which ``deadline`` is armed.
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

    /// Starts to watch the clocks, and logind if there is a bus. It always succeeds: see ``SleepFact/logind``.
    ///
    /// - Parameters:
    ///   - loop: The loop whose wake-ups are watched.
    ///   - bus: The system bus; nil: only the clocks are watched.
    ///   - onResume: Called on the loop's thread at each resume of the machine, before the fact and the signal change:
    ///     begin a new epoch there. It must not block.
    public convenience init(
        _ loop: EventLoop, bus: BusConnection?, onResume: @escaping @Sendable () -> Void = {}
    ) {
        self.init(loop, bus: bus, onResume: onResume, read: { .now() })
    }

    /// - Parameter read: Reads the clocks; tests replace them.
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
        // Without such a descriptor (a sandbox, or no free descriptor) each wake-up checks for steps.
        let clockSet = try? ClockSetDescriptor(loop) { [weak self] in self?.clockWasSet() }
        let observation = loop.observeWakeUps { [weak self] in self?.wokeUp() ?? false }
        let deadline = LoopTimer(loop) { [weak self] in self?.deadlinePassed() }
        state.withLock {
            $0.observation = observation
            $0.deadline = deadline
            $0.clockSet = clockSet
            $0.machine.receivesSteps = clockSet != nil
        }
        if let bus { subscribe(to: bus) }
    }

    /// The machine resumed: one firing for each resume, whichever source shows it first.
    public var resumed: Signal { resume.signal }

    /// The wall clock was set without a sleep: plans that depend on the wall clock have to be made again.
    public var clockStepped: Signal { stepped.signal }

    /// The current fact.
    public var fact: SleepFact { current.value }

    /// The current fact, then each change; a slow reader gets the newest.
    public var facts: some AsyncSequence<SleepFact, Never> & Sendable { current }

    /// The number of events that were not a resume: a sleep shorter than a second, a wall clock that was set, an
    /// announced sleep that did not follow. A second source of the same resume does not count.
    public var minorChanges: UInt64 { state.withLock { $0.machine.minor } }

    /// Fires `resume` as if the machine had resumed: the hook is called first. The fact is unchanged. Call it on the
    /// loop's thread.
    package func fire(_ detail: String) {
        onResume()
        resume.fire(detail)
    }

    // MARK: Sources

    /// Returns whether the machine resumed: then the subscribers run before the timers.
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

    private func subscribe(to bus: BusConnection) {
        let match = BusMatch(
            valid: Self.logind, path: Self.path, interface: Self.manager, member: "PrepareForSleep")
        let subscription = bus.subscribe(match) { [weak self] subscriptionState in
            self?.logindBecame(subscriptionState)
        } _: { [weak self] message in
            guard let self, case .boolean(let begins)? = message.arguments?.first else { return }
            let reading = self.read()
            _ = self.step { $0.prepareForSleep(begins, reading, at: .now) }
        }
        state.withLock { $0.subscription = subscription }
    }

    private func logindBecame(_ subscriptionState: BusSubscriptionState) {
        let availability: SleepFact.Availability
        switch subscriptionState {
        case .connecting: availability = .pending
        case .active(sender: .some): availability = .available
        case .active(sender: nil): availability = .unavailable(reason: "logind does not run")
        case .refused(let reason), .disconnected(let reason): availability = .unavailable(reason: reason)
        }
        _ = step { machine in
            machine.logindBecame(availability)
            return SleepMachine.Outcome()
        }
        guard availability == .available else { return }
        // Read the property for messages that were missed, now that later ones are received.
        bus?.getProperty("PreparingForSleep", of: Self.manager, at: Self.path, from: Self.logind) {
            [weak self] answer in
            guard let self, case .success(.boolean(let isPreparing)) = answer else { return }
            let reading = self.read()
            _ = self.step { $0.isPreparingForSleep(isPreparing, reading, at: .now) }
        }
    }

    /// Lets the machine decide, and performs its actions. Called on the loop's thread. Returns whether the machine
    /// resumed.
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
