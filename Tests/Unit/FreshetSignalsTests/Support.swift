import FreshetSignals

/// What happened, in order.
final class Log: Sendable {
    private let storage = Lock<[String]>([])

    var entries: [String] { storage.withLock { $0 } }

    func add(_ entry: String) {
        storage.withLock { $0.append(entry) }
    }
}

/// Hands a value that is not Sendable from one task to another.
///
/// `@unchecked Sendable`: the value is reached under the lock alone, and a test that hands it over no longer uses it.
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
