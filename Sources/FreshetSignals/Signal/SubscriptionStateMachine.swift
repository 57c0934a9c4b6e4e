/// One subscription: the firings that nobody has taken yet, the sources that may still fire, and the task that asks.
struct SubscriptionStateMachine<T: PendingFirings, Waiter> {
    /// What a `next()` does first.
    enum ArriveAction {
        /// Yield once, so that subscribers on one serial executor take turns, then look.
        case yieldFirst
        /// Look what is there.
        case look
    }

    /// What a `next()` does with what it found.
    enum TakeAction {
        /// Return this.
        case deliver(T.Output)
        /// Return nil.
        case end
        /// Sleep, then look again.
        case sleep
    }

    private var tally: T
    private var openSources: Int
    private var asker = ConsumerStateMachine<Waiter>()
    /// Firings arrived since the asker last yielded.
    private var owesYield = false

    /// - Parameter listings: For each source, none twice, how often the merge lists it.
    init(listings: [Int]) {
        tally = T(listings: listings)
        openSources = listings.count
    }

    /// A source fired.
    mutating func record(_ occurrence: Occurrence?, source: Int) -> Waiter? {
        tally.record(occurrence, source: source)
        if let waiter = asker.wake() {
            // It slept, so the others had their turn; only firings after this one oblige it to yield again.
            return waiter
        }
        owesYield = true
        return nil
    }

    /// A source finished. The last one's end is the subscription's, once the tally is empty.
    mutating func sourceFinished() -> Waiter? {
        openSources -= 1
        return openSources == 0 ? asker.wake() : nil
    }

    /// A `next()` begins.
    mutating func arrive(isCancelled: Bool) -> ArriveAction {
        asker.arrive()
        guard owesYield, !isCancelled else { return .look }
        owesYield = false
        return .yieldFirst
    }

    /// A `next()` takes what there is. Unless the action is ``TakeAction/sleep`` it is over with that.
    mutating func take(isCancelled: Bool) -> TakeAction {
        if isCancelled {
            asker.leave()
            return .end
        }
        if let output = tally.take() {
            if tally.isEmpty {
                owesYield = false
            }
            asker.leave()
            return .deliver(output)
        }
        if openSources == 0 {
            asker.leave()
            return .end
        }
        return .sleep
    }

    /// The `next()` falls asleep.
    ///
    /// - Returns: The waiter, if there is something to look at already.
    mutating func sleep(_ waiter: Waiter) -> Waiter? {
        guard tally.isEmpty, openSources > 0 else { return waiter }
        return asker.sleep(waiter)
    }

    /// The task in `next()` was cancelled.
    mutating func cancel() -> Waiter? {
        asker.cancel()
    }

    /// Forgets what nobody has taken.
    mutating func forget() {
        tally.clear()
        owesYield = false
    }
}
