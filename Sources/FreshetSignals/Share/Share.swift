/// How long a shared upstream iteration lives.
public enum ShareLifetime: Sendable {
    /// As long as there is a subscriber. When the last subscriber leaves, the upstream is cancelled and its elements
    /// are discarded. The next subscriber starts a new iteration.
    case connected
    /// From the first subscriber on, as long as the shared sequence or a subscriber exists. Without a subscriber the
    /// upstream stays subscribed, and no element is requested. Its end, or its failure, is kept and replayed, too.
    case forever
}

extension AsyncSequence where Self: Sendable, Element: Sendable {
    /// Shares one iteration of the sequence between all subscribers.
    ///
    /// ```
    /// upstream                  -a-b-c-d-|
    /// share(replaying: 1)  1st  -a-b-c-d-|
    ///                      2nd      (bc)-d-|      subscribed between b and c; replaying: 1
    /// ```
    ///
    /// Copies of the result share the iteration; each call of `share` makes a separate one.
    ///
    /// - **Start.** The first subscriber, that is the first iterator, subscribes to the upstream; its first `next()`
    ///   requests the first element. A new subscriber gets the last `count` elements, then the following ones. A
    ///   subscriber after the end gets the last elements and the end, as long as they are kept.
    /// - **Back-pressure.** An element of the upstream is requested when a subscriber waits for one, and when all
    ///   subscribers that waited for the previous one have taken it. A subscriber that is fast enough misses no
    ///   element. A slow subscriber loses its oldest elements when more than `max(count, 1)` of them wait.
    /// - **Errors.** A failure reaches each subscriber once, after the elements before it.
    /// - **Cancellation.** A cancelled `next()` ends its subscription. If that was the last subscription, and the
    ///   lifetime is ``ShareLifetime/connected``, it returns nil when the upstream has ended. The iteration of the next
    ///   subscriber starts when the previous one has ended.
    /// - **Cost.** One task for all subscribers, and memory for `max(count, 1)` elements. The time to deliver an
    ///   element is linear in the number of subscribers.
    ///
    /// The upstream's iterator is made under a lock: making it must not subscribe to the shared sequence itself.
    ///
    /// - Parameters:
    ///   - count: How many of the last elements a new subscriber gets.
    ///   - lifetime: How long the iteration of the upstream lives.
    public func share(
        replaying count: Int, while lifetime: ShareLifetime = .connected
    ) -> some AsyncSequence<Element, Failure> & Sendable {
        Share(owner: ShareOwner(ShareStorage(self, replaying: count, while: lifetime)))
    }
}

private struct Share<Base: AsyncSequence & Sendable>: AsyncSequence, Sendable where Base.Element: Sendable {
    typealias Element = Base.Element
    typealias Failure = Base.Failure

    let owner: ShareOwner<Base>

    func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(reader: ShareReader(owner))
    }

    struct AsyncIterator: AsyncIteratorProtocol {
        let reader: ShareReader<Base>

        mutating func next(isolation: isolated (any Actor)? = #isolation) async throws(Failure) -> Element? {
            try await reader.next(isolation: isolation)
        }
    }
}

@available(*, unavailable)
extension Share.AsyncIterator: Sendable {}

/// The part of the storage that the copies of the sequence and its readers hold: the upstream stops with the last of
/// them.
private final class ShareOwner<Base: AsyncSequence & Sendable>: Sendable where Base.Element: Sendable {
    let storage: ShareStorage<Base>

    init(_ storage: ShareStorage<Base>) {
        self.storage = storage
    }

    deinit {
        storage.close()
    }
}

/// The part of a subscription that its iterators hold: the subscription ends with the last copy.
private final class ShareReader<Base: AsyncSequence & Sendable>: Sendable where Base.Element: Sendable {
    private let owner: ShareOwner<Base>
    private let key: ShareStorage<Base>.Machine.Key

    init(_ owner: ShareOwner<Base>) {
        self.owner = owner
        key = owner.storage.subscribe()
    }

    deinit {
        owner.storage.leave(key)
    }

    func next(isolation: isolated (any Actor)?) async throws(Base.Failure) -> Base.Element? {
        try await owner.storage.next(key, isolation: isolation)
    }
}
