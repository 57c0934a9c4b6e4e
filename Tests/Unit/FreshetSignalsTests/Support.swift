import FreshetSignals
import TestSupport
import Testing

/// A log of events, in order.
final class Log: Sendable {
    private let storage = Lock<[String]>([])

    var entries: [String] { storage.withLock { $0 } }

    func add(_ entry: String) {
        storage.withLock { $0.append(entry) }
    }
}

/// Passes a value that is not Sendable from one task to another.
///
/// `@unchecked Sendable`: the value is only accessed under the lock, and a test that passes it on no longer uses it.
final class Handed<Value>: @unchecked Sendable {
    private struct Slot: @unchecked Sendable {
        var value: Value?
    }

    private let slot: Lock<Slot>

    init(_ value: Value) {
        slot = Lock(Slot(value: value))
    }

    func put(_ value: Value) {
        let incoming = Slot(value: value)
        slot.withLock { $0 = incoming }
    }

    func take() -> Value? {
        slot.withLock { slot -> Slot in
            defer { slot = Slot(value: nil) }
            return slot
        }.value
    }
}

/// Counts from 1.
final class Counter: Sendable {
    private let count = Lock(0)

    var value: Int { count.withLock { $0 } }

    @discardableResult
    func increment() -> Int {
        count.withLock { count in
            count += 1
            return count
        }
    }
}

/// Counts the tokens made from it that are still alive.
final class Token: Sendable {
    private let count = Lock(0)
    private let parent: Token?

    init(_ parent: Token? = nil) {
        self.parent = parent
        parent?.count.withLock { $0 += 1 }
    }

    deinit {
        parent?.count.withLock { $0 -= 1 }
    }

    var children: Int { count.withLock { $0 } }
}

/// A sequence of the results of a closure, until it returns nil.
struct Steps<Element: Sendable>: AsyncSequence, AsyncIteratorProtocol, Sendable {
    typealias Failure = any Error

    let step: @Sendable () async throws -> Element?

    init(_ step: @escaping @Sendable () async throws -> Element?) {
        self.step = step
    }

    func makeAsyncIterator() -> Steps { self }

    mutating func next(isolation: isolated (any Actor)? = #isolation) async throws -> Element? {
        try await step()
    }
}

/// The divisor of large numbers where each step is many times as slow: under the thread sanitizer, whose build has this
/// flag.
#if FRESHET_PTHREAD_LOCKS
    let sanitizerDivisor = 20
#else
    let sanitizerDivisor = 1
#endif
