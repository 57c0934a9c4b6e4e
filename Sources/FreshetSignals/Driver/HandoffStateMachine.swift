/// How a driver's children hand elements to the task in `next()`: one each, and only as long as they are wanted.
///
/// Offers belong to a round. To begin a new round is to want nothing of the old one any more: its offers are dropped,
/// those that wait and those that come late.
///
/// An operator that decides what to deliver only when it is asked makes no offers. It answers a `next()` that found
/// nothing with one element, which belongs to no round, waits for nothing, and comes before the end.
struct HandoffStateMachine<Element, Failure: Error, Consumer, Producer> {
    /// Names a round; never used twice in one iteration.
    struct Round: Hashable, Sendable {
        fileprivate var number: UInt64 = 0
    }

    private enum Phase {
        /// Nobody has asked yet, so nothing runs.
        case idle
        /// The driver runs.
        case running
        /// The driver is being cancelled, its children still have to end. The iteration will end without an error.
        case stopping
        /// One of the children said how the iteration ends. The driver is being cancelled, its children still have to
        /// end.
        case concluding(Failure?)
        /// All has ended; a failure waits to be delivered, once.
        case finished(Failure?)
    }

    /// What a `next()` does.
    enum AskAction {
        /// Start the driver, then ask again.
        case start
        /// Tell the producer `true`, return the element.
        case deliver(Element, Producer)
        /// Return the element, which nobody waits to be rid of.
        case take(Element)
        /// Throw this.
        case fail(Failure)
        /// Return nil.
        case end
        /// Sleep, then ask again.
        case sleep
    }

    /// What is done with an offer.
    enum OfferAction {
        /// Tell the producer `false` at once.
        case drop
        /// Keep the producer waiting; wake the consumer if there is one.
        case hold(wake: Consumer?)
    }

    /// What an iteration that is no longer wanted leaves to be done.
    struct CancelAction {
        /// Who is to be told `false`.
        var dropped: [Producer] = []
        /// The driver's task is to be cancelled.
        var cancelsDriver = false
        /// Who is to be woken.
        var wake: Consumer?
        /// Not wanted any more, to be released when no lock is held.
        var released: Element?
    }

    private var phase = Phase.idle
    private var asker = ConsumerStateMachine<Consumer>()
    private var round = Round()
    /// First come, first served. No producer has two offers at once, so there are at most as many as producers.
    private var offers = Fifo<(element: Element, producer: Producer)>()
    /// The answer to the `next()` that is under way.
    private var answer: Element?

    /// The iteration was given up or concluded: who runs the driver has to cancel it.
    var isStopping: Bool {
        switch phase {
        case .stopping, .concluding: true
        case .idle, .running, .finished: false
        }
    }

    // MARK: The consumer

    /// A `next()` begins.
    mutating func arrive() {
        asker.arrive()
    }

    /// A `next()` asks. Unless the action is ``AskAction/start`` or ``AskAction/sleep`` it is over with that.
    mutating func ask() -> AskAction {
        if let element = answer.take() {
            asker.leave()
            return .take(element)
        }
        switch phase {
        case .idle:
            phase = .running
            return .start
        case .running:
            guard let offer = offers.removeFirst() else { return .sleep }
            asker.leave()
            return .deliver(offer.element, offer.producer)
        case .stopping, .concluding:
            // The end is delivered when the last child has ended.
            return .sleep
        case .finished(let failure):
            phase = .finished(nil)
            asker.leave()
            if let failure { return .fail(failure) }
            return .end
        }
    }

    /// The `next()` falls asleep.
    ///
    /// - Returns: The consumer, if there is something to ask for already.
    mutating func sleep(_ consumer: Consumer) -> Consumer? {
        switch phase {
        case .running where offers.isEmpty && answer == nil, .stopping, .concluding: asker.sleep(consumer)
        case .idle, .running, .finished: consumer
        }
    }

    /// The task in `next()` was cancelled, or the iterator went away.
    mutating func cancel() -> CancelAction {
        switch phase {
        case .idle:
            phase = .finished(nil)
            return CancelAction(wake: asker.wake())
        case .running:
            phase = .stopping
            // The consumer sleeps on, until the children have ended.
            return CancelAction(dropped: beginRound().dropped, cancelsDriver: true, released: answer.take())
        case .concluding:
            // The driver is cancelled already. A failure on its way is dropped.
            phase = .stopping
            return CancelAction()
        case .finished:
            // A failure that nobody has taken is dropped with the rest.
            phase = .finished(nil)
            return CancelAction(released: answer.take())
        case .stopping:
            return CancelAction()
        }
    }

    // MARK: The driver and its children

    /// Begins a round: from now on nothing of the one before it is delivered.
    ///
    /// - Returns: The round, and the producers that are to be told `false`.
    mutating func beginRound() -> (round: Round, dropped: [Producer]) {
        round.number += 1
        return (round, offers.removeAll().map(\.producer))
    }

    /// A child offers an element, and waits until it is taken or dropped.
    mutating func offer(_ element: Element, in round: Round, by producer: Producer) -> OfferAction {
        guard case .running = phase, round == self.round else { return .drop }
        offers.append((element, producer))
        return .hold(wake: asker.wake())
    }

    /// The operator answers the `next()` that was said to have found nothing, once. Also when the driver has ended
    /// meanwhile: the answer comes first.
    ///
    /// - Returns: The consumer, if it sleeps.
    mutating func answer(_ element: Element) -> Consumer? {
        switch phase {
        case .running, .finished:
            answer = element
            return asker.wake()
        case .stopping, .concluding:
            // Not wanted any more.
            return nil
        case .idle:
            preconditionFailure("an answer that nobody asked for")  // safe: our own order of calls
        }
    }

    /// A child says how the iteration ends, now. What was offered and not taken is dropped.
    mutating func conclude(_ failure: Failure?) -> CancelAction {
        guard case .running = phase else {
            // It was given up, or another child was first.
            return CancelAction()
        }
        phase = .concluding(failure)
        return CancelAction(dropped: beginRound().dropped, cancelsDriver: true, released: answer.take())
    }

    /// The driver has ended, and so have all its children.
    mutating func driverEnded(_ failure: Failure?) -> Consumer? {
        switch phase {
        case .running:
            phase = .finished(failure)
        case .concluding(let conclusion):
            phase = .finished(conclusion)
        case .stopping:
            // What children say when they are cancelled is no news.
            phase = .finished(nil)
        case .idle, .finished:
            preconditionFailure("a driver ended that did not run")  // safe: our own order of calls
        }
        return asker.wake()
    }
}
