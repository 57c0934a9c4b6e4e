/// One upstream iteration and its subscribers.
///
/// An element of the upstream is requested when a subscriber has requested one and found none, and when all subscribers
/// that waited for the previous element have taken it. So a subscriber that waits in `next()` never misses an element,
/// and an endless upstream cannot run ahead without bounds.
struct ShareStateMachine<Element, Failure: Error, Waiter> {
    typealias Key = OrderedTable<ShareSubscriber<Waiter>>.Key

    /// Identifies an iteration of the upstream.
    struct Connection: Hashable, Sendable {
        fileprivate var number: UInt64 = 0
    }

    /// The action of a `next()`.
    enum RequestAction {
        /// Start the driver of this connection, then request again.
        case start(Connection)
        /// Return this; wake the driver if it has to request the next element of the upstream.
        case deliver(Element, wake: Waiter?)
        /// Throw the failure, or return nil. The subscription has ended.
        case end(Failure?, LeaveAction)
        /// Wake the driver, which has to request an element of the upstream; sleep, then request again.
        case sleep(wake: Waiter?)
    }

    /// The remaining work after a subscription has ended.
    struct LeaveAction {
        /// Whether it was the last subscription: the driver has to be cancelled and the upstream's iterator released.
        var stops = false
        /// The driver, if it has to request an element of the upstream, or to finish.
        var wake: Waiter?
        /// Elements that are no longer needed, to be released when no lock is held.
        var released: [Element] = []
    }

    /// The action of the driver.
    enum PullAction {
        /// Request an element of the upstream.
        case request
        /// Finish: no more elements are needed.
        case finish
        /// Sleep, then try again.
        case sleep
    }

    private enum Upstream {
        case none
        /// Subscribed; no element was requested yet.
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
    /// The number of subscribers that have requested an element and found none.
    private var waiting = 0
    /// The number of subscribers that waited when the last element arrived, and have not taken it.
    private var pending = 0
    private var driver = ConsumerStateMachine<Waiter>()

    /// - Parameter count: How many elements a new subscriber gets; a negative number counts as zero.
    init(replaying count: Int, while lifetime: ShareLifetime) {
        replayed = max(count, 0)
        self.lifetime = lifetime
        recent = RecentElements(limit: max(count, 1))
    }

    /// The number of subscribers.
    var subscriberCount: Int { subscribers.count }

    // MARK: Subscribers

    /// Adds a subscriber.
    ///
    /// - Returns: Its key, and whether this subscriber has to make the upstream's iterator.
    mutating func subscribe() -> (key: Key, connects: Bool) {
        let position = replayed > 0 ? recent.first : recent.end
        let key = subscribers.append(ShareSubscriber(position: position))
        guard case .none = upstream else { return (key, false) }
        upstream = .subscribed
        return (key, true)
    }

    /// A `next()` of this subscriber begins.
    mutating func arrive(_ key: Key) {
        subscribers.update(key) { $0.consumerState.arrive() }
    }

    /// Requests an element for a `next()`. Every action but ``RequestAction/start(_:)`` and
    /// ``RequestAction/sleep(wake:)`` ends that `next()`.
    mutating func request(_ key: Key, isCancelled: Bool) -> RequestAction {
        if isCancelled {
            return .end(nil, leave(key))
        }
        let found = subscribers.update(key) { [recent] subscriber -> (Element?, wasPending: Bool) in
            guard let (element, number) = recent.element(from: subscriber.position) else { return (nil, false) }
            defer { subscriber.state = .idle }
            subscriber.position = number + 1
            subscriber.consumerState.leave()
            return (element, subscriber.state == .pending)
        }
        guard let found else {
            // The subscription has ended: it was cancelled, or has got the end.
            return .end(nil, LeaveAction())
        }
        if let element = found.0 {
            if found.wasPending { pending -= 1 }
            return .deliver(element, wake: wakeIfDue())
        }
        switch upstream {
        case .subscribed:
            upstream = .running
            return .start(connection)
        case .running:
            let isNew = subscribers.update(key) { subscriber -> Bool in
                defer { subscriber.state = .waiting }
                return subscriber.state != .waiting
            }
            if isNew == true { waiting += 1 }
            return .sleep(wake: wakeIfDue())
        case .over(let failure):
            return .end(failure, leave(key))
        case .none:
            preconditionFailure("a subscriber without an upstream")  // safe: our own order of calls
        }
    }

    /// The `next()` falls asleep.
    ///
    /// - Returns: The waiter, if there already is something to request.
    mutating func sleep(_ key: Key, _ waiter: Waiter) -> Waiter? {
        guard case .running = upstream else { return waiter }
        let refused = subscribers.update(key) { [end = recent.end] subscriber -> Waiter? in
            subscriber.position < end ? waiter : subscriber.consumerState.sleep(waiter)
        }
        return refused ?? waiter
    }

    /// The task in `next()` was cancelled.
    mutating func cancel(_ key: Key) -> Waiter? {
        subscribers.update(key) { $0.consumerState.cancel() } ?? nil
    }

    /// Ends a subscription: its iterator was released, it was cancelled, or it got the end.
    mutating func leave(_ key: Key) -> LeaveAction {
        guard let subscriber = subscribers.remove(key) else { return LeaveAction() }
        switch subscriber.state {
        case .idle: break
        case .waiting: waiting -= 1
        case .pending: pending -= 1
        }
        switch lifetime {
        case .connected where subscribers.count == 0: return stop()
        case .connected, .forever: return LeaveAction(wake: wakeIfDue())
        }
    }

    /// Stops the upstream and discards all elements: no subscriber is left, or none can come any more.
    mutating func stop() -> LeaveAction {
        if case .none = upstream { return LeaveAction() }
        upstream = .none
        // The current driver belongs to a past connection from now on: it gets `finish` as the answer to every request.
        let wake = driver.wake()
        driver = ConsumerStateMachine()
        connection.number += 1
        return LeaveAction(stops: true, wake: wake, released: recent.removeAll())
    }

    // MARK: The driver

    /// The driver begins to wait for a request.
    mutating func driverArrived(_ connection: Connection) {
        if connection == self.connection { driver.arrive() }
    }

    /// Returns whether the driver requests an element of the upstream. Every action but ``PullAction/sleep`` ends its
    /// wait.
    mutating func pull(_ connection: Connection, isCancelled: Bool) -> PullAction {
        // The connection was stopped.
        guard connection == self.connection else { return .finish }
        if isCancelled {
            driver.leave()
            return .finish
        }
        guard isDue else { return .sleep }
        driver.leave()
        return .request
    }

    /// The driver falls asleep.
    ///
    /// - Returns: The waiter, if there already is something to do.
    mutating func driverSleeps(_ connection: Connection, _ waiter: Waiter) -> Waiter? {
        connection == self.connection && !isDue ? driver.sleep(waiter) : waiter
    }

    /// The driver's task was cancelled.
    mutating func driverCancelled(_ connection: Connection) -> Waiter? {
        connection == self.connection ? driver.cancel() : nil
    }

    /// The upstream delivered an element; `wake` gets the sleeping subscribers.
    ///
    /// - Returns: An element that was lost or is not replayed any more, to be released when no lock is held.
    mutating func deliver(_ element: Element, by connection: Connection, wake: (Waiter) -> Void) -> Element? {
        guard isRunning(connection) else { return element }
        let lost = recent.append(element)
        subscribers.updateEach { subscriber in
            if subscriber.state == .waiting { subscriber.state = .pending }
            if let waiter = subscriber.consumerState.wake() { wake(waiter) }
        }
        pending += waiting
        waiting = 0
        return lost
    }

    /// The upstream ended or failed; `wake` gets the sleeping subscribers.
    mutating func ended(_ failure: Failure?, by connection: Connection, wake: (Waiter) -> Void) {
        guard isRunning(connection) else { return }
        upstream = .over(failure)
        subscribers.updateEach { subscriber in
            if let waiter = subscriber.consumerState.wake() { wake(waiter) }
        }
    }

    private func isRunning(_ connection: Connection) -> Bool {
        if case .running = upstream, connection == self.connection { true } else { false }
    }

    private var isDue: Bool { waiting > 0 && pending == 0 }

    private mutating func wakeIfDue() -> Waiter? {
        isDue ? driver.wake() : nil
    }
}

/// A subscriber's position in the sequence of elements, and the task in its `next()`.
struct ShareSubscriber<Waiter> {
    fileprivate enum State {
        /// The subscriber does not wait for an element.
        case idle
        /// The subscriber has requested an element and found none.
        case waiting
        /// The subscriber waited when an element arrived, and has not taken it.
        case pending
    }

    /// The number of the next element to take.
    fileprivate var position: UInt64
    fileprivate var state = State.idle
    fileprivate var consumerState = ConsumerStateMachine<Waiter>()

    fileprivate init(position: UInt64) {
        self.position = position
    }
}

/// The last elements of a sequence, numbered from 0.
struct RecentElements<Element> {
    private let limit: Int
    /// A ring buffer: the element with number n is at index n % limit.
    private var slots: [Element] = []
    /// The number of the next element.
    private(set) var end: UInt64 = 0

    /// - Parameter limit: The maximum number of kept elements, at least one. Memory grows with the elements up to that
    ///   number.
    init(limit: Int) {
        self.limit = limit
    }

    /// The number of the oldest kept element; ``end`` if there is none.
    var first: UInt64 { end - UInt64(slots.count) }

    /// Adds an element. Returns the element that it replaced.
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

    /// The element with this number, or the oldest kept element if that one is gone; nil if it has not arrived yet.
    func element(from number: UInt64) -> (Element, number: UInt64)? {
        let number = max(number, first)
        guard number < end else { return nil }
        return (slots[place(of: number)], number)
    }

    /// Removes and returns all elements, and starts again with number 0.
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
