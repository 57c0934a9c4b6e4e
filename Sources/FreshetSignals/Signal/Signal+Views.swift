extension Signal {
    /// The signal with all firings that are pending taken as one.
    ///
    /// ```
    /// source        a-bcd----e-|
    /// next() asked  ^-----^--^--^
    /// coalesced()   a-----o--o--|
    /// ```
    ///
    /// A subscription like the signal's own: it begins when the iterator is made.
    public func coalesced() -> some AsyncSequence<Void, Never> & Sendable {
        SignalView<CoalescedFirings>(signal: self)
    }

    /// The signal with what stands behind it: all that is pending, each source once, in the order of their first
    /// firing.
    ///
    /// ```
    /// network       n--n-------
    /// resume        -r---------
    /// next() asked  ----^------
    /// causes        ----o        [network × 2, resume × 1]
    /// ```
    ///
    /// A subscription like the signal's own: it begins when the iterator is made. An element is never empty. Signals
    /// that an operator derived are sequences of their own and carry no causes.
    public var causes: some AsyncSequence<[Cause], Never> & Sendable {
        SignalView<PendingCauses>(signal: self)
    }
}

/// A subscription to a signal's sources, seen through a tally.
struct SignalView<T: PendingFirings>: AsyncSequence, Sendable {
    typealias Element = T.Output
    typealias Failure = Never

    let signal: Signal

    struct AsyncIterator: AsyncIteratorProtocol {
        let owner: SubscriptionOwner<T>

        mutating func next(isolation: isolated (any Actor)? = #isolation) async -> T.Output? {
            await owner.subscription.next(isolation: isolation)
        }
    }

    func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(owner: SubscriptionOwner(signal))
    }
}

@available(*, unavailable)
extension SignalView.AsyncIterator: Sendable {}

/// An iterator that can forget what is pending. Operators for which several outputs count as one make use of it.
protocol DiscardingIterator: SendableMetatype {
    /// Forgets what is pending, from any thread.
    var forget: @Sendable () -> Void { get }
}

extension Signal.AsyncIterator: DiscardingIterator {
    var forget: @Sendable () -> Void {
        { [subscription = owner.subscription] in subscription.forget() }
    }
}

extension SignalView.AsyncIterator: DiscardingIterator {
    var forget: @Sendable () -> Void {
        { [subscription = owner.subscription] in subscription.forget() }
    }
}
