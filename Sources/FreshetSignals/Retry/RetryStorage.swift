/// One iteration of a `retry`: it watches the signal, and makes one attempt after the other in the driver's task.
final class RetryStorage<Base: AsyncSequence & Sendable, S: AsyncSequence & Sendable>: Sendable
where Base.Element: Sendable, S.Failure == Never {
    typealias RetryDriver = Driver<Base.Element, Base.Failure>

    private let base: Base
    private let firstAttempt: UnsafeTransfer<Base.AsyncIterator>
    private let outputs: UnsafeTransfer<S.AsyncIterator>
    /// Discards pending outputs, if the signal's iterator supports that.
    private let forgetOutputs: (@Sendable () -> Void)?
    private let onFailure: (@Sendable (Base.Failure, Int) -> Void)?
    private let machine = Lock(RetryStateMachine<Waiter>())

    init(_ base: Base, on signal: S, onFailure: (@Sendable (Base.Failure, Int) -> Void)?) {
        self.base = base
        let outputs = signal.makeAsyncIterator()
        forgetOutputs = (outputs as? any DiscardingIterator)?.forget
        self.outputs = UnsafeTransfer(outputs)
        firstAttempt = UnsafeTransfer(base.makeAsyncIterator())
        self.onFailure = onFailure
    }

    /// The operator's work, as the driver does it.
    func operate(_ driver: RetryDriver) async throws(Base.Failure) {
        let round = driver.beginRound()
        let failure = await withTaskGroup(of: Void.self, returning: Base.Failure?.self) { children in
            children.addTask { await self.watch() }
            defer { children.cancelAll() }
            var attempt = 1
            var failure = await emit(firstAttempt.open(), in: round, to: driver)
            while let present = failure, !Task.isCancelled {
                onFailure?(present, attempt)
                guard let next = await nextAttempt() else { break }
                // The attempt begins now, so pending outputs do not request another one.
                forgetOutputs?()
                attempt = next
                failure = await emit(base.makeAsyncIterator(), in: round, to: driver)
            }
            return failure
        }
        if let failure { throw failure }
    }

    private func watch() async {
        if var outputs = outputs.open() {
            while await outputs.next(isolation: nil) != nil {
                // Pending outputs count as one with this output.
                forgetOutputs?()
                machine.withLock { $0.output() }?.resume()
            }
        }
        machine.withLock { $0.signalEnded() }?.resume()
    }

    /// Makes one attempt, to its end.
    private func emit(
        _ upstream: consuming Base.AsyncIterator?, in round: RetryDriver.Round, to driver: RetryDriver
    ) async -> Base.Failure? {
        guard var upstream else { return nil }
        do throws(Base.Failure) {
            try await upstream.exhaust { await driver.offer($0, in: round) }
            return nil
        } catch {
            return error
        }
    }

    private func nextAttempt() async -> Int? {
        machine.withLock { $0.driverArrived() }
        while true {
            let isCancelled = Task.isCancelled
            switch machine.withLock({ $0.nextAttempt(isCancelled: isCancelled) }) {
            case .start(let attempt): return attempt
            case .giveUp: return nil
            case .sleep:
                await waitUntilResumed(isolation: nil) { waiter in
                    machine.withLock { $0.driverSleeps(waiter) }
                } onCancel: {
                    machine.withLock { $0.cancel() }
                }
            }
        }
    }
}
