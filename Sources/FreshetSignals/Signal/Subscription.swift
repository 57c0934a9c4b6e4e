/// An object that records the firings of sources.
protocol Listener: AnyObject, Sendable {
    /// Whether it reads the occurrences of firings. If no listener does, the source makes none.
    var readsOccurrences: Bool { get }
    /// Called under the source's lock: records the firing and returns the waiter to be resumed after the lock is
    /// released.
    ///
    /// - Parameter occurrence: Never nil if ``readsOccurrences`` is true.
    func record(_ occurrence: Occurrence?, source: Int) -> Waiter?
    /// Called under the source's lock when the source will not fire again.
    func sourceFinished() -> Waiter?
}

/// The part of a subscription that its sources and its iterators share.
///
/// Locks are always taken in the order source, subscription; this class never calls a source.
final class Subscription<T: PendingFirings>: Listener {
    private let machine: Lock<SubscriptionStateMachine<T, Waiter>>

    init(listings: [Int]) {
        machine = Lock(SubscriptionStateMachine(listings: listings))
    }

    // A source calls this through an existential; without these attributes the compiler emits only unspecialized code.
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

/// The part of a subscription that its iterators hold: the subscription ends with the last copy.
final class SubscriptionOwner<T: PendingFirings>: Sendable {
    let subscription: Subscription<T>
    private let registrations: [(source: Source, key: Source.Key)]
    /// Objects that live as long as this subscription.
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
