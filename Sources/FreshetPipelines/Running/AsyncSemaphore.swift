internal import FreshetSignals

/// Limits the number of concurrent tasks; waiting tasks enter in the order in which they came.
package final class AsyncSemaphore: Sendable {
    private struct State {
        var free: Int
        var lastTicket: UInt64 = 0
        var waiting: [UInt64: CheckedContinuation<Bool, Never>] = [:]
        /// The tickets of waiting tasks, including some that gave up; those before `head` have entered.
        var order: [UInt64] = []
        var head = 0

        mutating func next() -> CheckedContinuation<Bool, Never>? {
            while head < order.count {
                head += 1
                if let waiter = waiting.removeValue(forKey: order[head - 1]) { return waiter }
            }
            order = []
            head = 0
            return nil
        }
    }

    private let state: Lock<State>

    /// - Parameter limit: at least 1.
    package init(limit: Int) {
        state = Lock(State(free: max(1, limit)))
    }

    /// Runs a body when the limit allows it.
    ///
    /// - Throws: ``FetchError/cancelled`` if the task is cancelled while it waits; the body's errors.
    package func pass<Result: Sendable>(
        _ body: () async throws(FetchError) -> Result
    ) async throws(FetchError) -> Result {
        guard await enter() else { throw .cancelled }
        defer { leave() }
        return try await body()
    }

    /// Waits for a permit; false if the task was cancelled first. ``pass(_:)`` is simpler, but an actor cannot give it
    /// a body that uses the actor's state.
    package func enter() async -> Bool {
        let ticket = state.withLock { state in
            state.lastTicket += 1
            return state.lastTicket
        }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { waiter in
                let isNext = state.withLock { state in
                    guard state.free == 0 else {
                        state.free -= 1
                        return true
                    }
                    state.waiting[ticket] = waiter
                    state.order.append(ticket)
                    return false
                }
                if isNext { return waiter.resume(returning: true) }
                // If the task was cancelled before it waited, the cancellation handler has not woken it.
                if Task.isCancelled { abandon(ticket) }
            }
        } onCancel: {
            abandon(ticket)
        }
    }

    private func abandon(_ ticket: UInt64) {
        state.withLock { $0.waiting.removeValue(forKey: ticket) }?.resume(returning: false)
    }

    /// Returns the permit of ``enter()``.
    package func leave() {
        let next = state.withLock { state -> CheckedContinuation<Bool, Never>? in
            if let waiter = state.next() { return waiter }
            state.free += 1
            return nil
        }
        next?.resume(returning: true)
    }
}
