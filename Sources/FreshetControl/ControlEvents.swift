import Synchronization

/// Publishes the events of the daemon to any number of observers, and keeps the last events for later requests.
///
/// Each observer has a queue of bounded length. An observer that reads too slowly loses its oldest events and gets
/// their number. Publishing never waits.
package final class ControlEvents: Sendable {
    /// The most events in the queue of one observer: some seconds of a busy daemon. All observers share the events, so
    /// a queue costs at most eight kilobytes.
    package static let queueLimit = 512
    /// The most events in the history: a night of twenty pipelines, in about 300 kilobytes.
    package static let memoryLimit = 4_096

    private struct State {
        var memory = EventHistory(limit: memoryLimit)
        var observers: [UInt64: Observer] = [:]
        var nextIdentifier: UInt64 = 0
    }
    private let state = Mutex(State())

    package init() {}

    /// Whether there is an observer.
    package var isObserved: Bool { state.withLock { !$0.observers.isEmpty } }

    /// Publishes an event to all observers and adds it to the history. May be called from any thread; all observers see
    /// the events in the same order.
    package func publish(_ event: ControlEvent) {
        let waiters = state.withLock { state -> [CheckedContinuation<Void, Never>] in
            state.memory.append(event)
            if state.observers.isEmpty { return [] }
            // Made for the first observer that selects the event.
            var shared: SharedEvent?
            return state.observers.values.compactMap { observer in
                guard observer.isSelected(event) else { return nil }
                let event = shared ?? SharedEvent(event)
                shared = event
                return observer.add(event)
            }
        }
        for waiter in waiters { waiter.resume() }
    }

    /// Adds an event to the history without publishing it, such as a fact that has not changed since the start.
    package func remember(_ event: ControlEvent) {
        state.withLock { $0.memory.append(event) }
    }

    /// A part of the history, oldest event first. A reader takes one page after the other, so a slow reader keeps no
    /// events.
    package struct Page: Sendable {
        package var events: [ControlEvent]
        /// The number of the page's first event: a later one than requested if the requested event has been dropped.
        package var start: Int
        /// The number of the event after the page's last one.
        package var next: Int
    }

    /// The numbers of the events in the history, the time of the oldest event, and whether no event has been dropped.
    package var remembered: (numbers: Range<Int>, oldest: Int64?, isWhole: Bool) {
        state.withLock { ($0.memory.numbers, $0.memory.oldest, $0.memory.isWhole) }
    }

    /// The events from this number on, at most `limit`, as far as they are in the history.
    package func page(from number: Int, limit: Int) -> Page {
        state.withLock { $0.memory.page(from: number, limit: limit) }
    }

    /// Observes the events that are published from now on, until the observation is released.
    ///
    /// - Parameter isSelected: whether an event goes to the queue. The publisher calls it, so it must be fast.
    package func observe(_ isSelected: @escaping @Sendable (ControlEvent) -> Bool = { _ in true }) -> Observation {
        let observer = Observer(isSelected)
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

    /// The events of one observer; observing ends when the object is released.
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

        /// The next event, or an event `skipped` in place of lost events; nil if the task is cancelled. One caller at a
        /// time.
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
    /// Whether an event goes to the queue.
    let isSelected: @Sendable (ControlEvent) -> Bool

    init(_ isSelected: @escaping @Sendable (ControlEvent) -> Bool) { self.isSelected = isSelected }

    /// Adds an event to the queue.
    ///
    /// - Returns: the reader to resume, if it waits.
    func add(_ event: SharedEvent) -> CheckedContinuation<Void, Never>? {
        state.withLock { state in
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

/// An event that the queues of several observers share.
final class SharedEvent: Sendable {
    let event: ControlEvent

    init(_ event: ControlEvent) { self.event = event }
}

/// The queue of one observer: when it is full, the oldest event is dropped and counted.
struct EventQueue {
    let limit: Int
    private var events: [SharedEvent] = []
    private var head = 0
    private var skipped: Int64 = 0

    init(limit: Int) { self.limit = limit }

    var count: Int { events.count - head }
    var isEmpty: Bool { count == 0 }

    mutating func append(_ event: SharedEvent) {
        if count == limit {
            head += 1
            skipped += 1
        }
        // The memory of taken events is reused once they are half of all events.
        if head > limit {
            events.removeFirst(head)
            head = 0
        }
        events.append(event)
    }

    /// Takes the oldest event. Lost events are reported before it, with the time of the oldest event that is left.
    mutating func popFirst() -> ControlEvent? {
        guard head < events.count else { return nil }
        if skipped > 0 {
            defer { skipped = 0 }
            return .skipped(skipped, at: events[head].event.at)
        }
        defer {
            head += 1
            if head == events.count {
                events.removeAll(keepingCapacity: true)
                head = 0
            }
        }
        return events[head].event
    }
}
