/// An event without a value: an asynchronous sequence of `Void` that never fails.
///
/// A signal is the read side: it can be iterated, merged and handed on, and cannot be fired. ``SignalSource`` and
/// ``Trigger`` are the write sides.
///
/// ```
/// source      --a--b-----c--|
/// subscriber  --a--b-----c--|
/// ```
///
/// **When a subscription begins.** It begins when the iterator is made. What fires later is never lost, also before
/// the first `next()`; what fired earlier is not heard. It ends when the last copy of the iterator goes away; copies
/// share it. To loop with `for await` from a certain moment on, make the iterator at that moment.
///
/// **No queue.** Firings carry nothing, so those that nobody has taken yet are only counted. A slow subscriber costs
/// no memory and hears each firing. One that wants to catch up at once iterates ``coalesced()``, one that wants to
/// know what happened iterates ``causes``.
///
/// **Turns.** All subscribers see one source's firings in one order. When `next()` finds a firing that arrived since
/// it last yielded, it yields once first, so that subscribers on one serial executor take turns, also if their
/// handlers fire again.
///
/// **Cancellation.** When the task in `next()` is cancelled, `next()` returns nil and takes nothing; the
/// subscription lives on, and another task may continue with the iterator. Two concurrent calls of `next()` on one
/// subscription are a programming error and trap.
///
/// **The end.** The sequence ends when all its sources have finished and what is pending has been taken.
public struct Signal: AsyncSequence, Sendable {
    /// A firing carries no value.
    public typealias Element = Void
    /// A signal cannot fail.
    public typealias Failure = Never

    /// The sources, in the order in which they were listed; one that is listed twice is here twice.
    let sources: [Source]
    /// Sources that are opened by who subscribes.
    let openings: [@Sendable () -> Opened]

    init(sources: [Source], openings: [@Sendable () -> Opened] = []) {
        self.sources = sources
        self.openings = openings
    }

    /// A subscription. Copies share it.
    public struct AsyncIterator: AsyncIteratorProtocol {
        let owner: SubscriptionOwner<PendingFiringCount>

        /// Takes one firing; waits for one if there is none.
        ///
        /// - Returns: `nil` at the end, or if the task is cancelled.
        public mutating func next(isolation: isolated (any Actor)? = #isolation) async -> Void? {
            await owner.subscription.next(isolation: isolation)
        }
    }

    /// Subscribes: what fires from now on is heard by the iterator.
    public func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(owner: SubscriptionOwner(self))
    }

    /// A signal that neither fires nor ends.
    public static var never: Signal {
        Signal(sources: [Source(name: "never", now: { .now })])
    }

    /// One signal that fires whenever one of several does, and ends when all have ended.
    ///
    /// ```
    /// a               --a-----a--|
    /// b               ----b---b------|
    /// merge([a, b])   --a-b---(ab)---|
    /// ```
    ///
    /// A merge is one subscription to all the sources, however deep merges are nested: no task, no buffer. A source
    /// that is listed twice counts twice here and once in ``causes``. A merge of none ends at once.
    public static func merge(_ signals: some Sequence<Signal>) -> Signal {
        let signals = Array(signals)
        return Signal(sources: signals.flatMap(\.sources), openings: signals.flatMap(\.openings))
    }

    /// One signal that fires whenever one of several does, and ends when all have ended.
    public static func merge(_ signals: Signal...) -> Signal {
        merge(signals)
    }
}

@available(*, unavailable)
extension Signal.AsyncIterator: Sendable {}
