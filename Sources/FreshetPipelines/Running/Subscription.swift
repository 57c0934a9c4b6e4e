internal import FreshetSignals

/// A subscription that is made now and iterated later, by the one who takes it.
final class Subscription: Sendable {
    typealias Iterator = Emitter<[Cause], Never>.AsyncIterator

    private let iterator: Lock<Iterator?>

    init(_ signal: Signal) {
        iterator = Lock(Emitter(signal.causes).makeAsyncIterator())
    }

    /// Nil from the second time on.
    func take() -> sending Iterator? {
        iterator.withLock { iterator in
            let taken = iterator
            iterator = nil
            return taken
        }
    }
}
