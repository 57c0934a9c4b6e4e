/// An event without a value: an asynchronous sequence of `Void` that never fails.
///
/// A signal is the read side: it can be iterated, merged and passed on, but not fired. ``SignalSource`` and ``Trigger``
/// are the write sides.
///
/// ```
/// source      --a--b-----c--|
/// subscriber  --a--b-----c--|
/// ```
///
/// **Start.** A subscription begins when the iterator is made. Later firings are never lost, also before the first
/// `next()`; earlier firings are not received. The subscription ends when the last copy of the iterator is released;
/// copies share the subscription. To begin a `for await` loop at a certain moment, make the iterator at that moment.
///
/// **No queue.** Firings carry no value, so pending firings are only counted. A slow subscriber costs no memory and
/// receives each firing. To take all pending firings together, iterate ``coalesced()``. To get the causes of the
/// firings, iterate ``causes``.
///
/// **Order and fairness.** All subscribers see one source's firings in one order. If a firing has arrived since the
/// last suspension of `next()`, `next()` yields once before it returns the firing. So subscribers on one serial
/// executor run in turn, also if their handlers fire again.
///
/// **Cancellation.** When the task in `next()` is cancelled, `next()` returns nil and takes no firing. The subscription
/// stays alive, and another task may continue with the iterator. Two concurrent calls of `next()` on one subscription
/// are a programming error and trap.
///
/// **The end.** The sequence ends when all its sources have finished and the pending firings have been taken.
public struct Signal: AsyncSequence, Sendable {
    /// A firing carries no value.
    public typealias Element = Void
    /// A signal cannot fail.
    public typealias Failure = Never

    /// The sources, in the order in which they were listed, including repeated ones.
    let sources: [Source]
    /// Closures that open further sources for a subscription.
    let openings: [@Sendable () -> Opened]

    init(sources: [Source], openings: [@Sendable () -> Opened] = []) {
        self.sources = sources
        self.openings = openings
    }

    /// A subscription. Copies share it.
    public struct AsyncIterator: AsyncIteratorProtocol {
        let owner: SubscriptionOwner<PendingFiringCount>

        /// Takes one pending firing; waits for one if there is none.
        ///
        /// - Returns: `nil` at the end, or if the task is cancelled.
        public mutating func next(isolation: isolated (any Actor)? = #isolation) async -> Void? {
            await owner.subscription.next(isolation: isolation)
        }
    }

    /// Subscribes: the iterator receives all firings from now on.
    public func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(owner: SubscriptionOwner(self))
    }

    /// A signal that neither fires nor ends.
    public static var never: Signal {
        Signal(sources: [Source(name: "never", now: { .now })])
    }

    /// One signal that fires whenever one of several signals fires, and ends when all have ended.
    ///
    /// ```
    /// a               --a-----a--|
    /// b               ----b---b------|
    /// merge([a, b])   --a-b---(ab)---|
    /// ```
    ///
    /// A merge is one subscription to all sources, however deep merges are nested: it needs no task and no buffer. A
    /// source that is listed twice counts twice here and once in ``causes``. A merge of no signals ends immediately.
    public static func merge(_ signals: some Sequence<Signal>) -> Signal {
        let signals = Array(signals)
        return Signal(sources: signals.flatMap(\.sources), openings: signals.flatMap(\.openings))
    }

    /// One signal that fires whenever one of several signals fires, and ends when all have ended.
    public static func merge(_ signals: Signal...) -> Signal {
        merge(signals)
    }
}

@available(*, unavailable)
extension Signal.AsyncIterator: Sendable {}
