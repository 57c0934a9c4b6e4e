/// The state of one reader of a ``CurrentValue``: the version that it has seen, and the task in `next()`.
///
/// It keeps a version, not a queue of values, so a slow reader gets the newest value.
struct CurrentValueReader<Waiter> {
    /// The version that the reader took last; 0 if it took none.
    fileprivate var seen: UInt64 = 0
    fileprivate var consumerState = ConsumerStateMachine<Waiter>()
}

/// A value, its version, and its readers.
struct CurrentValueStateMachine<Value, Waiter> {
    typealias Key = OrderedTable<CurrentValueReader<Waiter>>.Key

    /// The action of a `next()`.
    enum TakeAction {
        /// Return this.
        case deliver(Value)
        /// Return nil.
        case end
        /// Sleep, then try again.
        case sleep
    }

    private(set) var value: Value
    private var version: UInt64 = 1
    private(set) var isFinished = false
    private var readers = OrderedTable<CurrentValueReader<Waiter>>()

    init(_ value: Value) {
        self.value = value
    }

    /// The number of readers.
    var readerCount: Int { readers.count }

    /// Adds a reader. It has seen no version, so the current value is its first element.
    mutating func subscribe() -> Key {
        readers.append(CurrentValueReader())
    }

    /// Removes a reader.
    mutating func unsubscribe(_ key: Key) {
        _ = readers.remove(key)
    }

    /// Changes the value, unless the sequence has finished; `wake` gets the sleeping readers.
    ///
    /// - Returns: What `change` returned, or nil if it was not called.
    mutating func set<Result>(_ change: (inout Value) -> Result, wake: (Waiter) -> Void) -> Result? {
        guard !isFinished else { return nil }
        let result = change(&value)
        version += 1
        wakeAll(wake)
        return result
    }

    /// Finishes the sequence: there will be no further value. `wake` gets the sleeping readers.
    mutating func finish(wake: (Waiter) -> Void) {
        guard !isFinished else { return }
        isFinished = true
        wakeAll(wake)
    }

    /// A `next()` of this reader begins.
    mutating func arrive(_ key: Key) {
        readers.update(key) { $0.consumerState.arrive() }
    }

    /// Takes the newest value for a `next()`. Every action but ``TakeAction/sleep`` ends that `next()`.
    mutating func take(_ key: Key, isCancelled: Bool) -> TakeAction {
        let action = readers.update(key) { [value, version, isFinished] reader -> TakeAction in
            if isCancelled {
                reader.consumerState.leave()
                return .end
            }
            if reader.seen != version {
                reader.seen = version
                reader.consumerState.leave()
                return .deliver(value)
            }
            if isFinished {
                reader.consumerState.leave()
                return .end
            }
            return .sleep
        }
        // A reader is in the table while its iterator exists. Treat a removed reader as ended.
        return action ?? .end
    }

    /// The `next()` falls asleep.
    ///
    /// - Returns: The waiter, if there already is something to take.
    mutating func sleep(_ key: Key, _ waiter: Waiter) -> Waiter? {
        let refused = readers.update(key) { [version, isFinished] reader -> Waiter? in
            guard reader.seen == version, !isFinished else { return waiter }
            return reader.consumerState.sleep(waiter)
        }
        return refused ?? nil
    }

    /// The task in `next()` was cancelled.
    mutating func cancel(_ key: Key) -> Waiter? {
        readers.update(key) { $0.consumerState.cancel() } ?? nil
    }

    private mutating func wakeAll(_ wake: (Waiter) -> Void) {
        readers.updateEach { reader in
            if let waiter = reader.consumerState.wake() {
                wake(waiter)
            }
        }
    }
}

extension CurrentValueReader: Sendable where Waiter: Sendable {}
extension CurrentValueStateMachine: Sendable where Value: Sendable, Waiter: Sendable {}
