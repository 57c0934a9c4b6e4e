/// When runs begin and end of which only the latest is wanted: those of a `publish`, and the sequences of a
/// `switchToLatest`.
///
/// The driver asks when to start the next run, then when that is over, and so on. Outputs of the signal, each with what
/// there is to run, and the ends of runs are reported to it as they come.
struct LatestRunStateMachine<Work, Failure: Error, Waiter> {
    /// Tells a run from those before it.
    struct RunNumber: Hashable, Sendable {
        fileprivate var number: UInt64 = 0
    }

    /// What the driver does while no run is under way.
    enum StartAction {
        /// Start a run.
        case start(RunNumber, Work)
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
        /// What will never run, to be released when no lock is held.
        var released: Work?
    }

    private enum Run {
        case none
        /// It was started, and what it emits is wanted.
        case current
        /// It has returned, or what it emits is no longer wanted.
        case over
    }

    /// What is to run next: that of the latest output since the last start.
    private var due: Work?
    private var signalIsOpen = true
    private var run = Run.none
    private var lastRun = RunNumber()
    /// Of a run whose elements were wanted.
    private var failure: Failure?
    private var driver = ConsumerStateMachine<Waiter>()

    /// - Parameter first: What is to run before the first output.
    init(first: Work? = nil) {
        due = first
    }

    // MARK: What happens

    /// The signal delivered.
    mutating func output(_ work: Work) -> OutputAction {
        // After a failure the signal is dropped.
        guard failure == nil else { return OutputAction(released: work) }
        let replaced = due
        due = work
        switch run {
        case .current:
            run = .over
            return OutputAction(supersedes: true, wake: driver.wake(), released: replaced)
        case .none, .over:
            return OutputAction(wake: driver.wake(), released: replaced)
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
        if let work = due.take() {
            run = .current
            lastRun.number += 1
            driver.leave()
            return .start(lastRun, work)
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
            case .none: due != nil || !signalIsOpen || failure != nil
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
