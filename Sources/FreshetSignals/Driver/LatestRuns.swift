/// One iteration of an operator that runs one work item after the other, and of which only the latest is needed.
///
/// After an output, no element of the run in progress is delivered. That run is cancelled, and the next run starts when
/// it has returned.
final class LatestRuns<Work: Sendable, Element: Sendable, Failure: Error>: Sendable {
    typealias Machine = LatestRunStateMachine<Work, Failure, Waiter>
    typealias Owner = Driver<Element, Failure>

    private let machine: Lock<Machine>

    /// - Parameter first: The work to run before the first output.
    init(first: Work? = nil) {
        machine = Lock(Machine(first: first))
    }

    /// The operator's work, as the driver does it.
    ///
    /// - Parameters:
    ///   - watch: Runs in a child task: calls ``output(_:of:)``, and ``noMoreOutputs()`` at the end.
    ///   - willStart: Called before each run.
    ///   - run: Runs in a child task: offers the elements of the run in the round, until the run ends or is cancelled.
    func operate(
        _ driver: Owner, watch: @escaping @Sendable () async -> Void, willStart: () -> Void = {},
        run: @escaping @Sendable (Work, Owner.Round) async throws(Failure) -> Void
    ) async throws(Failure) {
        let failure = await withTaskGroup(of: Void.self, returning: Failure?.self) { children in
            children.addTask { await watch() }
            // Give the watcher a chance to find outputs that are already pending; the first run then answers them.
            await Task.yield()
            while true {
                // Begin the round before the run, so that an output between the two supersedes this round.
                let round = driver.beginRound()
                switch await nextRun() {
                case .start(let number, let work):
                    willStart()
                    await withTaskGroup(of: Void.self) { group in
                        group.addTask {
                            let failure = await Self.failure { () async throws(Failure) in try await run(work, round) }
                            self.machine.withLock { $0.runEnded(number, failure) }?.resume()
                        }
                        await waitForCurrentRun()
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

    /// Reports newer work.
    func output(_ work: Work, of driver: Owner) {
        let action = machine.withLock { $0.output(work) }
        if action.supersedes {
            driver.beginRound()
        }
        action.wake?.resume()
    }

    /// Reports that there will be no more work.
    func noMoreOutputs() {
        machine.withLock { $0.signalEnded() }?.resume()
    }

    // MARK: Waiting of the driver

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

    private func waitForCurrentRun() async {
        machine.withLock { $0.driverArrived() }
        while true {
            let isCancelled = Task.isCancelled
            switch machine.withLock({ $0.currentRun(isCancelled: isCancelled) }) {
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
