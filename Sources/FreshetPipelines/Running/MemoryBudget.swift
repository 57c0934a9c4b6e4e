internal import FreshetSignals

/// The memory that answers take while programs work on them, over all pipelines (`memory.max`).
///
/// An answer that waits for its share is on disk and takes no memory. A holder of a share never waits for another
/// share.
package final class MemoryBudget: Sendable {
    private struct State {
        var machine: MemoryBudgetMachine
        var waiters: [MemoryBudgetMachine.Ticket: OneTimeEvent] = [:]

        /// Returns the waiters to wake.
        mutating func granted(_ tickets: [MemoryBudgetMachine.Ticket]) -> [OneTimeEvent] {
            tickets.compactMap { waiters.removeValue(forKey: $0) }
        }
    }

    private let state: Lock<State>

    /// - Parameter limit: bytes.
    package init(limit: UInt64) {
        state = Lock(State(machine: MemoryBudgetMachine(limit: limit)))
    }

    /// Sets another limit. Memory that is taken beyond a lower limit is not granted again when it is released.
    package func change(limit: UInt64) {
        let waiters = state.withLock { state in state.granted(state.machine.change(limit: limit)) }
        for waiter in waiters { waiter.happen() }
    }

    /// The limit in bytes.
    package var limit: UInt64 { state.withLock { $0.machine.limit } }
    /// The taken bytes, and the number of waiting reservations.
    package var counts: (taken: UInt64, waiting: Int) {
        state.withLock { ($0.machine.taken, $0.machine.waitingCount) }
    }

    /// Waits for the share of an answer.
    ///
    /// - Parameters:
    ///   - input: the size of the answer in bytes.
    ///   - waiting: called if the reservation has to wait, with a description of the wait.
    /// - Throws: ``FetchError/cancelled`` if the task is cancelled while it waits; a failure if the answer is too large
    ///   for the limit.
    package func reserve(
        for input: Int, _ level: MemoryShare.Level, waiting: @Sendable (String) -> Void = { _ in }
    ) async throws(FetchError) -> MemoryReservation {
        let isGranted = OneTimeEvent()
        let limit = limit
        guard let share = MemoryShare(for: UInt64(input), level, of: limit) else {
            throw .failed(Self.tooLarge(input, limit))
        }
        let (ticket, isImmediate) = state.withLock { state in
            let (ticket, isImmediate) = state.machine.request(share.total)
            if !isImmediate { state.waiters[ticket] = isGranted }
            return (ticket, isImmediate)
        }
        let reservation = MemoryReservation(share, isAll: share.total == limit, in: self, ticket)
        if isImmediate { return reservation }
        waiting("\(Self.mebibytes(share.total)) of \(Self.mebibytes(limit)) MiB (memory.max)")
        guard await isGranted.wait() else {
            reservation.release()
            throw .cancelled
        }
        return reservation
    }

    fileprivate func release(_ ticket: MemoryBudgetMachine.Ticket) {
        let waiters = state.withLock { state in
            state.waiters[ticket] = nil
            return state.granted(state.machine.release(ticket))
        }
        for waiter in waiters { waiter.happen() }
    }

    private static func tooLarge(_ input: Int, _ limit: UInt64) -> RunFailure {
        RunFailure(
            .content,
            "the content has \(mebibytes(UInt64(input))) MiB, too much for a program to work on with "
                + "\(mebibytes(limit)) MiB of memory; raise memory.max in freshet.yaml, or lower check.max-bytes to "
                + "reject such content")
    }

    /// Rounded up.
    private static func mebibytes(_ bytes: UInt64) -> UInt64 { bytes >> 20 + (bytes & (1 << 20 - 1) == 0 ? 0 : 1) }
}

/// A share of the ``MemoryBudget``. It ends by ``release()``, or with its last reference.
package final class MemoryReservation: Sendable {
    package let share: MemoryShare
    /// Whether this is the largest possible share.
    package let isAll: Bool
    private let budget: MemoryBudget
    private let ticket: MemoryBudgetMachine.Ticket

    fileprivate init(
        _ share: MemoryShare, isAll: Bool, in budget: MemoryBudget, _ ticket: MemoryBudgetMachine.Ticket
    ) {
        self.share = share
        self.isAll = isAll
        self.budget = budget
        self.ticket = ticket
    }

    deinit { budget.release(ticket) }

    /// Releases the share. A second call has no effect.
    package func release() { budget.release(ticket) }
}
