internal import FreshetSignals

/// The memory that answers take while programs work on them, over all pipelines (`memory.max`).
///
/// Where an answer waits for its share it is on disk, and takes nothing. Who has a share waits for no other.
package final class MemoryBudget: Sendable {
    private struct State {
        var machine: MemoryBudgetMachine
        var waiters: [MemoryBudgetMachine.Ticket: CurrentValue<Bool>] = [:]

        /// Returns those to be woken.
        mutating func granted(_ tickets: [MemoryBudgetMachine.Ticket]) -> [CurrentValue<Bool>] {
            tickets.compactMap { waiters.removeValue(forKey: $0) }
        }
    }

    private let state: Lock<State>

    /// - Parameter limit: bytes.
    package init(limit: UInt64) {
        state = Lock(State(machine: MemoryBudgetMachine(limit: limit)))
    }

    /// Sets another limit. What is taken beyond it is not given again.
    package func change(limit: UInt64) {
        let waiters = state.withLock { state in state.granted(state.machine.change(limit: limit)) }
        for waiter in waiters { waiter.value = true }
    }

    /// Bytes.
    package var limit: UInt64 { state.withLock { $0.machine.limit } }
    /// Bytes, and how many reservations wait.
    package var counts: (taken: UInt64, waiting: Int) {
        state.withLock { ($0.machine.taken, $0.machine.waitingCount) }
    }

    /// Waits for the share of an answer.
    ///
    /// - Parameters:
    ///   - input: the size of the answer in bytes.
    ///   - waiting: is called if it has to wait, with what it waits for.
    /// - Throws: ``FetchError/cancelled`` if the task is cancelled while it waits; a failure if the answer is too large for
    ///   the limit.
    package func reserve(
        for input: Int, _ level: MemoryShare.Level, waiting: @Sendable (String) -> Void = { _ in }
    ) async throws(FetchError) -> MemoryReservation {
        let isGranted = CurrentValue(false)
        let limit = limit
        guard let share = MemoryShare(for: UInt64(input), level, of: limit) else {
            throw .failed(Self.tooLarge(input, limit))
        }
        let (ticket, isAtOnce) = state.withLock { state in
            let (ticket, isAtOnce) = state.machine.request(share.total)
            if !isAtOnce { state.waiters[ticket] = isGranted }
            return (ticket, isAtOnce)
        }
        let reservation = MemoryReservation(share, isAll: share.total == limit, in: self, ticket)
        if isAtOnce { return reservation }
        waiting("\(Self.mebibytes(share.total)) of \(Self.mebibytes(limit)) MiB (memory.max)")
        for await isGranted in isGranted where isGranted { break }
        guard !Task.isCancelled else {
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
        for waiter in waiters { waiter.value = true }
    }

    private static func tooLarge(_ input: Int, _ limit: UInt64) -> RunFailure {
        RunFailure(
            .content,
            "the content has \(mebibytes(UInt64(input))) MiB, too much for a program to work on with \(mebibytes(limit)) MiB of "
                + "memory; raise memory.max in freshet.yaml, or lower check.max-bytes to reject such content")
    }

    /// Rounded up.
    private static func mebibytes(_ bytes: UInt64) -> UInt64 { bytes >> 20 + (bytes & (1 << 20 - 1) == 0 ? 0 : 1) }
}

/// A share of the ``MemoryBudget``. It ends by ``release()``, or with its last reference.
package final class MemoryReservation: Sendable {
    package let share: MemoryShare
    /// There is no larger one.
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

    /// Ends it. A second call does nothing.
    package func release() { budget.release(ticket) }
}
