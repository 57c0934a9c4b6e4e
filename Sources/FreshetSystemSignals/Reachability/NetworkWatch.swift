public import FreshetSignals

/// One target that a ``NetworkMonitor`` follows while this object is alive.
public final class NetworkWatch: Sendable {
    public let target: NetworkTarget
    /// `network` for this target: it became reachable, or is reached on another path.
    public let signal: Signal
    let current: CurrentValue<NetworkFact>
    private let onEnd: @Sendable () -> Void

    init(_ target: NetworkTarget, _ fact: NetworkFact, _ signal: Signal, onEnd: @escaping @Sendable () -> Void) {
        self.target = target
        self.signal = signal
        current = CurrentValue(fact)
        self.onEnd = onEnd
    }

    deinit { onEnd() }

    /// The current fact.
    public var fact: NetworkFact { current.value }

    /// The current fact, then each change, including losses; a slow reader gets the newest.
    public var facts: some AsyncSequence<NetworkFact, Never> & Sendable { current }

    func set(_ fact: NetworkFact) { current.value = fact }
}
