/// What a source fires into.
protocol Listener: AnyObject, Sendable {
    /// Whether the occurrence of a firing is of any use to it. If it is to none, the source makes none.
    var readsOccurrences: Bool { get }
    /// Called under the source's lock: records the firing and returns who is to be woken after the lock is released.
    ///
    /// - Parameter occurrence: Never nil if ``readsOccurrences`` is true.
    func record(_ occurrence: Occurrence?, source: Int) -> Waiter?
    /// Called under the source's lock when it will not fire again.
    func sourceFinished() -> Waiter?
}

/// The shared half of a subscription, known to its sources and to its iterators.
///
/// Locks are always taken in the order source, subscription; nothing here calls a source.
final class Subscription<T: PendingFirings>: Listener {
    private let machine: Lock<SubscriptionStateMachine<T, Waiter>>

    init(listings: [Int]) {
        machine = Lock(SubscriptionStateMachine(listings: listings))
    }

    // A source calls this as an existential's: without being told to, the compiler makes none but generic code of it.
    @_specialize(where T == PendingFiringCount)
    @_specialize(where T == CoalescedFirings)
    @_specialize(where T == PendingCauses)
    func record(_ occurrence: Occurrence?, source: Int) -> Waiter? {
        machine.withLock { $0.record(occurrence, source: source) }
    }

    var readsOccurrences: Bool { T.readsOccurrences }

    func sourceFinished() -> Waiter? {
        machine.withLock { $0.sourceFinished() }
    }

    func forget() {
        machine.withLock { $0.forget() }
    }

    @_specialize(where T == PendingFiringCount)
    @_specialize(where T == CoalescedFirings)
    @_specialize(where T == PendingCauses)
    func next(isolation: isolated (any Actor)?) async -> T.Output? {
        let cancelledAtStart = Task.isCancelled
        if machine.withLock({ $0.arrive(isCancelled: cancelledAtStart) }) == .yieldFirst {
            await Task.yield()
        }
        while true {
            let isCancelled = Task.isCancelled
            switch machine.withLock({ $0.take(isCancelled: isCancelled) }) {
            case .deliver(let output):
                return output
            case .end:
                return nil
            case .sleep:
                await waitUntilResumed(isolation: isolation) { waiter in
                    machine.withLock { $0.sleep(waiter) }
                } onCancel: {
                    machine.withLock { $0.cancel() }
                }
            }
        }
    }
}

/// The iterators' half of a subscription: with its last copy the subscription ends.
final class SubscriptionOwner<T: PendingFirings>: Sendable {
    let subscription: Subscription<T>
    private let registrations: [(source: Source, key: Source.Key)]
    /// What was opened for this subscription, released with it.
    private let leases: [any Sendable]

    /// Subscribes to each source once, however often it is listed.
    init(_ signal: Signal) {
        let (sources, leases) = signal.open()
        self.leases = leases
        var listings: [Int] = []
        var distinct: [Source] = []
        if sources.count == 1 {
            listings = [1]
            distinct = sources
        } else {
            var places: [ObjectIdentifier: Int] = [:]
            for source in sources {
                if let place = places[ObjectIdentifier(source)] {
                    listings[place] += 1
                } else {
                    places[ObjectIdentifier(source)] = distinct.count
                    distinct.append(source)
                    listings.append(1)
                }
            }
        }
        let subscription = Subscription<T>(listings: listings)
        self.subscription = subscription
        registrations = distinct.enumerated().compactMap { index, source in
            source.add(subscription, as: index).map { (source, $0) }
        }
    }

    deinit {
        for (source, key) in registrations {
            source.remove(key)
        }
    }
}
