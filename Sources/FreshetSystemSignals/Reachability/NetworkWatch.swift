public import FreshetSignals
import Synchronization

/// One target that a ``NetworkMonitor`` follows while this object is alive.
public final class NetworkWatch: Sendable {
    public let target: NetworkTarget
    /// `network` for this target: it became reachable, or is reached on another path.
    public let signal: Signal
    private let newest: Mutex<NetworkFact>
    /// What the readers of ``facts`` got.
    let current: CurrentValue<NetworkFact>
    private let observers = Mutex<[WeakObserver]>([])
    private let onEnd: @Sendable () -> Void

    init(_ target: NetworkTarget, _ fact: NetworkFact, _ signal: Signal, onEnd: @escaping @Sendable () -> Void) {
        self.target = target
        self.signal = signal
        newest = Mutex(fact)
        current = CurrentValue(fact)
        self.onEnd = onEnd
    }

    deinit { onEnd() }

    /// The current fact.
    public var fact: NetworkFact { newest.withLock { $0 } }

    /// The current fact, then each change, including losses; a slow reader gets the newest.
    public var facts: some AsyncSequence<NetworkFact, Never> & Sendable { current }

    func set(_ fact: NetworkFact) { newest.withLock { $0 = fact } }

    /// Passes the current fact to the readers of ``facts``.
    func deliver() { current.value = fact }

    private struct WeakObserver {
        weak var observation: NetworkObservation?
    }

    /// Calls a closure with each change: the fact together with the firings of the signal because of it. ``facts`` and
    /// ``signal`` are two sequences, whose readers may get the one before the other.
    ///
    /// - Parameter changed: Gets the fact, and the firings if the signal fired. It is called on the loop's thread after
    ///   the signals have fired, and must not block.
    /// - Returns: The observation, which ends when this object is released.
    package func observe(_ changed: @escaping @Sendable (NetworkFact, Cause?) -> Void) -> NetworkObservation {
        let observation = NetworkObservation(signal, changed)
        observers.withLock { observers in
            observers.removeAll { $0.observation == nil }
            observers.append(WeakObserver(observation: observation))
        }
        return observation
    }

    /// Calls the observers. The fact is set, and the signal has fired if it fires for this change.
    func publish() {
        let observations = observers.withLock { $0.compactMap(\.observation) }
        guard !observations.isEmpty else { return }
        let fact = fact
        for observation in observations { observation.publish(fact) }
    }
}

/// An observation of ``NetworkWatch/observe(_:)``; it ends when this object is released.
package final class NetworkObservation: Sendable {
    /// The firings since the last call of the closure.
    private final class Firings: Sendable {
        private let cause = Mutex<Cause?>(nil)

        func record(_ occurrence: Occurrence) {
            cause.withLock { cause in
                cause = Cause(first: cause?.first ?? occurrence, last: occurrence, count: (cause?.count ?? 0) + 1)
            }
        }

        func take() -> Cause? {
            cause.withLock { cause in
                defer { cause = nil }
                return cause
            }
        }
    }

    private let changed: @Sendable (NetworkFact, Cause?) -> Void
    private let firings = Firings()
    private let occurrences: SignalObservation

    fileprivate init(_ signal: Signal, _ changed: @escaping @Sendable (NetworkFact, Cause?) -> Void) {
        self.changed = changed
        occurrences = signal.observe { [firings] in firings.record($0) }
    }

    fileprivate func publish(_ fact: NetworkFact) { changed(fact, firings.take()) }
}
