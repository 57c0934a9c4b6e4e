/// The write side of one signal.
///
/// ```swift
/// let network = SignalSource("network")
/// let subscription = network.signal.makeAsyncIterator()
/// network.fire("default route via enp3s0")
/// ```
///
/// If a source is released without ``finish()``, it does not fire any more, and its subscribers continue to wait.
public final class SignalSource: Sendable {
    private let source: Source

    /// - Parameters:
    ///   - name: The name of its occurrences, for people and logs.
    ///   - now: The clock for the instants of occurrences. ``fire(_:)`` calls it if there is a subscriber of
    ///     ``Signal/causes``. It must not fire the same source.
    public init(_ name: String, now: @escaping @Sendable () -> ContinuousClock.Instant = { .now }) {
        source = Source(name: name, now: now)
    }

    /// The read side of the signal.
    public var signal: Signal {
        Signal(sources: [source])
    }

    /// Fires: all current subscribers receive the firing.
    ///
    /// It may be called from any thread, waits for no subscriber and takes time proportional to the number of
    /// subscribers. When it returns, the firing is recorded for all of them.
    ///
    /// - Parameter detail: A description of the event, for people.
    /// - Returns: The number of live subscriptions that receive the firing; 0 after ``finish()``. A subscription that
    ///   lists the source twice counts once.
    @discardableResult
    public func fire(_ detail: String? = nil) -> Int {
        source.fire(detail)
    }

    /// Ends the signal: pending firings are still delivered, later ones are ignored.
    ///
    /// It may be called from any thread; a second call has no effect.
    public func finish() {
        source.finish()
    }
}
