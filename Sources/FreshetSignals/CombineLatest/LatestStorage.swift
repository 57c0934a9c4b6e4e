/// One iteration of a combination: the row, and the work of each branch's child task.
final class LatestStorage<Row: LatestRow, Failure: Error>: Sendable {
    typealias Machine = LatestStateMachine<Row, Waiter>
    typealias Owner = Driver<Row.Snapshot, Failure>

    private let machine: Lock<Machine>

    init(_ row: Row, branches: Int) {
        machine = Lock(Machine(row, branches: branches))
    }

    /// Reads the upstream of a branch to its end; runs in the branch's child task.
    ///
    /// - Parameter value: Converts an element of the upstream to a value of the row.
    func run<Iterator: AsyncIteratorProtocol>(
        _ branch: Int, _ upstream: UnsafeTransfer<Iterator>, for driver: Owner, in round: Owner.Round,
        value: (Iterator.Element) -> Row.Value
    ) async where Iterator.Failure == Failure {
        let snapshot: @Sendable () -> Row.Snapshot = { self.take(offeredBy: branch) }
        var hasDelivered = false
        let hasEnded = await driver.exhaust(upstream, rethrowing: { $0 }) { element in
            hasDelivered = true
            let incoming = value(element)
            switch machine.withLock({ $0.deliver(incoming, by: branch) }) {
            case .offer:
                return await driver.offer(in: round, madeBy: snapshot)
            case .restAndOffer:
                await rest(branch)
                return await driver.offer(in: round, madeBy: snapshot)
            case .keep:
                // A branch that never suspends must not starve those that have not delivered yet.
                await Task.yield()
                await rest(branch)
                return !Task.isCancelled
            }
        }
        if hasEnded, !hasDelivered {
            // The row can never become complete.
            driver.conclude()
        }
    }

    private func rest(_ branch: Int) async {
        guard machine.withLock({ $0.mustRest }) else { return }
        await waitUntilResumed(isolation: nil) { waiter in
            let isCancelled = Task.isCancelled
            return machine.withLock { $0.rest(branch, waiter, isCancelled: isCancelled) }
        } onCancel: {
            machine.withLock { $0.cancel(branch) }
        }
    }

    private func take(offeredBy branch: Int) -> Row.Snapshot {
        let action = machine.withLock { $0.take(offeredBy: branch) }
        for waiter in action.wake {
            waiter.resume()
        }
        return action.snapshot
    }
}
