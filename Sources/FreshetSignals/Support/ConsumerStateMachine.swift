/// The state of the one task at a time that may be in `next()`: away, running, or asleep until there is something to
/// take.
///
/// All iterators use it. A waiter is handed out once: the code that gets it from a method of this machine must resume
/// it.
struct ConsumerStateMachine<Waiter> {
    fileprivate enum State {
        /// No `next()` is running.
        case away
        /// A `next()` is running and does not sleep.
        case running
        /// A `next()` is running and must not fall asleep: its task was cancelled.
        case cancelled
        /// A `next()` sleeps until the waiter is resumed.
        case asleep(Waiter)
    }

    private var state = State.away

    /// A `next()` begins.
    mutating func arrive() {
        guard case .away = state else {
            // safe: a programming error of the caller, like two threads that change one array; without the trap one of
            // the two calls would never return.
            preconditionFailure("two concurrent calls of next() on copies of one iterator; give each task its own")
        }
        state = .running
    }

    /// The `next()` returns.
    mutating func leave() {
        switch state {
        case .running, .cancelled: state = .away
        case .away, .asleep: preconditionFailure("next() returned in state \(state)")  // safe: our own order of calls
        }
    }

    /// The `next()` found nothing and falls asleep.
    ///
    /// - Returns: The waiter, if it has to be resumed immediately because the task was cancelled.
    mutating func sleep(_ waiter: Waiter) -> Waiter? {
        switch state {
        case .running:
            state = .asleep(waiter)
            return nil
        case .cancelled:
            return waiter
        case .away, .asleep:
            preconditionFailure("next() fell asleep in state \(state)")  // safe: our own order of calls
        }
    }

    /// Wakes a sleeping `next()`: there is something to take.
    mutating func wake() -> Waiter? {
        switch state {
        case .asleep(let waiter):
            state = .running
            return waiter
        case .away, .running, .cancelled:
            // A `next()` that is awake, or begins later, tries to take before it sleeps.
            return nil
        }
    }

    /// The task in `next()` was cancelled.
    mutating func cancel() -> Waiter? {
        switch state {
        case .asleep(let waiter):
            state = .cancelled
            return waiter
        case .running, .cancelled:
            state = .cancelled
            return nil
        case .away:
            // The cancellation came when next() had already returned.
            return nil
        }
    }
}

extension ConsumerStateMachine: Sendable where Waiter: Sendable {}
extension ConsumerStateMachine.State: Sendable where Waiter: Sendable {}
