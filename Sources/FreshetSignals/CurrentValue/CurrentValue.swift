/// A value that may change, and the asynchronous sequence of its changes.
///
/// A new subscriber gets the present value first, then the changes. One that is slower than they come gets the
/// newest; values are not queued. Equal values are not filtered: `removeDuplicates()` does that.
///
/// ```
/// set            a--b--cde--|
/// fast reader    a--b--cde--|
/// next() asked   ^-----^--^--^
/// slow reader    a-----c--e--|
/// ```
///
/// After ``finish()`` a reader still gets a value that it has not taken, then the end. Copies of an iterator share the
/// subscription. Two concurrent calls of `next()` on one subscription trap; a cancelled `next()` returns nil, takes
/// nothing and does not end the subscription.
public final class CurrentValue<Value: Sendable>: AsyncSequence, Sendable {
    /// The values.
    public typealias Element = Value
    /// The sequence cannot fail.
    public typealias Failure = Never

    fileprivate typealias Machine = CurrentValueStateMachine<Value, Waiter>
    private let machine: Lock<Machine>

    /// Starts with a value, which a subscriber gets first.
    public init(_ value: Value) {
        machine = Lock(Machine(value))
    }

    /// The present value.
    ///
    /// Setting it costs as much as there are subscribers, waits for none and may be done from any thread. After
    /// ``finish()`` setting has no effect. To change a value by what it was, use ``update(_:)``: reading and then
    /// setting are two steps.
    public var value: Value {
        get { machine.withLock { $0.value } }
        set {
            // The old value is released after the lock: what its deinitializer does is not ours to know.
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
    /// - Parameter body: Gets the present value to change. It runs under a lock: keep it short, and use neither this
    ///   object nor its subscribers in it. It is not called after ``finish()``.
    public func update(_ body: (inout Value) -> Void) {
        _ = change(body)
    }

    /// Ends the sequence: a value that a subscriber has not taken is still delivered to it, later ones are ignored.
    public func finish() {
        machine.withLock { machine -> Wakes in
            var wakes = Wakes()
            machine.finish { wakes.add($0) }
            return wakes
        }.resumeAll()
    }

    /// Subscribes. The present value, or one set before the first `next()`, is the first element.
    public func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(reader: Reader(of: self))
    }

    /// How many subscriptions there are, for tests.
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

        /// The newest value, if it has not been taken; else waits for the next one.
        ///
        /// - Returns: `nil` at the end, or if the task is cancelled.
        public mutating func next(isolation: isolated (any Actor)? = #isolation) async -> Value? {
            await reader.next(isolation: isolation)
        }
    }

    /// The iterators' half of a subscription: with its last copy the subscription ends.
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
