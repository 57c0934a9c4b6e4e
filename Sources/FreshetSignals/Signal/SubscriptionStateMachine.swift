/// One subscription: its pending firings, the sources that may still fire, and the task in `next()`.
struct SubscriptionStateMachine<T: PendingFirings, Waiter> {
    /// The first action of a `next()`.
    enum ArriveAction {
        /// Yield once, so that subscribers on one serial executor run in turn, then take.
        case yieldFirst
        /// Take immediately.
        case look
    }

    /// The action of a `next()`.
    enum TakeAction {
        /// Return this.
        case deliver(T.Output)
        /// Return nil.
        case end
        /// Sleep, then try again.
        case sleep
    }

    private var pendingFirings: T
    private var openSources: Int
    private var consumerState = ConsumerStateMachine<Waiter>()
    /// Whether firings have arrived since the consumer last yielded.
    private var mustYield = false

    /// - Parameter listings: For each distinct source, how often the merge lists it.
    init(listings: [Int]) {
        pendingFirings = T(listings: listings)
        openSources = listings.count
    }

    /// A source fired.
    mutating func record(_ occurrence: Occurrence?, source: Int) -> Waiter? {
        pendingFirings.record(occurrence, source: source)
        if let waiter = consumerState.wake() {
            // The consumer slept, so the other subscribers could run; it has to yield again only after further firings.
            return waiter
        }
        mustYield = true
        return nil
    }

    /// A source finished. The subscription ends with its last source, when no firing is pending.
    mutating func sourceFinished() -> Waiter? {
        openSources -= 1
        return openSources == 0 ? consumerState.wake() : nil
    }

    /// A `next()` begins.
    mutating func arrive(isCancelled: Bool) -> ArriveAction {
        consumerState.arrive()
        guard mustYield, !isCancelled else { return .look }
        mustYield = false
        return .yieldFirst
    }

    /// Takes the pending output for a `next()`. Every action but ``TakeAction/sleep`` ends that `next()`.
    mutating func take(isCancelled: Bool) -> TakeAction {
        if isCancelled {
            consumerState.leave()
            return .end
        }
        if let output = pendingFirings.take() {
            if pendingFirings.isEmpty {
                mustYield = false
            }
            consumerState.leave()
            return .deliver(output)
        }
        if openSources == 0 {
            consumerState.leave()
            return .end
        }
        return .sleep
    }

    /// The `next()` falls asleep.
    ///
    /// - Returns: The waiter, if there already is something to take.
    mutating func sleep(_ waiter: Waiter) -> Waiter? {
        guard pendingFirings.isEmpty, openSources > 0 else { return waiter }
        return consumerState.sleep(waiter)
    }

    /// The task in `next()` was cancelled.
    mutating func cancel() -> Waiter? {
        consumerState.cancel()
    }

    /// Discards the pending firings.
    mutating func forget() {
        pendingFirings.clear()
        mustYield = false
    }
}
