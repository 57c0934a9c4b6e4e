/// Decides when runs begin and end if only the latest run is needed: the runs of a `publish`, and the sequences of a
/// `switchToLatest`.
///
/// The driver requests the next run, then waits until that run is over, and so on. Each output of the signal, with the
/// work to run, and each end of a run is reported to this machine.
struct LatestRunStateMachine<Work, Failure: Error, Waiter> {
    /// Identifies a run; never used twice in one iteration.
    struct RunNumber: Hashable, Sendable {
        fileprivate var number: UInt64 = 0
    }

    /// The action of the driver while no run is in progress.
    enum StartAction {
        /// Start a run.
        case start(RunNumber, Work)
        /// End with this failure, or without one.
        case finish(Failure?)
        /// Sleep, then try again.
        case sleep
    }

    /// The action of the driver while a run is in progress.
    enum RunAction {
        /// Cancel the run unless it has returned, and wait until it has returned.
        case end
        /// Sleep, then try again.
        case sleep
    }

    /// The effects of an output of the signal.
    struct OutputAction {
        /// Whether the run in progress is superseded: its elements are no longer delivered.
        var supersedes = false
        /// The driver, if it has to be woken.
        var wake: Waiter?
        /// Work that will never run, to be released when no lock is held.
        var released: Work?
    }

    private enum Run {
        case none
        /// The run was started, and its elements are delivered.
        case current
        /// The run has returned, or its elements are no longer delivered.
        case over
    }

    /// The next work to run: the one of the latest output since the last start.
    private var due: Work?
    private var signalIsOpen = true
    private var run = Run.none
    private var lastRun = RunNumber()
    /// The failure of a run that was not superseded.
    private var failure: Failure?
    private var driver = ConsumerStateMachine<Waiter>()

    /// - Parameter first: The work to run before the first output.
    init(first: Work? = nil) {
        due = first
    }

    // MARK: Events

    /// The signal delivered.
    mutating func output(_ work: Work) -> OutputAction {
        // After a failure, outputs of the signal are ignored.
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
        // Ignore the result of a run that was superseded.
        guard case .current = run, number == lastRun else { return nil }
        run = .over
        self.failure = failure
        return driver.wake()
    }

    // MARK: The driver

    /// The driver begins to wait for a run, or for the end of a run.
    mutating func driverArrived() {
        driver.arrive()
    }

    /// Requests the next run while no run is in progress. Every action but ``StartAction/sleep`` ends the driver's
    /// wait.
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

    /// Requests the next step while a run is in progress. Every action but ``RunAction/sleep`` ends the driver's wait.
    mutating func currentRun(isCancelled: Bool) -> RunAction {
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
    /// - Returns: The waiter, if something happened since the last request.
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
