/// Many subscriptions, one task: the causes of any number of signals, listened to from one place.
///
/// An iterator of ``Signal/causes`` needs a task that waits in it, and a task costs more than all else of a subscription
/// that nothing happens to. Who listens to thousands of signals subscribes them to an inbox, and one task asks it which
/// of them have something to be taken. Nothing runs and nothing is woken while nothing fires.
///
/// Locks are always taken in the order source, subscription, inbox.
package final class CauseInbox: Sendable {
    /// Chosen by who subscribes; several subscriptions may share one.
    package typealias Key = UInt64

    private struct State {
        var ready: [Key] = []
        var asker = ConsumerStateMachine<Waiter>()
    }

    private let state = Lock(State())

    package init() {}

    /// Listens to a signal from now on. The subscription ends with the object that is returned.
    package func subscribe(to signal: Signal, as key: Key) -> CauseSubscription {
        CauseSubscription(signal, inbox: self, key: key)
    }

    /// Says that there is something to be done for this key, although no signal fired. From any thread.
    ///
    /// Each call is one more key for ``next(isolation:)``: who calls it sees to it that it is not called again and
    /// again before the key was taken.
    package func wake(_ key: Key) {
        add(key)?.resume()
    }

    /// The keys for which there is something, in the order in which it came; waits for one if there is none. Nil when
    /// the task is cancelled. One task at a time may ask.
    package func next(isolation: isolated (any Actor)? = #isolation) async -> [Key]? {
        let isReady = state.withLock { state in
            state.asker.arrive()
            return !state.ready.isEmpty
        }
        // Who finds something at once has not slept since: the others on its executor have their turn first.
        if isReady { await Task.yield() }
        while true {
            if Task.isCancelled {
                state.withLock { $0.asker.leave() }
                return nil
            }
            let keys = state.withLock { state -> [Key]? in
                guard !state.ready.isEmpty else { return nil }
                state.asker.leave()
                defer { state.ready = [] }
                return state.ready
            }
            if let keys { return keys }
            await waitUntilResumed(isolation: isolation) { waiter in
                state.withLock { $0.ready.isEmpty ? $0.asker.sleep(waiter) : waiter }
            } onCancel: {
                state.withLock { $0.asker.cancel() }
            }
        }
    }

    /// Returns who is to be woken for it after all locks are released.
    fileprivate func add(_ key: Key) -> Waiter? {
        state.withLock { state in
            state.ready.append(key)
            return state.asker.wake()
        }
    }
}

/// A subscription of a ``CauseInbox``; it ends when this goes away.
package final class CauseSubscription: Sendable {
    private let listener: CauseListener
    private let registrations: [(source: Source, key: Source.Key)]
    /// What was opened for this subscription, released with it.
    private let leases: [any Sendable]

    fileprivate init(_ signal: Signal, inbox: CauseInbox, key: CauseInbox.Key) {
        let (sources, leases) = signal.open()
        self.leases = leases
        var distinct: [Source] = []
        for source in sources where !distinct.contains(where: { $0 === source }) { distinct.append(source) }
        let listener = CauseListener(count: distinct.count, inbox: inbox, key: key)
        self.listener = listener
        registrations = distinct.enumerated().compactMap { index, source in
            source.add(listener, as: index).map { (source, $0) }
        }
    }

    deinit {
        for (source, key) in registrations { source.remove(key) }
    }

    /// Takes all that is pending, each source once, in the order of their first firing; nothing if nothing is.
    package func take() -> [Cause] {
        listener.take()
    }
}

/// The half of a subscription that its sources know.
private final class CauseListener: Listener {
    private let tally: Lock<PendingCauses>
    private let inbox: CauseInbox
    private let key: CauseInbox.Key

    init(count: Int, inbox: CauseInbox, key: CauseInbox.Key) {
        tally = Lock(PendingCauses(listings: Array(repeating: 1, count: count)))
        self.inbox = inbox
        self.key = key
    }

    var readsOccurrences: Bool { PendingCauses.readsOccurrences }

    func record(_ occurrence: Occurrence?, source: Int) -> Waiter? {
        let isFirst = tally.withLock { tally in
            defer { tally.record(occurrence, source: source) }
            return tally.isEmpty
        }
        // Its key is in the inbox until it is taken.
        return isFirst ? inbox.add(key) : nil
    }

    /// What fired before is still to be taken; an inbox has no end.
    func sourceFinished() -> Waiter? { nil }

    func take() -> [Cause] {
        tally.withLock { $0.take() } ?? []
    }
}
