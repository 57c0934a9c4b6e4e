/// An event that happens at most once, and that one task at a time can wait for.
///
/// It happens, or is given up because it cannot happen any more. What comes first counts; later calls have no
/// effect. Any thread may call it.
package final class OneTimeEvent: Sendable {
    private struct State {
        /// Whether it has happened; nil: it still may.
        var outcome: Bool?
        var consumer = ConsumerStateMachine<Waiter>()

        /// Returns the waiter to resume.
        mutating func settle(_ happens: Bool) -> Waiter? {
            guard outcome == nil else { return nil }
            outcome = happens
            return consumer.wake()
        }

        /// The result of a wait, which it ends; nil: it goes on.
        mutating func take(isCancelled: Bool) -> Bool? {
            guard isCancelled || outcome != nil else { return nil }
            consumer.leave()
            return !isCancelled && outcome == true
        }
    }

    private let state = Lock(State())

    package init() {}

    /// Whether the event has happened.
    package var hasHappened: Bool { state.withLock { $0.outcome == true } }

    /// The event happens.
    package func happen() { state.withLock { $0.settle(true) }?.resume() }

    /// The event will not happen.
    package func giveUp() { state.withLock { $0.settle(false) }?.resume() }

    /// Waits until the event happens or is given up, or until the task is cancelled.
    ///
    /// Two tasks that wait at the same time trap.
    ///
    /// - Returns: whether it has happened; false if the task is cancelled.
    package func wait(isolation: isolated (any Actor)? = #isolation) async -> Bool {
        state.withLock { $0.consumer.arrive() }
        while true {
            let isCancelled = Task.isCancelled
            if let result = state.withLock({ $0.take(isCancelled: isCancelled) }) { return result }
            await waitUntilResumed(isolation: isolation) { waiter in
                state.withLock { state in state.outcome == nil ? state.consumer.sleep(waiter) : waiter }
            } onCancel: {
                state.withLock { $0.consumer.cancel() }
            }
        }
    }
}
