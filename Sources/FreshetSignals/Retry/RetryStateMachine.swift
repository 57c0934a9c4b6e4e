/// Decides when a failed upstream is retried: at the first output of the signal since its last attempt began.
struct RetryStateMachine<Waiter> {
    /// The action of the driver after a failed attempt.
    enum Action: Equatable {
        /// Begin this attempt, counted from 1.
        case start(attempt: Int)
        /// Do not try again: the signal has ended, or the task was cancelled.
        case giveUp
        /// Sleep, then try again.
        case sleep
    }

    /// Whether the signal delivered an output since the current attempt began.
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

    /// The driver begins to wait for the next attempt.
    mutating func driverArrived() {
        driver.arrive()
    }

    /// Requests the next attempt. Every action but ``Action/sleep`` ends the driver's wait.
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
    /// - Returns: The waiter, if something happened since the last request.
    mutating func driverSleeps(_ waiter: Waiter) -> Waiter? {
        isDue || !signalIsOpen ? waiter : driver.sleep(waiter)
    }

    /// The driver's task was cancelled.
    mutating func cancel() -> Waiter? {
        driver.cancel()
    }
}

extension RetryStateMachine: Sendable where Waiter: Sendable {}
