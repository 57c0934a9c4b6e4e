import Synchronization

/// What a subscription receives, in the order of the server.
public enum NATSDelivery: Hashable, Sendable {
    case message(NATSMessage)
    /// So many messages were dropped here: the buffer was full because its reader is slow, or the messages were longer
    /// than ``NATSLimits/payload`` or had malformed headers.
    case dropped(UInt64)
    /// The connection was made again. Messages that were sent meanwhile are lost.
    case resubscribed
}

/// The messages of one subscription between the loop and their reader, up to limits.
final class SubscriptionBuffer: Sendable {
    /// A message, and what happened before it.
    private struct Entry {
        var gap: Gap
        var message: NATSMessage
    }

    /// Losses at one position: a value of constant size, so that losses cannot fill memory.
    private struct Gap {
        var dropped: UInt64 = 0
        var isResubscribed = false

        /// Takes the next delivery for a reader.
        mutating func take() -> NATSDelivery? {
            if dropped > 0 {
                defer { dropped = 0 }
                return .dropped(dropped)
            }
            if isResubscribed {
                isResubscribed = false
                return .resubscribed
            }
            return nil
        }
    }

    private struct State {
        var entries: [Entry] = []
        var head = 0
        var bytes = 0
        /// What happened after the last entry.
        var gap = Gap()
        var end: Result<Void, NATSError>?
        var waiter: CheckedContinuation<Void, Never>?

        var hasNext: Bool { entries.count > head || gap.dropped > 0 || gap.isResubscribed || end != nil }
    }

    let limits: NATSBufferLimits
    private let state = Mutex(State())

    init(limits: NATSBufferLimits) { self.limits = limits }

    /// The bytes of the messages that wait for the reader.
    var bufferedBytes: Int { state.withLock { $0.bytes } }

    /// Adds a message, or drops and counts it if it does not fit.
    func add(_ message: NATSMessage) {
        change { state in
            let weight = message.weight
            guard state.entries.count - state.head < limits.messages, weight <= limits.bytes - state.bytes else {
                state.gap.dropped += 1
                return
            }
            state.bytes += weight
            state.entries.append(Entry(gap: state.gap, message: message))
            state.gap = Gap()
        }
    }

    /// Counts a message that cannot be used.
    func drop() { change { $0.gap.dropped += 1 } }

    /// The connection was made again.
    func resubscribed() { change { $0.gap.isResubscribed = true } }

    /// Ends the subscription; the reader still gets what is in the buffer.
    func finish(_ end: Result<Void, NATSError>) {
        change { state in
            if state.end == nil { state.end = end }
        }
    }

    private func change(_ body: (inout State) -> Void) {
        let waiter = state.withLock { state in
            body(&state)
            defer { state.waiter = nil }
            return state.waiter
        }
        waiter?.resume()
    }

    /// The next delivery; nil: the subscription has ended, the task was cancelled, or another task waits.
    func next() async throws(NATSError) -> NATSDelivery? {
        while true {
            if let result = take() { return try result.get() }
            let isWaiting = await withTaskCancellationHandler {
                await wait()
            } onCancel: {
                change { _ in }
            }
            guard isWaiting, !Task.isCancelled else { return nil }
        }
    }

    /// Returns false if another task waits.
    private func wait() async -> Bool {
        nonisolated(unsafe) var isFirst = true
        await withCheckedContinuation { (waiter: CheckedContinuation<Void, Never>) in
            let mustWait = state.withLock { state in
                isFirst = state.waiter == nil
                guard isFirst, !state.hasNext, !Task.isCancelled else { return false }
                state.waiter = waiter
                return true
            }
            if !mustWait { waiter.resume() }
        }
        return isFirst
    }

    /// Nil: there is nothing yet.
    private func take() -> Result<NATSDelivery?, NATSError>? {
        state.withLock { state in
            guard state.head < state.entries.count else {
                if let delivery = state.gap.take() { return .success(delivery) }
                return state.end.map { end in end.map { nil } }
            }
            if let delivery = state.entries[state.head].gap.take() { return .success(delivery) }
            let message = state.entries[state.head].message
            state.bytes -= message.weight
            state.head += 1
            // The memory of messages that were taken: each is moved at most once.
            if state.head == state.entries.count {
                state.entries.removeAll(keepingCapacity: state.entries.capacity <= 16)
                state.head = 0
            } else if state.head > state.entries.count / 2 {
                state.entries.removeFirst(state.head)
                state.head = 0
            }
            return .success(.message(message))
        }
    }
}

/// A subscription, which continues over reconnects until it is released or ``cancel()`` is called.
///
/// ```swift
/// for try await delivery in try await client.subscribe(pattern) { … }
/// ```
///
/// One task at a time reads it; a second one that waits at the same time gets the end.
public final class NATSSubscription: AsyncSequence, Sendable {
    public typealias Element = NATSDelivery
    public typealias Failure = NATSError

    public let pattern: NATSSubjectPattern
    let buffer: SubscriptionBuffer
    private let onCancel: @Sendable () -> Void

    init(_ pattern: NATSSubjectPattern, _ buffer: SubscriptionBuffer, onCancel: @escaping @Sendable () -> Void) {
        self.pattern = pattern
        self.buffer = buffer
        self.onCancel = onCancel
    }

    /// The next delivery. Nil: the subscription has ended, or the task was cancelled.
    ///
    /// - Throws: ``NATSError/notPermitted(_:)`` if the server does not permit the subscription.
    public func next() async throws(NATSError) -> NATSDelivery? { try await buffer.next() }

    /// Ends the subscription.
    public func cancel() {
        buffer.finish(.success(()))
        onCancel()
    }

    deinit { onCancel() }

    public struct AsyncIterator: AsyncIteratorProtocol {
        let subscription: NATSSubscription

        public mutating func next() async throws(NATSError) -> NATSDelivery? { try await subscription.next() }

        public mutating func next(
            isolation actor: isolated (any Actor)?
        ) async throws(NATSError) -> NATSDelivery? {
            try await subscription.next()
        }
    }

    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(subscription: self) }
}
