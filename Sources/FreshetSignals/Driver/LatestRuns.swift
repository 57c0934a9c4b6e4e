/// One iteration of an operator that runs one thing after the other, of which only the latest is wanted.
///
/// From an output on nothing of the run before it is delivered. That run is cancelled, and the next starts when it has
/// returned.
final class LatestRuns<Work: Sendable, Element: Sendable, Failure: Error>: Sendable {
    typealias Machine = LatestRunStateMachine<Work, Failure, Waiter>
    typealias Owner = Driver<Element, Failure>

    private let machine: Lock<Machine>

    /// - Parameter first: What is to run before the first output.
    init(first: Work? = nil) {
        machine = Lock(Machine(first: first))
    }

    /// The operator's work, as the driver does it.
    ///
    /// - Parameters:
    ///   - watch: A child: calls ``output(_:of:)``, and ``noMoreOutputs()`` at the end.
    ///   - willStart: Called before each run.
    ///   - run: A child: offers what the run emits in the round, until it ends or is cancelled.
    func operate(
        _ driver: Owner, watch: @escaping @Sendable () async -> Void, willStart: () -> Void = {},
        run: @escaping @Sendable (Work, Owner.Round) async throws(Failure) -> Void
    ) async throws(Failure) {
        let failure = await withTaskGroup(of: Void.self, returning: Failure?.self) { children in
            children.addTask { await watch() }
            // Gives the watcher the chance to find what is there already, which the first run then answers.
            await Task.yield()
            while true {
                // Begun before the run is, so that an output that comes between the two supersedes this round.
                let round = driver.beginRound()
                switch await nextRun() {
                case .start(let number, let work):
                    willStart()
                    await withTaskGroup(of: Void.self) { group in
                        group.addTask {
                            let failure = await Self.failure { () async throws(Failure) in try await run(work, round) }
                            self.machine.withLock { $0.runEnded(number, failure) }?.resume()
                        }
                        await presentRunIsOver()
                        group.cancelAll()
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

    // MARK: The watcher

    /// There is something newer to run.
    func output(_ work: Work, of driver: Owner) {
        let action = machine.withLock { $0.output(work) }
        if action.supersedes {
            driver.beginRound()
        }
        action.wake?.resume()
    }

    /// There will be nothing more to run.
    func noMoreOutputs() {
        machine.withLock { $0.signalEnded() }?.resume()
    }

    // MARK: The driver's questions

    private enum Start {
        case start(Machine.RunNumber, Work)
        case finish(Failure?)
    }

    private func nextRun() async -> Start {
        machine.withLock { $0.driverArrived() }
        while true {
            let isCancelled = Task.isCancelled
            switch machine.withLock({ $0.nextRun(isCancelled: isCancelled) }) {
            case .start(let number, let work): return .start(number, work)
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

    private static func failure(of body: () async throws(Failure) -> Void) async -> Failure? {
        do throws(Failure) {
            try await body()
            return nil
        } catch {
            return error
        }
    }
}
