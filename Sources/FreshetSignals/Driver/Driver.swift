/// One iteration of a concurrent operator: a task that does the operator's work, and the hand-over of its elements to
/// `next()`.
///
/// It makes the only unstructured task of this library. The task starts at the first `next()`, on the preferred
/// executor of the calling task. Everything else that an operator starts is a child of this task. It is cancelled when
/// the task in `next()` is cancelled, or when the iterator is released. In the first case `next()` returns when the
/// last child has ended.
///
/// Children run ahead of the consumer by one element: an offer waits until the consumer takes it.
final class Driver<Element: Sendable, Failure: Error>: Sendable {
    typealias Machine = HandoffStateMachine<Offered, Failure, Waiter, Producer>
    typealias Round = Machine.Round
    /// An operator's work: it offers elements, and returns or throws when it has finished and its children have ended.
    typealias Operation = @Sendable (Driver) async throws(Failure) -> Void
    /// Called without a lock when a `next()` finds no element, perhaps more than once for one `next()`. The operator
    /// may answer immediately or later.
    typealias Demand = @Sendable (Driver) -> Void

    /// A child that waits until its element is taken.
    struct Producer {
        fileprivate let waiter: OfferWaiter
        fileprivate let onTaken: (@Sendable () -> Void)?

        fileprivate func resume(returning isTaken: Bool) {
            if isTaken { onTaken?() }
            waiter.resume(returning: isTaken)
        }
    }

    /// An element that waits for the consumer, or a closure that makes it.
    enum Offered: Sendable {
        case element(Element)
        /// Called by the `next()` that takes the element.
        case maker(@Sendable () -> Element)

        fileprivate var element: Element {
            switch self {
            case .element(let element): element
            case .maker(let make): make()
            }
        }
    }

    private struct State {
        var machine = Machine()
        /// Nil after the iteration has ended.
        var demand: Demand?
        /// Nil after the task was made.
        var operation: Operation?
        /// Nil before the task is made and after it has ended.
        var task: Task<Void, Never>?
    }

    private let state: Lock<State>

    init(onDemand demand: Demand? = nil, _ operation: @escaping Operation) {
        state = Lock(State(demand: demand, operation: operation))
    }

    // MARK: The consumer

    func next(isolation: isolated (any Actor)?) async throws(Failure) -> Element? {
        if Task.isCancelled {
            cancel()
        }
        state.withLock { $0.machine.arrive() }
        while true {
            switch state.withLock({ $0.machine.request() }) {
            case .start:
                start()
            case .deliver(let offered, let producer):
                let element = offered.element
                producer.resume(returning: true)
                return element
            case .take(let offered):
                return offered.element
            case .fail(let failure):
                throw failure
            case .end:
                return nil
            case .sleep:
                state.withLock { $0.demand }?(self)
                await waitUntilResumed(isolation: isolation) { waiter in
                    state.withLock { $0.machine.sleep(waiter) }
                } onCancel: {
                    cancel()
                    // The end of the driver wakes the waiter.
                    return nil
                }
            }
        }
    }

    /// Starts to end the iteration. It may be called from any thread and more than once.
    func cancel() {
        let (action, task, released) = state.withLock { state in
            let action = state.machine.cancel()
            // Release these after the lock: they own upstream iterators.
            let released = action.cancelsDriver ? (nil, nil) : (state.operation.take(), state.demand.take())
            return (action, action.cancelsDriver ? state.task : nil, released)
        }
        perform(action, task)
        _ = released
    }

    private func perform(_ action: Machine.CancelAction, _ task: Task<Void, Never>?) {
        task?.cancel()
        for producer in action.dropped {
            producer.resume(returning: false)
        }
        action.wake?.resume()
    }

    private func start() {
        let task = startDriverTask { [self] in await run() }
        let isStopping = state.withLock { state in
            state.task = task
            return state.machine.isStopping
        }
        if isStopping {
            // The iteration was cancelled before there was a task to cancel.
            task.cancel()
        }
    }

    private func run() async {
        let failure = await operate()
        let consumer = state.withLock { state in
            state.task = nil
            return state.machine.driverEnded(failure)
        }
        consumer?.resume()
    }

    /// Does the operator's work. When this returns, everything that the operator held has been released.
    private func operate() async -> Failure? {
        guard let operation = state.withLock({ $0.operation.take() }) else { return nil }
        // Release it after the lock, like the operation: it owns objects of the operator.
        defer { _ = state.withLock { $0.demand.take() } }
        do throws(Failure) {
            try await operation(self)
            return nil
        } catch {
            return error
        }
    }

    // MARK: The operator

    /// Begins a round: offers of earlier rounds are no longer delivered.
    @discardableResult
    func beginRound() -> Round {
        let (round, dropped) = state.withLock { $0.machine.beginRound() }
        for producer in dropped {
            producer.resume(returning: false)
        }
        return round
    }

    /// Offers an element and waits until the consumer has taken it.
    ///
    /// The cancellation of the offering child has no effect here: an operator begins a new round before it cancels a
    /// child.
    ///
    /// - Parameter onTaken: Called without a lock by the `next()` that takes the element, before it returns.
    /// - Returns: False if elements of this round are no longer needed.
    func offer(_ element: Element, in round: Round, onTaken: (@Sendable () -> Void)? = nil) async -> Bool {
        await offer(.element(element), in: round, onTaken: onTaken)
    }

    /// Offers an element that the consuming `next()` makes, without a lock.
    ///
    /// Otherwise like `offer(_:in:)`. Use it for elements that are large, or that depend on the elements taken before.
    func offer(in round: Round, madeBy make: @escaping @Sendable () -> Element) async -> Bool {
        await offer(.maker(make), in: round, onTaken: nil)
    }

    private func offer(_ offered: Offered, in round: Round, onTaken: (@Sendable () -> Void)?) async -> Bool {
        await waitUntilTaken { waiter in
            let producer = Producer(waiter: waiter, onTaken: onTaken)
            switch state.withLock({ $0.machine.offer(offered, in: round, by: producer) }) {
            case .drop: producer.resume(returning: false)
            case .hold(let consumer): consumer?.resume()
            }
        }
    }

    /// Answers the waiting `next()`, for which the operator got a demand, once.
    func answer(_ element: Element) {
        state.withLock { $0.machine.answer(.element(element)) }?.resume()
    }

    /// Ends the iteration from within the operator: offers that were not taken are dropped and all children are
    /// cancelled, the calling task included. When all children have ended, the consumer gets the failure, or the end.
    ///
    /// Only the first call has an effect. Later calls, and calls in a cancelled iteration, are ignored.
    func conclude(_ failure: Failure? = nil) {
        let (action, task) = state.withLock { state in
            let action = state.machine.conclude(failure)
            return (action, action.cancelsDriver ? state.task : nil)
        }
        perform(action, task)
    }
}

/// Makes the one unstructured task of an iteration, on the executor that the calling task prefers.
func startDriverTask(_ operation: @escaping @Sendable () async -> Void) -> Task<Void, Never> {
    let executor = withUnsafeCurrentTask { $0?.unownedTaskExecutor?.asTaskExecutor() }
    return Task(executorPreference: executor) { await operation() }
}

/// The part of a driver that the iterators hold: the iteration is cancelled with the last copy.
final class DriverOwner<Element: Sendable, Failure: Error>: Sendable {
    private let driver: Driver<Element, Failure>

    init(
        onDemand demand: Driver<Element, Failure>.Demand? = nil,
        _ operation: @escaping Driver<Element, Failure>.Operation
    ) {
        driver = Driver(onDemand: demand, operation)
    }

    deinit {
        driver.cancel()
    }

    func next(isolation: isolated (any Actor)?) async throws(Failure) -> Element? {
        try await driver.next(isolation: isolation)
    }
}

/// An iterator of a sequence whose iterations each have a driver. Copies share the iteration.
struct DriverIterator<Element: Sendable, Failure: Error>: AsyncIteratorProtocol {
    private let owner: DriverOwner<Element, Failure>

    /// - Parameter operation: The operator's work. It starts at the first `next()`, so it must already hold the
    ///   iterators of upstreams that are subscribed earlier.
    init(
        onDemand demand: Driver<Element, Failure>.Demand? = nil,
        _ operation: @escaping Driver<Element, Failure>.Operation
    ) {
        owner = DriverOwner(onDemand: demand, operation)
    }

    mutating func next(isolation: isolated (any Actor)? = #isolation) async throws(Failure) -> Element? {
        try await owner.next(isolation: isolation)
    }
}

@available(*, unavailable)
extension DriverIterator: Sendable {}

/// Transfers a value that is not Sendable, such as an iterator, to the one child that will use it.
final class UnsafeTransfer<Value>: Sendable {
    private struct Slot: ~Copyable {
        var value: Value?
    }

    private let slot: Lock<Slot>

    init(_ value: sending Value) {
        slot = Lock(Slot(value: value))
    }

    /// Returns the value at the first call, then nil.
    func open() -> sending Value? {
        slot.withLock { slot in
            let value = slot.value
            slot.value = nil
            return value
        }
    }
}
