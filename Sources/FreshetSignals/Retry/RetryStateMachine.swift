/// When a failed upstream is tried again: at the first output of the signal since its last attempt began.
struct RetryStateMachine<Waiter> {
    /// What the driver does after a failed attempt.
    enum Action: Equatable {
        /// Begin this attempt, counted from 1.
        case start(attempt: Int)
        /// Nobody is going to ask for another attempt.
        case giveUp
        /// Sleep, then ask again.
        case sleep
    }

    /// The signal delivered since the present attempt began.
    private var isDue = false
    private var signalIsOpen = true
    private var attempt = 1
    private var driver = ConsumerStateMachine<Waiter>()

    /// The signal delivered.
    mutating func output() -> Waiter? {
        isDue = true
        return driver.wake()
    }

    /// The signal ended.
    mutating func signalEnded() -> Waiter? {
        signalIsOpen = false
        return driver.wake()
    }

    /// The driver begins to ask, after a failed attempt.
    mutating func driverArrived() {
        driver.arrive()
    }

    /// The driver asks. Unless the action is ``Action/sleep`` it has its answer with that.
    mutating func nextAttempt(isCancelled: Bool) -> Action {
        if isDue, !isCancelled {
            isDue = false
            attempt += 1
            driver.leave()
            return .start(attempt: attempt)
        }
        guard signalIsOpen, !isCancelled else {
            driver.leave()
            return .giveUp
        }
        return .sleep
    }

    /// The driver falls asleep.
    ///
    /// - Returns: The waiter, if something happened since it asked.
    mutating func driverSleeps(_ waiter: Waiter) -> Waiter? {
        isDue || !signalIsOpen ? waiter : driver.sleep(waiter)
    }

    /// The driver's task was cancelled.
    mutating func cancel() -> Waiter? {
        driver.cancel()
    }
}

extension RetryStateMachine: Sendable where Waiter: Sendable {}
