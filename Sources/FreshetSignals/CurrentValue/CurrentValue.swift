/// A value that may change, and the asynchronous sequence of its changes.
///
/// A new subscriber gets the current value first, then the changes. A subscriber that is slower than the changes gets
/// the newest value; values are not queued. Equal values are not filtered; use `removeDuplicates()` for that.
///
/// ```
/// set            a--b--cde--|
/// fast reader    a--b--cde--|
/// next() asked   ^-----^--^--^
/// slow reader    a-----c--e--|
/// ```
///
/// After ``finish()`` a reader still gets a value that it has not taken, then the end. Copies of an iterator share the
/// subscription. Two concurrent calls of `next()` on one subscription trap. A cancelled `next()` returns nil, takes no
/// value and does not end the subscription.
public final class CurrentValue<Value: Sendable>: AsyncSequence, Sendable {
    /// The values.
    public typealias Element = Value
    /// The sequence cannot fail.
    public typealias Failure = Never

    fileprivate typealias Machine = CurrentValueStateMachine<Value, Waiter>
    private let machine: Lock<Machine>

    /// Makes the sequence with its first value.
    public init(_ value: Value) {
        machine = Lock(Machine(value))
    }

    /// The current value.
    ///
    /// Setting it takes time proportional to the number of subscribers, waits for none of them and is allowed on any
    /// thread. After ``finish()`` setting has no effect. To compute the new value from the old one, use ``update(_:)``:
    /// reading and then setting are two steps.
    public var value: Value {
        get { machine.withLock { $0.value } }
        set {
            // Release the old value after the lock: its deinitializer may run arbitrary code.
            let old = change { value in
                let old = value
                value = newValue
                return old
            }
            _ = old
        }
    }

    /// Changes the value in one atomic step.
    ///
    /// - Parameter body: Changes the current value in place. It runs under a lock: keep it short, and use neither this
    ///   object nor its subscribers in it. It is not called after ``finish()``.
    public func update(_ body: (inout Value) -> Void) {
        _ = change(body)
    }

    /// Ends the sequence. A value that a subscriber has not taken is still delivered to it; later values are ignored.
    public func finish() {
        machine.withLock { machine -> Wakes in
            var wakes = Wakes()
            machine.finish { wakes.add($0) }
            return wakes
        }.resumeAll()
    }

    /// Subscribes. The first element is the current value, or the newest one set before the first `next()`.
    public func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(reader: Reader(of: self))
    }

    /// The number of subscriptions, for tests.
    var readerCount: Int { machine.withLock { $0.readerCount } }

    private func change<Result>(_ body: (inout Value) -> Result) -> Result? {
        var result: Result?
        machine.withLock { machine -> Wakes in
            var wakes = Wakes()
            result = machine.set(body) { wakes.add($0) }
            return wakes
        }.resumeAll()
        return result
    }

    /// A subscription. Copies share it.
    public struct AsyncIterator: AsyncIteratorProtocol {
        fileprivate let reader: Reader

        /// Takes the newest value if this subscription has not taken it yet; otherwise waits for the next one.
        ///
        /// - Returns: `nil` at the end, or if the task is cancelled.
        public mutating func next(isolation: isolated (any Actor)? = #isolation) async -> Value? {
            await reader.next(isolation: isolation)
        }
    }

    /// The part of a subscription that its iterators hold: the subscription ends with the last copy.
    fileprivate final class Reader: Sendable {
        private let current: CurrentValue
        private let key: Machine.Key

        init(of current: CurrentValue) {
            self.current = current
            key = current.machine.withLock { $0.subscribe() }
        }

        deinit {
            current.machine.withLock { [key] in $0.unsubscribe(key) }
        }

        func next(isolation: isolated (any Actor)?) async -> Value? {
            current.machine.withLock { $0.arrive(key) }
            while true {
                let isCancelled = Task.isCancelled
                switch current.machine.withLock({ $0.take(key, isCancelled: isCancelled) }) {
                case .deliver(let value):
                    return value
                case .end:
                    return nil
                case .sleep:
                    await waitUntilResumed(isolation: isolation) { waiter in
                        current.machine.withLock { $0.sleep(key, waiter) }
                    } onCancel: {
                        current.machine.withLock { $0.cancel(key) }
                    }
                }
            }
        }
    }
}

@available(*, unavailable)
extension CurrentValue.AsyncIterator: Sendable {}
