/// What a reader of a ``CurrentValue`` has seen of it, and the task that asks.
///
/// It is a version, not a queue of values, so a slow reader finds the newest.
struct CurrentValueReader<Waiter> {
    /// The version that it took last; 0 if none.
    fileprivate var seen: UInt64 = 0
    fileprivate var asker = ConsumerStateMachine<Waiter>()
}

/// A value, its version, and its readers.
struct CurrentValueStateMachine<Value, Waiter> {
    typealias Key = OrderedTable<CurrentValueReader<Waiter>>.Key

    /// What a `next()` does with what it found.
    enum TakeAction {
        /// Return this.
        case deliver(Value)
        /// Return nil.
        case end
        /// Sleep, then look again.
        case sleep
    }

    private(set) var value: Value
    private var version: UInt64 = 1
    private(set) var isFinished = false
    private var readers = OrderedTable<CurrentValueReader<Waiter>>()

    init(_ value: Value) {
        self.value = value
    }

    /// How many readers there are.
    var readerCount: Int { readers.count }

    /// A reader subscribes. It has seen nothing, so the present value is its first.
    mutating func subscribe() -> Key {
        readers.append(CurrentValueReader())
    }

    /// A reader went away.
    mutating func unsubscribe(_ key: Key) {
        _ = readers.remove(key)
    }

    /// Changes the value, unless it has finished; `wake` gets those who slept.
    ///
    /// - Returns: What `change` returned, or nil if it was not called.
    mutating func set<Result>(_ change: (inout Value) -> Result, wake: (Waiter) -> Void) -> Result? {
        guard !isFinished else { return nil }
        let result = change(&value)
        version += 1
        wakeAll(wake)
        return result
    }

    /// There will be no further value; `wake` gets those who slept.
    mutating func finish(wake: (Waiter) -> Void) {
        guard !isFinished else { return }
        isFinished = true
        wakeAll(wake)
    }

    /// A `next()` of this reader begins.
    mutating func arrive(_ key: Key) {
        readers.update(key) { $0.asker.arrive() }
    }

    /// A `next()` takes what there is. Unless the action is ``TakeAction/sleep`` it is over with that.
    mutating func take(_ key: Key, isCancelled: Bool) -> TakeAction {
        let action = readers.update(key) { [value, version, isFinished] reader -> TakeAction in
            if isCancelled {
                reader.asker.leave()
                return .end
            }
            if reader.seen != version {
                reader.seen = version
                reader.asker.leave()
                return .deliver(value)
            }
            if isFinished {
                reader.asker.leave()
                return .end
            }
            return .sleep
        }
        // A reader asks while its iterator exists, and so is in the table; gone is gone.
        return action ?? .end
    }

    /// The `next()` falls asleep.
    ///
    /// - Returns: The waiter, if there is something to look at already.
    mutating func sleep(_ key: Key, _ waiter: Waiter) -> Waiter? {
        let refused = readers.update(key) { [version, isFinished] reader -> Waiter? in
            guard reader.seen == version, !isFinished else { return waiter }
            return reader.asker.sleep(waiter)
        }
        return refused ?? nil
    }

    /// The task in `next()` was cancelled.
    mutating func cancel(_ key: Key) -> Waiter? {
        readers.update(key) { $0.asker.cancel() } ?? nil
    }

    private mutating func wakeAll(_ wake: (Waiter) -> Void) {
        readers.updateEach { reader in
            if let waiter = reader.asker.wake() {
                wake(waiter)
            }
        }
    }
}

extension CurrentValueReader: Sendable where Waiter: Sendable {}
extension CurrentValueStateMachine: Sendable where Value: Sendable, Waiter: Sendable {}
