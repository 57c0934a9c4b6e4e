extension Signal {
    /// The signal with all pending firings taken as one.
    ///
    /// ```
    /// source        a-bcd----e-|
    /// next() asked  ^-----^--^--^
    /// coalesced()   a-----o--o--|
    /// ```
    ///
    /// Like the signal's own subscription, this one begins when the iterator is made.
    public func coalesced() -> some AsyncSequence<Void, Never> & Sendable {
        SignalView<CoalescedFirings>(signal: self)
    }

    /// The signal with the causes of its firings: one cause for each source with pending firings, in the order of their
    /// first firing.
    ///
    /// ```
    /// network       n--n-------
    /// resume        -r---------
    /// next() asked  ----^------
    /// causes        ----o        [network × 2, resume × 1]
    /// ```
    ///
    /// Like the signal's own subscription, this one begins when the iterator is made. An element is never empty. A
    /// signal that an operator derived, such as a debounced one, is a plain sequence without causes.
    public var causes: some AsyncSequence<[Cause], Never> & Sendable {
        SignalView<PendingCauses>(signal: self)
    }
}

/// A subscription to a signal's sources that delivers the outputs of a ``PendingFirings``.
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

/// An iterator that can discard pending outputs. Operators use it where several outputs count as one.
protocol DiscardingIterator: SendableMetatype {
    /// Discards pending outputs; may be called from any thread.
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
