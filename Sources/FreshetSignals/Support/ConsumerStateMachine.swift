/// The one task at a time that may ask for an element: away, asking, or asleep until something is there.
///
/// The part that all iterators have in common. A waiter is handed out once: whoever receives it from a method of this
/// machine resumes it.
struct ConsumerStateMachine<Waiter> {
    fileprivate enum State {
        /// Nobody asks.
        case away
        /// A `next()` is running and does not sleep.
        case asking
        /// A `next()` is running, does not sleep, and must not fall asleep: its task was cancelled.
        case cancelled
        /// A `next()` sleeps until the waiter is resumed.
        case asleep(Waiter)
    }

    private var state = State.away

    /// A `next()` begins.
    mutating func arrive() {
        guard case .away = state else {
            // safe: a programming error of the caller, like two threads that change one array; the alternative is
            // that one of the two calls hangs for ever.
            preconditionFailure("two concurrent calls of next() on copies of one iterator; give each task its own")
        }
        state = .asking
    }

    /// The `next()` returns.
    mutating func leave() {
        switch state {
        case .asking, .cancelled: state = .away
        case .away, .asleep: preconditionFailure("next() returned in state \(state)")  // safe: our own order of calls
        }
    }

    /// The `next()` found nothing and falls asleep.
    ///
    /// - Returns: The waiter, if it is to be resumed at once because the task was cancelled meanwhile.
    mutating func sleep(_ waiter: Waiter) -> Waiter? {
        switch state {
        case .asking:
            state = .asleep(waiter)
            return nil
        case .cancelled:
            return waiter
        case .away, .asleep:
            preconditionFailure("next() fell asleep in state \(state)")  // safe: our own order of calls
        }
    }

    /// Something is there.
    mutating func wake() -> Waiter? {
        switch state {
        case .asleep(let waiter):
            state = .asking
            return waiter
        case .away, .asking, .cancelled:
            // Whoever is awake, or comes later, looks before it sleeps.
            return nil
        }
    }

    /// The asking task was cancelled.
    mutating func cancel() -> Waiter? {
        switch state {
        case .asleep(let waiter):
            state = .cancelled
            return waiter
        case .asking, .cancelled:
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
