/// One iteration of a `publish`: the watcher of the signal, and the runs, one after the other.
final class PublishStorage<S: AsyncSequence & Sendable, B: AsyncSequence & Sendable>: Sendable
where S.Failure == Never, B.Element: Sendable {
    typealias Machine = PublishStateMachine<B.Failure, Waiter>

    private let outputs: Parcel<S.AsyncIterator>
    /// Forgets outputs that are pending, if the signal's iterator can.
    private let forgetOutputs: (@Sendable () -> Void)?
    private let body: @Sendable () throws(B.Failure) -> B
    private let machine: Lock<Machine>

    init(
        _ outputs: sending S.AsyncIterator, runsAtStart: Bool, body: @escaping @Sendable () throws(B.Failure) -> B
    ) {
        forgetOutputs = (outputs as? any ForgettingIterator)?.forget
        self.outputs = Parcel(outputs)
        self.body = body
        machine = Lock(Machine(runsAtStart: runsAtStart))
    }

    /// The operator's work, as the driver does it.
    func operate(_ driver: Driver<B.Element, B.Failure>) async throws(B.Failure) {
        let failure = await withTaskGroup(of: Void.self, returning: B.Failure?.self) { children in
            children.addTask { await self.watch(driver) }
            // Gives the signal the chance to deliver what is there already, which the first run then answers.
            await Task.yield()
            while true {
                // Begun before the run is, so that an output that comes between the two supersedes this round.
                let round = driver.beginRound()
                switch await nextRun() {
                case .start(let number):
                    // It starts only now, so it answers what is pending now.
                    forgetOutputs?()
                    await withTaskGroup(of: Void.self) { run in
                        run.addTask { await self.run(number, round, driver) }
                        await presentRunIsOver()
                        run.cancelAll()
                    }
                case .finish(let failure):
                    children.cancelAll()
                    return failure
                }
            }
        }
        if let failure {
            throw failure
        }
    }

    // MARK: Children

    private func watch(_ driver: Driver<B.Element, B.Failure>) async {
        if var outputs = outputs.open() {
            while await outputs.next(isolation: nil) != nil {
                let action = machine.withLock { $0.output() }
                if action.supersedes {
                    driver.beginRound()
                }
                action.wake?.resume()
            }
        }
        machine.withLock { $0.signalEnded() }?.resume()
    }

    private func run(
        _ number: Machine.RunNumber, _ round: Driver<B.Element, B.Failure>.Round,
        _ driver: Driver<B.Element, B.Failure>
    ) async {
        let failure = await emit(in: round, to: driver)
        machine.withLock { $0.runEnded(number, failure) }?.resume()
    }

    /// Runs the body once, to its end.
    private func emit(
        in round: Driver<B.Element, B.Failure>.Round, to driver: Driver<B.Element, B.Failure>
    ) async -> B.Failure? {
        do throws(B.Failure) {
            // Asked until it ends: it has cleaned up before the next run starts.
            var elements = try body().makeAsyncIterator()
            try await elements.exhaust { await driver.offer($0, in: round) }
            return nil
        } catch {
            return error
        }
    }

    // MARK: The driver's questions

    private enum Start {
        case start(Machine.RunNumber)
        case finish(B.Failure?)
    }

    private func nextRun() async -> Start {
        machine.withLock { $0.driverArrived() }
        while true {
            let isCancelled = Task.isCancelled
            switch machine.withLock({ $0.nextRun(isCancelled: isCancelled) }) {
            case .start(let number): return .start(number)
            case .finish(let failure): return .finish(failure)
            case .sleep: await sleep()
            }
        }
    }

    private func presentRunIsOver() async {
        machine.withLock { $0.driverArrived() }
        while true {
            let isCancelled = Task.isCancelled
            switch machine.withLock({ $0.presentRun(isCancelled: isCancelled) }) {
            case .end: return
            case .sleep: await sleep()
            }
        }
    }

    private func sleep() async {
        await waitUntilResumed(isolation: nil) { waiter in
            machine.withLock { $0.driverSleeps(waiter) }
        } onCancel: {
            machine.withLock { $0.cancel() }
        }
    }
}
