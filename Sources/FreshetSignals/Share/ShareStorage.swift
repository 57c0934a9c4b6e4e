/// The common state of all iterations of a `share`: the iteration of the upstream, and its subscribers.
final class ShareStorage<Base: AsyncSequence & Sendable>: Sendable where Base.Element: Sendable {
    typealias Machine = ShareStateMachine<Base.Element, Base.Failure, Waiter>

    private struct State {
        var machine: Machine
        /// The upstream's iterator, until the first element is requested.
        var upstream: UnsafeTransfer<Base.AsyncIterator>?
        /// The driver of the current iteration of the upstream.
        var task: Task<Void, Never>?
        /// The driver of the previous iteration, which may still have to clean up.
        var previous: Task<Void, Never>?

        /// Removes what has to be released or cancelled because of this action.
        mutating func stopped(by action: Machine.LeaveAction) -> Stopped {
            guard action.stops else { return Stopped() }
            if let task { previous = task }
            return Stopped(upstream: upstream.take(), task: task.take())
        }
    }

    /// The objects to be released and the task to be cancelled, after the lock.
    private struct Stopped {
        var upstream: UnsafeTransfer<Base.AsyncIterator>?
        var task: Task<Void, Never>?
    }

    private let base: Base
    private let state: Lock<State>

    init(_ base: Base, replaying count: Int, while lifetime: ShareLifetime) {
        self.base = base
        state = Lock(State(machine: Machine(replaying: count, while: lifetime)))
    }

    /// The number of subscribers, for tests.
    var subscriberCount: Int { state.withLock { $0.machine.subscriberCount } }

    // MARK: Subscribers

    func subscribe() -> Machine.Key {
        state.withLock { state in
            let (key, connects) = state.machine.subscribe()
            if connects {
                // Make the iterator under the lock, so that the upstream is subscribed before a second subscriber gets
                // its key. Locks are always taken from an operator to its upstream, never the other way.
                state.upstream = UnsafeTransfer(base.makeAsyncIterator())
            }
            return key
        }
    }

    func next(_ key: Machine.Key, isolation: isolated (any Actor)?) async throws(Base.Failure) -> Base.Element? {
        state.withLock { $0.machine.arrive(key) }
        while true {
            let isCancelled = Task.isCancelled
            let (action, stopped) = state.withLock { state -> (Machine.RequestAction, Stopped) in
                let action = state.machine.request(key, isCancelled: isCancelled)
                guard case .end(_, let leaving) = action else { return (action, Stopped()) }
                return (action, state.stopped(by: leaving))
            }
            switch action {
            case .start(let connection):
                start(connection)
            case .deliver(let element, let driver):
                driver?.resume()
                return element
            case .end(let failure, let action):
                // The last subscriber returns when the upstream has cleaned up.
                perform(action, stopped)
                await stopped.task?.value
                if let failure { throw failure }
                return nil
            case .sleep(let driver):
                driver?.resume()
                await waitUntilResumed(isolation: isolation) { waiter in
                    state.withLock { $0.machine.sleep(key, waiter) }
                } onCancel: {
                    state.withLock { $0.machine.cancel(key) }
                }
            }
        }
    }

    /// Ends the subscription of an iterator that was released.
    func leave(_ key: Machine.Key) {
        stop { $0.leave(key) }
    }

    /// Stops the upstream: there can be no new subscriber.
    func close() {
        stop { $0.stop() }
    }

    private func stop(_ event: (inout Machine) -> Machine.LeaveAction) {
        let (action, stopped) = state.withLock { state -> (Machine.LeaveAction, Stopped) in
            let action = event(&state.machine)
            return (action, state.stopped(by: action))
        }
        perform(action, stopped)
    }

    private func perform(_ action: Machine.LeaveAction, _ stopped: Stopped) {
        stopped.task?.cancel()
        action.wake?.resume()
    }

    private func start(_ connection: Machine.Connection) {
        state.withLock { state in
            guard let upstream = state.upstream.take() else { return }
            // Made under the lock, so that a later `leave` finds the task.
            state.task = startDriverTask { [self, previous = state.previous.take()] in
                // Only one iteration of the upstream runs at a time.
                await previous?.value
                await run(connection, upstream)
            }
        }
    }

    // MARK: The driver

    private func run(_ connection: Machine.Connection, _ upstream: UnsafeTransfer<Base.AsyncIterator>) async {
        let failure = await pump(connection, upstream)
        state.withLock { state -> Wakes in
            var wakes = Wakes()
            state.machine.ended(failure, by: connection) { wakes.add($0) }
            return wakes
        }.resumeAll()
    }

    private func pump(_ connection: Machine.Connection, _ upstream: UnsafeTransfer<Base.AsyncIterator>) async -> Base
        .Failure?
    {
        guard var iterator = upstream.open() else { return nil }
        do throws(Base.Failure) {
            while await mayPull(connection) {
                guard let element = try await iterator.next(isolation: nil) else { return nil }
                let (lost, wakes) = state.withLock { state -> (Base.Element?, Wakes) in
                    var wakes = Wakes()
                    let lost = state.machine.deliver(element, by: connection) { wakes.add($0) }
                    return (lost, wakes)
                }
                wakes.resumeAll()
                _ = lost
            }
            // The upstream has cleaned up when it answers one more request in a cancelled task.
            _ = try await iterator.next(isolation: nil)
            return nil
        } catch {
            return error
        }
    }

    /// Waits until an element of the upstream is to be requested. Returns false if no more elements are needed.
    private func mayPull(_ connection: Machine.Connection) async -> Bool {
        state.withLock { $0.machine.driverArrived(connection) }
        while true {
            let isCancelled = Task.isCancelled
            switch state.withLock({ $0.machine.pull(connection, isCancelled: isCancelled) }) {
            case .request: return true
            case .finish: return false
            case .sleep:
                await waitUntilResumed(isolation: nil) { waiter in
                    state.withLock { $0.machine.driverSleeps(connection, waiter) }
                } onCancel: {
                    state.withLock { $0.machine.driverCancelled(connection) }
                }
            }
        }
    }
}
