public import FreshetSignals

/// One target that a ``NetworkMonitor`` follows, for as long as this is kept.
public final class NetworkWatch: Sendable {
    public let target: NetworkTarget
    /// `network` for this target: it became reachable, or is reached by another path.
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

    /// The present state.
    public var fact: NetworkFact { current.value }

    /// The present state first, then what becomes of it, losses included; a slow reader gets the newest.
    public var facts: some AsyncSequence<NetworkFact, Never> & Sendable { current }

    func set(_ fact: NetworkFact) { current.value = fact }
}
