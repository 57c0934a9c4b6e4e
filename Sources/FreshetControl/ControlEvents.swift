import Synchronization

/// What happens in the daemon, for any number of observers: each has a queue of bounded length, and one that reads too
/// slowly loses its oldest events and is told how many. The last events are remembered, for who asks later.
///
/// Publishing never waits.
package final class ControlEvents: Sendable {
    /// Events kept for a slow observer: some seconds of a busy daemon, and at most a few hundred kilobytes.
    package static let queueLimit = 512
    /// Events that are remembered: a night of twenty pipelines, in about two megabytes.
    package static let memoryLimit = 4_096

    private struct State {
        var memory = EventHistory(limit: memoryLimit)
        var observers: [UInt64: Observer] = [:]
        var nextIdentifier: UInt64 = 0
    }
    private let state = Mutex(State())

    package init() {}

    /// Whether anybody listens.
    package var isObserved: Bool { state.withLock { !$0.observers.isEmpty } }

    /// Tells all observers, and remembers it. May be called from any thread; observers see events in one order.
    package func publish(_ event: ControlEvent) {
        let waiters = state.withLock { state in
            state.memory.append(event)
            return state.observers.values.compactMap { $0.add(event) }
        }
        for waiter in waiters { waiter.resume() }
    }

    /// Remembers what is no news to who observes, such as a fact that was so from the beginning.
    package func remember(_ event: ControlEvent) {
        state.withLock { $0.memory.append(event) }
    }

    /// What is remembered, oldest first.
    package func recent() -> (events: [ControlEvent], isWhole: Bool) {
        state.withLock { ($0.memory.events, $0.memory.isWhole) }
    }

    /// Observes what is published from now on, until the observation is released.
    ///
    /// - Parameter isWanted: what is not wanted takes no room in the queue. It is called by who publishes, and is to be
    ///   quick.
    package func observe(_ isWanted: @escaping @Sendable (ControlEvent) -> Bool = { _ in true }) -> Observation {
        let observer = Observer(isWanted)
        let identifier = state.withLock { state in
            state.nextIdentifier += 1
            state.observers[state.nextIdentifier] = observer
            return state.nextIdentifier
        }
        return Observation(events: self, observer: observer, identifier: identifier)
    }

    fileprivate func remove(_ identifier: UInt64) {
        _ = state.withLock { $0.observers.removeValue(forKey: identifier) }
    }

    /// One observer's view; ends when it is released.
    package final class Observation: Sendable {
        private let events: ControlEvents
        fileprivate let observer: Observer
        private let identifier: UInt64

        fileprivate init(events: ControlEvents, observer: Observer, identifier: UInt64) {
            self.events = events
            self.observer = observer
            self.identifier = identifier
        }

        deinit { events.remove(identifier) }

        /// The next event, or `skipped` where some were lost; nil when the task is cancelled. One caller at a time.
        package func next() async -> ControlEvent? {
            await observer.next()
        }
    }
}

/// A bounded queue with one reader.
private final class Observer: Sendable {
    private struct State {
        var queue = EventQueue(limit: ControlEvents.queueLimit)
        var waiter: CheckedContinuation<Void, Never>?
        var cancelled = false
    }
    private let state = Mutex(State())
    private let isWanted: @Sendable (ControlEvent) -> Bool

    init(_ isWanted: @escaping @Sendable (ControlEvent) -> Bool) { self.isWanted = isWanted }

    func add(_ event: ControlEvent) -> CheckedContinuation<Void, Never>? {
        guard isWanted(event) else { return nil }
        return state.withLock { state in
            state.queue.append(event)
            return state.waiter.take()
        }
    }

    func next() async -> ControlEvent? {
        await withTaskCancellationHandler {
            while true {
                if let event = state.withLock({ $0.queue.popFirst() }) { return event }
                if Task.isCancelled { return nil }
                await withCheckedContinuation { continuation in
                    let isReady = state.withLock { state in
                        if !state.queue.isEmpty || state.cancelled { return true }
                        state.waiter = continuation
                        return false
                    }
                    if isReady { continuation.resume() }
                }
            }
        } onCancel: {
            let waiter = state.withLock { state in
                state.cancelled = true
                return state.waiter.take()
            }
            waiter?.resume()
        }
    }
}

/// The last events, in a ring that grows with them up to its limit.
struct EventHistory {
    let limit: Int
    private var ring: [ControlEvent] = []
    /// Where the oldest is, once the ring is full.
    private var head = 0
    /// Nothing was forgotten.
    private(set) var isWhole = true

    init(limit: Int) { self.limit = limit }

    /// Oldest first.
    var events: [ControlEvent] { head == 0 ? ring : Array(ring[head...] + ring[..<head]) }

    mutating func append(_ event: ControlEvent) {
        if isToldByRun(event) { return }
        var event = event
        // The run has its number; the rest is large and can be asked for.
        event.generation = nil
        guard ring.count == limit else { return ring.append(event) }
        isWhole = false
        ring[head] = event
        head = (head + 1) % limit
    }

    /// That a run goes on, or that all is well after it, its own events tell.
    private func isToldByRun(_ event: ControlEvent) -> Bool {
        guard event.kind == .state, event.detail == nil else { return false }
        if event.state == .loading { return true }
        guard event.state == .loaded, let last = ring.isEmpty ? nil : ring[(head + ring.count - 1) % ring.count] else {
            return false
        }
        return last.kind == .runEnded && last.pipeline == event.pipeline
    }
}

/// The queue of one observer: when it is full the oldest event goes, and what is lost is counted.
struct EventQueue {
    let limit: Int
    private var events: [ControlEvent] = []
    private var head = 0
    private var skipped: Int64 = 0

    init(limit: Int) { self.limit = limit }

    var count: Int { events.count - head }
    var isEmpty: Bool { count == 0 }

    mutating func append(_ event: ControlEvent) {
        if count == limit {
            head += 1
            skipped += 1
        }
        // The space of what was taken is used again once it is half of all.
        if head > limit {
            events.removeFirst(head)
            head = 0
        }
        events.append(event)
    }

    /// Takes the oldest event; what was lost before it is reported first, dated as the oldest that is left.
    mutating func popFirst() -> ControlEvent? {
        guard head < events.count else { return nil }
        if skipped > 0 {
            defer { skipped = 0 }
            return .skipped(skipped, at: events[head].at)
        }
        defer {
            head += 1
            if head == events.count {
                events.removeAll(keepingCapacity: true)
                head = 0
            }
        }
        return events[head]
    }
}
