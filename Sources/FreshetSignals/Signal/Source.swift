/// The common state of all sides of a signal: its name, its clock, its listeners.
///
/// A firing takes time proportional to the number of listeners, and never waits for one.
final class Source: Sendable {
    typealias Key = OrderedTable<Registration>.Key

    /// A listener, and the index under which it records this source.
    struct Registration: Sendable {
        let listener: any Listener
        let index: Int
    }

    private struct State {
        var machine = SourceStateMachine()
        var listeners = OrderedTable<Registration>()
        /// The number of listeners that read occurrences.
        var readers = 0
    }

    private let name: String
    private let now: @Sendable () -> ContinuousClock.Instant
    private let onDeinit: (@Sendable () -> Void)?
    private let state = Lock(State())

    /// - Parameter onDeinit: Called when the source is released, that is when no subscriber can receive it any more.
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

    /// Adds a listener. If the source has finished, it calls the listener's `sourceFinished` immediately and returns
    /// nil.
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
        // Release it after the lock: its deinitializer may run arbitrary code.
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
            // Read the clock under the lock, so that a later number never has an earlier instant.
            guard let number = state.machine.fire() else { return (0, wakes) }
            guard state.listeners.count > 0 else { return (0, wakes) }
            // Most listeners only count, and reading the clock would be half of the cost of a firing.
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

/// The state of a source: it numbers its firings until it has finished.
struct SourceStateMachine {
    private(set) var isOpen = true
    private var firings: UInt64 = 0

    /// Returns the firing's number, or nil if the source has finished.
    mutating func fire() -> UInt64? {
        guard isOpen else { return nil }
        firings += 1
        return firings
    }

    /// Returns false if the source had finished before.
    mutating func finish() -> Bool {
        defer { isOpen = false }
        return isOpen
    }
}
