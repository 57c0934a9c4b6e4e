/// What all sides of a signal share: its name, its clock, its listeners.
///
/// A firing costs as much as there are listeners, and never waits for one.
final class Source: Sendable {
    typealias Key = OrderedTable<Registration>.Key

    /// A listener, and the number under which it knows this source.
    struct Registration: Sendable {
        let listener: any Listener
        let index: Int
    }

    private struct State {
        var machine = SourceStateMachine()
        var listeners = OrderedTable<Registration>()
        /// How many of the listeners read occurrences.
        var readers = 0
    }

    private let name: String
    private let now: @Sendable () -> ContinuousClock.Instant
    private let onDeinit: (@Sendable () -> Void)?
    private let state = Lock(State())

    /// - Parameter onDeinit: Called when nobody can hear this source any more.
    init(
        name: String, now: @escaping @Sendable () -> ContinuousClock.Instant, onDeinit: (@Sendable () -> Void)? = nil
    ) {
        self.name = name
        self.now = now
        self.onDeinit = onDeinit
    }

    deinit {
        onDeinit?()
    }

    /// Adds a listener, or tells it at once that this source has finished and returns nil.
    func add(_ listener: any Listener, as index: Int) -> Key? {
        let (key, wake) = state.withLock { state -> (Key?, Waiter?) in
            guard state.machine.isOpen else { return (nil, listener.sourceFinished()) }
            if listener.readsOccurrences { state.readers += 1 }
            return (state.listeners.append(Registration(listener: listener, index: index)), nil)
        }
        wake?.resume()
        return key
    }

    func remove(_ key: Key) {
        // Released after the lock: what a deinitializer does is not ours to know.
        let removed = state.withLock { state in
            let removed = state.listeners.remove(key)
            if let removed, removed.listener.readsOccurrences { state.readers -= 1 }
            return removed
        }
        _ = removed
    }

    func fire(_ detail: String?) -> Int {
        let (reached, wakes) = state.withLock { state -> (Int, Wakes) in
            var wakes = Wakes()
            // The clock is read under the lock, so that a later number never has an earlier instant.
            guard let number = state.machine.fire() else { return (0, wakes) }
            guard state.listeners.count > 0 else { return (0, wakes) }
            // Most listeners only count, and to read the clock would be half of what a firing costs.
            let occurrence =
                state.readers > 0 ? Occurrence(signal: name, number: number, instant: now(), detail: detail) : nil
            state.listeners.forEach { wakes.add($0.listener.record(occurrence, source: $0.index)) }
            return (state.listeners.count, wakes)
        }
        wakes.resumeAll()
        return reached
    }

    func finish() {
        let (listeners, wakes) = state.withLock { state -> ([Registration], Wakes) in
            var wakes = Wakes()
            guard state.machine.finish() else { return ([], wakes) }
            let listeners = state.listeners.removeAll()
            for registration in listeners {
                wakes.add(registration.listener.sourceFinished())
            }
            return (listeners, wakes)
        }
        wakes.resumeAll()
        _ = listeners
    }
}

/// The life of a source: it fires, counted, until it has finished.
struct SourceStateMachine {
    private(set) var isOpen = true
    private var firings: UInt64 = 0

    /// Returns the firing's number, or nil if the source has finished.
    mutating func fire() -> UInt64? {
        guard isOpen else { return nil }
        firings += 1
        return firings
    }

    /// Returns false if it had finished before.
    mutating func finish() -> Bool {
        defer { isOpen = false }
        return isOpen
    }
}
