/// Hands elements from a driver's children to the task in `next()`: one element of each child at a time, and only as
/// long as the elements are needed.
///
/// Offers belong to a round. A new round invalidates the old one: waiting and late offers of the old round are dropped.
///
/// An operator that decides what to deliver when an element is requested makes no offers. It answers a `next()` that
/// found no element with one element. This answer belongs to no round, waits for nothing, and comes before the end.
struct HandoffStateMachine<Element, Failure: Error, Consumer, Producer> {
    /// Identifies a round; never used twice in one iteration.
    struct Round: Hashable, Sendable {
        fileprivate var number: UInt64 = 0
    }

    private enum Phase {
        /// No `next()` was called yet, so the driver does not run.
        case idle
        /// The driver runs.
        case running
        /// The driver was cancelled, and its children still have to end. The iteration will end without an error.
        case stopping
        /// A child has determined how the iteration ends. The driver was cancelled, and its children still have to end.
        case concluding(Failure?)
        /// The driver and its children have ended; a failure is delivered once.
        case finished(Failure?)
    }

    /// The action of a `next()`.
    enum RequestAction {
        /// Start the driver, then request again.
        case start
        /// Resume the producer with `true` and return the element.
        case deliver(Element, Producer)
        /// Return the element; no producer waits for it.
        case take(Element)
        /// Throw this.
        case fail(Failure)
        /// Return nil.
        case end
        /// Sleep, then request again.
        case sleep
    }

    /// The action for an offer.
    enum OfferAction {
        /// Resume the producer with `false` immediately.
        case drop
        /// Let the producer wait; wake the consumer if it sleeps.
        case hold(wake: Consumer?)
    }

    /// The remaining work when an iteration is no longer needed.
    struct CancelAction {
        /// The producers to be resumed with `false`.
        var dropped: [Producer] = []
        /// Whether the driver's task has to be cancelled.
        var cancelsDriver = false
        /// The consumer to be woken.
        var wake: Consumer?
        /// An element that is no longer needed, to be released when no lock is held.
        var released: Element?
    }

    private var phase = Phase.idle
    private var consumerState = ConsumerStateMachine<Consumer>()
    private var round = Round()
    /// First in, first out. No producer has two offers at the same time, so there are at most as many offers as
    /// producers.
    private var offers = Fifo<(element: Element, producer: Producer)>()
    /// The answer to the `next()` that is in progress.
    private var answer: Element?

    /// Whether the iteration was cancelled or concluded: the caller has to cancel the driver.
    var isStopping: Bool {
        switch phase {
        case .stopping, .concluding: true
        case .idle, .running, .finished: false
        }
    }

    // MARK: The consumer

    /// A `next()` begins.
    mutating func arrive() {
        consumerState.arrive()
    }

    /// Requests an element for a `next()`. Every action but ``RequestAction/start`` and ``RequestAction/sleep`` ends
    /// that `next()`.
    mutating func request() -> RequestAction {
        if let element = answer.take() {
            consumerState.leave()
            return .take(element)
        }
        switch phase {
        case .idle:
            phase = .running
            return .start
        case .running:
            guard let offer = offers.removeFirst() else { return .sleep }
            consumerState.leave()
            return .deliver(offer.element, offer.producer)
        case .stopping, .concluding:
            // The end is delivered when the last child has ended.
            return .sleep
        case .finished(let failure):
            phase = .finished(nil)
            consumerState.leave()
            if let failure { return .fail(failure) }
            return .end
        }
    }

    /// The `next()` falls asleep.
    ///
    /// - Returns: The consumer, if there already is something to request.
    mutating func sleep(_ consumer: Consumer) -> Consumer? {
        switch phase {
        case .running where offers.isEmpty && answer == nil, .stopping, .concluding: consumerState.sleep(consumer)
        case .idle, .running, .finished: consumer
        }
    }

    /// The task in `next()` was cancelled, or the iterator was released.
    mutating func cancel() -> CancelAction {
        switch phase {
        case .idle:
            phase = .finished(nil)
            return CancelAction(wake: consumerState.wake())
        case .running:
            phase = .stopping
            // The consumer sleeps until the children have ended.
            return CancelAction(dropped: beginRound().dropped, cancelsDriver: true, released: answer.take())
        case .concluding:
            // The driver is already cancelled. A failure that was to be delivered is dropped.
            phase = .stopping
            return CancelAction()
        case .finished:
            // Drop a failure that the consumer has not taken.
            phase = .finished(nil)
            return CancelAction(released: answer.take())
        case .stopping:
            return CancelAction()
        }
    }

    // MARK: The driver and its children

    /// Begins a round: offers of the previous round are no longer delivered.
    ///
    /// - Returns: The round, and the producers to be resumed with `false`.
    mutating func beginRound() -> (round: Round, dropped: [Producer]) {
        round.number += 1
        return (round, offers.removeAll().map(\.producer))
    }

    /// A child offers an element, and waits until it is taken or dropped.
    mutating func offer(_ element: Element, in round: Round, by producer: Producer) -> OfferAction {
        guard case .running = phase, round == self.round else { return .drop }
        offers.append((element, producer))
        return .hold(wake: consumerState.wake())
    }

    /// The operator answers the `next()` that found no element, once. It may do so after the driver has ended: the
    /// answer comes before the end.
    ///
    /// - Returns: The consumer, if it sleeps.
    mutating func answer(_ element: Element) -> Consumer? {
        switch phase {
        case .running, .finished:
            answer = element
            return consumerState.wake()
        case .stopping, .concluding:
            // The answer is no longer needed.
            return nil
        case .idle:
            preconditionFailure("an answer without a request")  // safe: our own order of calls
        }
    }

    /// A child ends the iteration with this result. Offers that were not taken are dropped.
    mutating func conclude(_ failure: Failure?) -> CancelAction {
        guard case .running = phase else {
            // The iteration was cancelled, or another child concluded it first.
            return CancelAction()
        }
        phase = .concluding(failure)
        return CancelAction(dropped: beginRound().dropped, cancelsDriver: true, released: answer.take())
    }

    /// The driver and all its children have ended.
    mutating func driverEnded(_ failure: Failure?) -> Consumer? {
        switch phase {
        case .running:
            phase = .finished(failure)
        case .concluding(let conclusion):
            phase = .finished(conclusion)
        case .stopping:
            // Ignore errors that children throw because they are cancelled.
            phase = .finished(nil)
        case .idle, .finished:
            preconditionFailure("a driver ended that was not running")  // safe: our own order of calls
        }
        return consumerState.wake()
    }
}
