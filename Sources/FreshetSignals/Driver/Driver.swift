/// One iteration of a concurrent operator: a task that does the operator's work, and the way of its elements to
/// `next()`.
///
/// It makes the only unstructured task of this library. The task starts at the first `next()`, on the executor that
/// this caller prefers; all else that an operator starts is a child of it. It is cancelled when the task in `next()`
/// is cancelled, or when the iterator goes away; in the first case `next()` returns when the last child has ended.
///
/// Children run ahead of the consumer by one element: an offer waits until it is taken.
final class Driver<Element: Sendable, Failure: Error>: Sendable {
    typealias Machine = HandoffStateMachine<Offered, Failure, Waiter, Producer>
    typealias Round = Machine.Round
    /// An operator's work: it offers elements, and returns or throws when it is done and its children have ended.
    typealias Operation = @Sendable (Driver) async throws(Failure) -> Void
    /// Called, without a lock, when a `next()` has found nothing, perhaps more than once for one `next()`: the
    /// operator may answer then or later.
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

    /// What waits to be taken.
    enum Offered: Sendable {
        case element(Element)
        /// Made when it is taken.
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
        /// Until the iteration has ended.
        var demand: Demand?
        /// Until the task is made.
        var operation: Operation?
        /// From then on until it has ended.
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
            switch state.withLock({ $0.machine.ask() }) {
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
                    // Who waits is woken by the driver's end.
                    return nil
                }
            }
        }
    }

    /// Starts to end the iteration; from any thread, also more than once.
    func cancel() {
        let (action, task, released) = state.withLock { state in
            let action = state.machine.cancel()
            // Released after the lock: they own upstream iterators.
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
            // It was cancelled before there was a task to cancel.
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

    /// Does the operator's work. When it returns, what the operator held has been released.
    private func operate() async -> Failure? {
        guard let operation = state.withLock({ $0.operation.take() }) else { return nil }
        // Released after the lock, like the operation: it owns what the operator holds.
        defer { _ = state.withLock { $0.demand.take() } }
        do throws(Failure) {
            try await operation(self)
            return nil
        } catch {
            return error
        }
    }

    // MARK: The operator

    /// Begins a round: from now on nothing that was offered before is delivered.
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
    /// It does not look at the cancellation of the child that offers: who cancels a child first begins a new round.
    ///
    /// - Parameter onTaken: Called by the `next()` that takes the element, before it returns. Without a lock.
    /// - Returns: False if nothing of this round is wanted any more.
    func offer(_ element: Element, in round: Round, onTaken: (@Sendable () -> Void)? = nil) async -> Bool {
        await offer(.element(element), in: round, onTaken: onTaken)
    }

    /// Offers an element that is made by the `next()` that takes it, without a lock.
    ///
    /// As `offer(_:in:)` otherwise. For elements that are large, or that depend on what was taken before them.
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

    /// Answers the `next()` for which there was demand, once.
    func answer(_ element: Element) {
        state.withLock { $0.machine.answer(.element(element)) }?.resume()
    }

    /// Ends the iteration from within: what was offered and not taken is dropped and the children are cancelled, the
    /// caller's task included. When all have ended the consumer gets the failure, or the end.
    ///
    /// The first to say so is right; later words, and those of a cancelled iteration, are no news.
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

/// The iterators' half of a driver: with its last copy the iteration is cancelled.
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

    /// - Parameter operation: The operator's work. It starts at the first `next()`, so what it is to have subscribed by
    ///   then it holds already.
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

/// Carries a value that is not Sendable, as iterators are, to the one child that will use it.
final class UnsafeTransfer<Value>: Sendable {
    private struct Slot: ~Copyable {
        var value: Value?
    }

    private let slot: Lock<Slot>

    init(_ value: sending Value) {
        slot = Lock(Slot(value: value))
    }

    /// The value, the first time; then nil.
    func open() -> sending Value? {
        slot.withLock { slot in
            let value = slot.value
            slot.value = nil
            return value
        }
    }
}
