/// How long a shared upstream iteration lives.
public enum ShareLifetime: Sendable {
    /// As long as somebody is subscribed. With the last subscriber the upstream is cancelled and its elements are
    /// forgotten; the next one begins anew.
    case connected
    /// From the first subscriber on, as long as the shared sequence or a subscriber exists. Between subscribers the
    /// upstream stays subscribed and is not asked. Its end, or failure, is kept and replayed too.
    case forever
}

extension AsyncSequence where Self: Sendable, Element: Sendable {
    /// One iteration of a sequence for all who listen.
    ///
    /// ```
    /// upstream                  -a-b-c-d-|
    /// share(replaying: 1)  1st  -a-b-c-d-|
    ///                      2nd      (bc)-d-|      subscribed between b and c; replaying: 1
    /// ```
    ///
    /// Copies of the result share the iteration; each call of `share` makes one of its own.
    ///
    /// - **Start.** The first subscriber, which is the first iterator that is made, subscribes the upstream; the first
    ///   `next()` asks it. A new subscriber gets the last `count` elements, then those to come. One that comes after the
    ///   end, while it is kept, gets the last elements and the end.
    /// - **Back-pressure.** The upstream is asked when somebody waits for an element, and when all who waited have
    ///   taken the one before. A subscriber that asks in time misses nothing; a slow one loses its oldest elements when
    ///   more than `count`, or one if that is less, wait for it.
    /// - **Errors.** A failure reaches all subscribers, each after the elements before it, and each once.
    /// - **Cancellation.** A cancelled `next()` ends its subscription. If that was the last one, and the lifetime is
    ///   ``ShareLifetime/connected``, it returns nil when the upstream has ended. The next subscriber's iteration
    ///   starts when the one before it has ended.
    /// - **Cost.** One task for all; the memory of `count` elements, or one. Delivering an element is linear in the
    ///   number of subscribers.
    ///
    /// The upstream's iterator is made under a lock: making it must not subscribe the shared sequence itself.
    ///
    /// - Parameters:
    ///   - count: How many elements a new subscriber gets.
    ///   - lifetime: How long the upstream iteration lives.
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

/// The half of the storage that the sequence's copies and its readers hold: with the last of them the upstream stops.
private final class ShareOwner<Base: AsyncSequence & Sendable>: Sendable where Base.Element: Sendable {
    let storage: ShareStorage<Base>

    init(_ storage: ShareStorage<Base>) {
        self.storage = storage
    }

    deinit {
        storage.close()
    }
}

/// The iterators' half of a subscription: with its last copy the subscription ends.
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
