/// One upstream iteration and its subscribers.
///
/// The upstream is asked when a subscriber has asked, has found nothing, and all to whom the element before was
/// delivered while they waited have taken it. So no subscriber that waits in `next()` ever misses an element, and an
/// upstream without an end does not run away.
struct ShareStateMachine<Element, Failure: Error, Waiter> {
    typealias Key = OrderedTable<ShareSubscriber<Waiter>>.Key

    /// Tells an upstream iteration from those before it.
    struct Connection: Hashable, Sendable {
        fileprivate var number: UInt64 = 0
    }

    /// What a `next()` does.
    enum AskAction {
        /// Start the driver of this connection, then ask again.
        case start(Connection)
        /// Return this; wake the driver if it is due to ask the upstream again.
        case deliver(Element, wake: Waiter?)
        /// Throw this, or return nil. The subscriber has left.
        case end(Failure?, LeaveAction)
        /// Wake the driver, which has to ask the upstream; sleep, then ask again.
        case sleep(wake: Waiter?)
    }

    /// What a subscriber leaves behind.
    struct LeaveAction {
        /// It was the last one: the driver is to be cancelled, the upstream's iterator released.
        var stops = false
        /// The driver, which is due to ask the upstream again, or to finish.
        var wake: Waiter?
        /// Kept for nobody any more, to be released when no lock is held.
        var released: [Element] = []
    }

    /// What the driver does.
    enum PullAction {
        /// Ask the upstream.
        case ask
        /// Nothing more is wanted.
        case finish
        /// Sleep, then look again.
        case sleep
    }

    private enum Upstream {
        case none
        /// It has been subscribed and not been asked.
        case subscribed
        case running
        case over(Failure?)
    }

    private let replayed: Int
    private let lifetime: ShareLifetime
    private var upstream = Upstream.none
    private var connection = Connection()
    private var recent: RecentElements<Element>
    private var subscribers = OrderedTable<ShareSubscriber<Waiter>>()
    /// How many have asked and found nothing.
    private var wanting = 0
    /// How many had asked when an element came, and have not taken it.
    private var owed = 0
    private var driver = ConsumerStateMachine<Waiter>()

    /// - Parameter count: How many elements a new subscriber gets; less than none is none.
    init(replaying count: Int, while lifetime: ShareLifetime) {
        replayed = max(count, 0)
        self.lifetime = lifetime
        recent = RecentElements(limit: max(count, 1))
    }

    /// How many subscribers there are.
    var subscriberCount: Int { subscribers.count }

    // MARK: Subscribers

    /// A subscriber comes.
    ///
    /// - Returns: Whether it is the one that makes the upstream's iterator.
    mutating func subscribe() -> (key: Key, connects: Bool) {
        let position = replayed > 0 ? recent.first : recent.end
        let key = subscribers.append(ShareSubscriber(position: position))
        guard case .none = upstream else { return (key, false) }
        upstream = .subscribed
        return (key, true)
    }

    /// A `next()` of this subscriber begins.
    mutating func arrive(_ key: Key) {
        subscribers.update(key) { $0.asker.arrive() }
    }

    /// A `next()` asks. Unless the action is ``AskAction/start(_:)`` or ``AskAction/sleep(wake:)`` it is over with that.
    mutating func ask(_ key: Key, isCancelled: Bool) -> AskAction {
        if isCancelled {
            return .end(nil, leave(key))
        }
        let found = subscribers.update(key) { [recent] subscriber -> (Element?, wasOwed: Bool) in
            guard let (element, number) = recent.element(from: subscriber.position) else { return (nil, false) }
            defer { subscriber.state = .quiet }
            subscriber.position = number + 1
            subscriber.asker.leave()
            return (element, subscriber.state == .owed)
        }
        guard let found else {
            // It has left: it was cancelled, or has got the end.
            return .end(nil, LeaveAction())
        }
        if let element = found.0 {
            if found.wasOwed { owed -= 1 }
            return .deliver(element, wake: wakeIfDue())
        }
        switch upstream {
        case .subscribed:
            upstream = .running
            return .start(connection)
        case .running:
            let isNew = subscribers.update(key) { subscriber -> Bool in
                defer { subscriber.state = .wanting }
                return subscriber.state != .wanting
            }
            if isNew == true { wanting += 1 }
            return .sleep(wake: wakeIfDue())
        case .over(let failure):
            return .end(failure, leave(key))
        case .none:
            preconditionFailure("a subscriber of nothing")  // safe: our own order of calls
        }
    }

    /// The `next()` falls asleep.
    ///
    /// - Returns: The waiter, if there is something to ask for already.
    mutating func sleep(_ key: Key, _ waiter: Waiter) -> Waiter? {
        guard case .running = upstream else { return waiter }
        let refused = subscribers.update(key) { [end = recent.end] subscriber -> Waiter? in
            subscriber.position < end ? waiter : subscriber.asker.sleep(waiter)
        }
        return refused ?? waiter
    }

    /// The task in `next()` was cancelled.
    mutating func cancel(_ key: Key) -> Waiter? {
        subscribers.update(key) { $0.asker.cancel() } ?? nil
    }

    /// A subscriber goes: its iterator went away, it was cancelled, or it got the end.
    mutating func leave(_ key: Key) -> LeaveAction {
        guard let subscriber = subscribers.remove(key) else { return LeaveAction() }
        switch subscriber.state {
        case .quiet: break
        case .wanting: wanting -= 1
        case .owed: owed -= 1
        }
        switch lifetime {
        case .connected where subscribers.count == 0: return stop()
        case .connected, .forever: return LeaveAction(wake: wakeIfDue())
        }
    }

    /// Nobody can subscribe any more, or nobody does: the upstream is stopped and all forgotten.
    mutating func stop() -> LeaveAction {
        if case .none = upstream { return LeaveAction() }
        upstream = .none
        // From now on the driver is one of the past: whatever it asks, it is told to finish.
        let wake = driver.wake()
        driver = ConsumerStateMachine()
        connection.number += 1
        return LeaveAction(stops: true, wake: wake, released: recent.removeAll())
    }

    // MARK: The driver

    /// The driver begins to look.
    mutating func driverArrived(_ connection: Connection) {
        if connection == self.connection { driver.arrive() }
    }

    /// The driver looks. Unless the action is ``PullAction/sleep`` it has its answer with that.
    mutating func pull(_ connection: Connection, isCancelled: Bool) -> PullAction {
        // The driver of a connection that was stopped has no business here any more.
        guard connection == self.connection else { return .finish }
        if isCancelled {
            driver.leave()
            return .finish
        }
        guard isDue else { return .sleep }
        driver.leave()
        return .ask
    }

    /// The driver falls asleep.
    ///
    /// - Returns: The waiter, if there is something to do already.
    mutating func driverSleeps(_ connection: Connection, _ waiter: Waiter) -> Waiter? {
        connection == self.connection && !isDue ? driver.sleep(waiter) : waiter
    }

    /// The driver's task was cancelled.
    mutating func driverCancelled(_ connection: Connection) -> Waiter? {
        connection == self.connection ? driver.cancel() : nil
    }

    /// The upstream delivered; `wake` gets those who slept.
    ///
    /// - Returns: An element that was lost or is not replayed any more, to be released when no lock is held.
    mutating func deliver(_ element: Element, by connection: Connection, wake: (Waiter) -> Void) -> Element? {
        guard isRunning(connection) else { return element }
        let lost = recent.append(element)
        subscribers.updateEach { subscriber in
            if subscriber.state == .wanting { subscriber.state = .owed }
            if let waiter = subscriber.asker.wake() { wake(waiter) }
        }
        owed += wanting
        wanting = 0
        return lost
    }

    /// The upstream ended or failed; `wake` gets those who slept.
    mutating func ended(_ failure: Failure?, by connection: Connection, wake: (Waiter) -> Void) {
        guard isRunning(connection) else { return }
        upstream = .over(failure)
        subscribers.updateEach { subscriber in
            if let waiter = subscriber.asker.wake() { wake(waiter) }
        }
    }

    private func isRunning(_ connection: Connection) -> Bool {
        if case .running = upstream, connection == self.connection { true } else { false }
    }

    private var isDue: Bool { wanting > 0 && owed == 0 }

    private mutating func wakeIfDue() -> Waiter? {
        isDue ? driver.wake() : nil
    }
}

/// Where a subscriber is in the course of elements, and the task that asks.
struct ShareSubscriber<Waiter> {
    fileprivate enum State {
        /// It does not wait for an element.
        case quiet
        /// It has asked and found nothing.
        case wanting
        /// It had asked when an element came.
        case owed
    }

    /// The number of the element that it takes next.
    fileprivate var position: UInt64
    fileprivate var state = State.quiet
    fileprivate var asker = ConsumerStateMachine<Waiter>()

    fileprivate init(position: UInt64) {
        self.position = position
    }
}

/// The last elements of a course, each under its number in it.
struct RecentElements<Element> {
    private let limit: Int
    /// The element with a number is at the remainder of it by the limit.
    private var slots: [Element] = []
    /// The number of the next element.
    private(set) var end: UInt64 = 0

    /// - Parameter limit: How many are kept, at least one. Memory grows with the elements up to that.
    init(limit: Int) {
        self.limit = limit
    }

    /// The number of the oldest that is kept; ``end`` if there is none.
    var first: UInt64 { end - UInt64(slots.count) }

    /// Adds an element. Returns the one that went for it.
    mutating func append(_ element: Element) -> Element? {
        defer { end += 1 }
        guard slots.count == limit else {
            slots.append(element)
            return nil
        }
        let place = place(of: end)
        let oldest = slots[place]
        slots[place] = element
        return oldest
    }

    /// The element with this number, or the oldest that is kept if it has gone; nil if it is still to come.
    func element(from number: UInt64) -> (Element, number: UInt64)? {
        let number = max(number, first)
        guard number < end else { return nil }
        return (slots[place(of: number)], number)
    }

    /// Forgets the course.
    mutating func removeAll() -> [Element] {
        defer {
            slots = []
            end = 0
        }
        return slots
    }

    private func place(of number: UInt64) -> Int {
        Int(number % UInt64(limit))
    }
}

extension RecentElements: Sendable where Element: Sendable {}
extension ShareSubscriber: Sendable where Waiter: Sendable {}
extension ShareStateMachine: Sendable where Element: Sendable, Waiter: Sendable {}
