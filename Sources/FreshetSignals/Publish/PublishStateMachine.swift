/// When the runs of a `publish` begin and end.
///
/// The driver asks when to start the next run, then when that is over, and so on. Outputs of the signal and the ends
/// of runs are reported to it as they come.
struct PublishStateMachine<Failure: Error, Waiter> {
    /// Tells a run from those before it.
    struct RunNumber: Hashable, Sendable {
        fileprivate var number: UInt64 = 0
    }

    /// What the driver does while no run is under way.
    enum StartAction {
        /// Start a run.
        case start(RunNumber)
        /// End with this failure, or without one.
        case finish(Failure?)
        /// Sleep, then ask again.
        case sleep
    }

    /// What the driver does while a run is under way.
    enum RunAction {
        /// Cancel it, unless it has returned, and wait until it has.
        case end
        /// Sleep, then ask again.
        case sleep
    }

    /// What an output of the signal leads to.
    struct OutputAction {
        /// Nothing more of the run under way is delivered.
        var supersedes = false
        /// The driver is to be woken.
        var wake: Waiter?
    }

    private enum Run {
        case none
        /// It was started, and what it emits is wanted.
        case current
        /// It has returned, or what it emits is no longer wanted.
        case over
    }

    /// A run is to be started: all outputs since the last start, as one.
    private var isDue: Bool
    private var signalIsOpen = true
    private var run = Run.none
    private var lastRun = RunNumber()
    /// Of a run whose elements were wanted.
    private var failure: Failure?
    private var driver = AskerStateMachine<Waiter>()

    /// - Parameter runsAtStart: A run is due before the first output.
    init(runsAtStart: Bool) {
        isDue = runsAtStart
    }

    // MARK: What happens

    /// The signal delivered.
    mutating func output() -> OutputAction {
        // After a failure the signal is dropped.
        guard failure == nil else { return OutputAction() }
        isDue = true
        switch run {
        case .current:
            run = .over
            return OutputAction(supersedes: true, wake: driver.wake())
        case .none, .over:
            return OutputAction(wake: driver.wake())
        }
    }

    /// The signal ended.
    mutating func signalEnded() -> Waiter? {
        signalIsOpen = false
        return driver.wake()
    }

    /// A run returned.
    mutating func runEnded(_ number: RunNumber, _ failure: Failure?) -> Waiter? {
        // A run that was superseded has nothing to say any more.
        guard case .current = run, number == lastRun else { return nil }
        run = .over
        self.failure = failure
        return driver.wake()
    }

    // MARK: The driver

    /// The driver begins to ask.
    mutating func driverArrived() {
        driver.arrive()
    }

    /// The driver, without a run, asks. Unless the action is ``StartAction/sleep`` it has its answer with that.
    mutating func nextRun(isCancelled: Bool) -> StartAction {
        if isCancelled || failure != nil {
            driver.leave()
            return .finish(failure)
        }
        if isDue {
            isDue = false
            run = .current
            lastRun.number += 1
            driver.leave()
            return .start(lastRun)
        }
        if !signalIsOpen {
            driver.leave()
            return .finish(nil)
        }
        return .sleep
    }

    /// The driver, with a run, asks. Unless the action is ``RunAction/sleep`` it has its answer with that.
    mutating func presentRun(isCancelled: Bool) -> RunAction {
        switch run {
        case .current where !isCancelled:
            return .sleep
        case .none, .current, .over:
            run = .none
            driver.leave()
            return .end
        }
    }

    /// The driver falls asleep.
    ///
    /// - Returns: The waiter, if something happened since it asked.
    mutating func driverSleeps(_ waiter: Waiter) -> Waiter? {
        let mayLook =
            switch run {
            case .none: isDue || !signalIsOpen || failure != nil
            case .current: false
            case .over: true
            }
        return mayLook ? waiter : driver.sleep(waiter)
    }

    /// The driver's task was cancelled.
    mutating func cancel() -> Waiter? {
        driver.cancel()
    }
}
