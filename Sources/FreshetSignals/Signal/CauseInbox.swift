/// Collects the causes of any number of signals for one task.
///
/// An iterator of ``Signal/causes`` needs a task that waits in it, and a task costs more than the rest of an idle
/// subscription. A program with thousands of signals subscribes them to one inbox. One task waits for the inbox, which
/// returns the keys of the subscriptions with pending causes. While no signal fires, nothing runs and nothing is woken.
///
/// Locks are always taken in the order source, subscription, inbox.
package final class CauseInbox: Sendable {
    /// Chosen by the subscriber; several subscriptions may share a key.
    package typealias Key = UInt64

    private struct State {
        var ready: [Key] = []
        var consumerState = ConsumerStateMachine<Waiter>()
    }

    private let state = Lock(State())

    package init() {}

    /// Subscribes to a signal from now on. The subscription ends when the returned object is released.
    package func subscribe(to signal: Signal, as key: Key) -> CauseSubscription {
        CauseSubscription(signal, inbox: self, key: key)
    }

    /// Adds a key although no signal fired. It may be called from any thread.
    ///
    /// Each call adds one more key for ``next(isolation:)``. The caller must not call it repeatedly before the key was
    /// taken.
    package func wake(_ key: Key) {
        add(key)?.resume()
    }

    /// Returns the keys with pending causes, in the order of their arrival; waits if there are none. Returns nil when
    /// the task is cancelled. Only one task at a time may call it.
    package func next(isolation: isolated (any Actor)? = #isolation) async -> [Key]? {
        let isReady = state.withLock { state in
            state.consumerState.arrive()
            return !state.ready.isEmpty
        }
        // A task that finds keys immediately has not slept since its last call: let other tasks on its executor run
        // first.
        if isReady { await Task.yield() }
        while true {
            if Task.isCancelled {
                state.withLock { $0.consumerState.leave() }
                return nil
            }
            let keys = state.withLock { state -> [Key]? in
                guard !state.ready.isEmpty else { return nil }
                state.consumerState.leave()
                defer { state.ready = [] }
                return state.ready
            }
            if let keys { return keys }
            await waitUntilResumed(isolation: isolation) { waiter in
                state.withLock { $0.ready.isEmpty ? $0.consumerState.sleep(waiter) : waiter }
            } onCancel: {
                state.withLock { $0.consumerState.cancel() }
            }
        }
    }

    /// Adds a key. Returns the waiter to be resumed after all locks are released.
    fileprivate func add(_ key: Key) -> Waiter? {
        state.withLock { state in
            state.ready.append(key)
            return state.consumerState.wake()
        }
    }
}

/// A subscription of a ``CauseInbox``; it ends when this object is released.
package final class CauseSubscription: Sendable {
    private let listener: CauseListener
    private let registrations: [(source: Source, key: Source.Key)]
    /// Objects that live as long as this subscription.
    private let leases: [any Sendable]

    fileprivate init(_ signal: Signal, inbox: CauseInbox, key: CauseInbox.Key) {
        let (sources, leases) = signal.open()
        self.leases = leases
        var distinct: [Source] = []
        for source in sources where !distinct.contains(where: { $0 === source }) { distinct.append(source) }
        let listener = CauseListener(count: distinct.count, inbox: inbox, key: key)
        self.listener = listener
        var registrations: [(source: Source, key: Source.Key)] = []
        // Thousands of subscriptions keep this array, so its capacity is exact.
        registrations.reserveCapacity(distinct.count)
        for (index, source) in distinct.enumerated() {
            if let key = source.add(listener, as: index) { registrations.append((source, key)) }
        }
        self.registrations = registrations
    }

    deinit {
        for (source, key) in registrations { source.remove(key) }
    }

    /// Takes all pending causes, one for each source, in the order of their first firing. Returns an empty array if
    /// there are none.
    package func take() -> [Cause] {
        listener.take()
    }
}

/// The part of a subscription that its sources hold.
private final class CauseListener: Listener {
    private let pendingFirings: Lock<PendingCauses>
    private let inbox: CauseInbox
    private let key: CauseInbox.Key

    init(count: Int, inbox: CauseInbox, key: CauseInbox.Key) {
        pendingFirings = Lock(PendingCauses(listings: Array(repeating: 1, count: count)))
        self.inbox = inbox
        self.key = key
    }

    var readsOccurrences: Bool { PendingCauses.readsOccurrences }

    func record(_ occurrence: Occurrence?, source: Int) -> Waiter? {
        let isFirst = pendingFirings.withLock { pendingFirings in
            defer { pendingFirings.record(occurrence, source: source) }
            return pendingFirings.isEmpty
        }
        // The key is already in the inbox until the causes are taken.
        return isFirst ? inbox.add(key) : nil
    }

    /// Pending causes can still be taken; an inbox has no end.
    func sourceFinished() -> Waiter? { nil }

    func take() -> [Cause] {
        pendingFirings.withLock { $0.take() } ?? []
    }
}
