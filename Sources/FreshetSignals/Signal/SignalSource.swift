/// The write side of one signal.
///
/// ```swift
/// let network = SignalSource("network")
/// let subscription = network.signal.makeAsyncIterator()
/// network.fire("default route via enp3s0")
/// ```
///
/// A source that goes away without ``finish()`` is silent from then on; its subscribers go on waiting.
public final class SignalSource: Sendable {
    private let source: Source

    /// - Parameters:
    ///   - name: What occurrences are named after; for people and logs.
    ///   - now: The clock that occurrences are stamped with. It is called from ``fire(_:)``, if somebody listens to
    ///     ``Signal/causes``, and must not fire the same source.
    public init(_ name: String, now: @escaping @Sendable () -> ContinuousClock.Instant = { .now }) {
        source = Source(name: name, now: now)
    }

    /// The read side, to be handed to whoever listens.
    public var signal: Signal {
        Signal(sources: [source])
    }

    /// Fires: all who are subscribed now will hear it.
    ///
    /// It may be called from any thread, waits for no subscriber and costs as much as there are subscribers. When it
    /// returns the firing is recorded with all of them.
    ///
    /// - Parameter detail: What happened, for people.
    /// - Returns: How many live subscriptions it reached; 0 after ``finish()``. One that lists the source twice is one.
    @discardableResult
    public func fire(_ detail: String? = nil) -> Int {
        source.fire(detail)
    }

    /// Ends the signal: what is pending is still delivered, later firings reach nobody.
    ///
    /// From any thread; a second call has no effect.
    public func finish() {
        source.finish()
    }
}
