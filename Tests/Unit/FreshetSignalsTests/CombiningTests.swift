import FreshetTestKit
import Testing

@testable import FreshetSignals

@Suite("Common properties of all combining operators")
struct CombiningTests {
    struct ValidationError: Error {}

    /// Each operator, made of the same two upstreams, as a sequence of its deliveries.
    static let operators: [Operator] = [
        Operator("merge") { a, b in Emitter(merge([a, b])) },
        Operator("combineLatest") { a, b in Emitter(combineLatest(a, b).map { $0.0 }) },
        Operator("combineLatest of three") { a, b in Emitter(combineLatest(a, b, a).map { $0.0 }) },
        Operator("accumulateLatestMany") { a, b in Emitter(accumulateLatestMany([a, b]).map { $0[0] }) },
        Operator("withLatestFrom") { a, b in Emitter(a.withLatestFrom(b).map { $0.0 }) },
        Operator("switchToLatest") { a, b in
            Emitter(merge([a, b]).map { _ in merge([a, .once { 0 }]) }.switchToLatest())
        },
        Operator("share") { a, b in Emitter(merge([a, b]).share(replaying: 1)) },
    ]

    /// Without the operator that reads a source continuously: it replaces pending elements.
    static let allButSwitch = operators.filter { $0.testDescription != "switchToLatest" }

    struct Operator: Sendable, CustomTestStringConvertible {
        typealias Upstream = Emitter<Int, any Error>
        let testDescription: String
        let make: @Sendable (Upstream, Upstream) -> Upstream

        init(_ name: String, _ make: @escaping @Sendable (Upstream, Upstream) -> Upstream) {
            testDescription = name
            self.make = make
        }
    }

    /// An emitter of a signal's firings, with a failure type.
    func firings(_ source: SignalSource) -> Emitter<Int, any Error> {
        Emitter(Firings(signal: source.signal))
    }

    @Test("an iterator is subscribed until it is dropped, and runs nothing before next()", arguments: operators)
    func neverPulled(_ made: Operator) {
        let (a, b) = (SignalSource("a"), SignalSource("b"))
        let log = Log()
        let pulled = Emitter<Int, any Error>(Logged(base: firings(a), log: log))
        do {
            let sequence = made.make(pulled, firings(b))
            #expect(a.fire() + b.fire() == 0)
            let iterator = sequence.makeAsyncIterator()
            #expect(a.fire() >= 1)
            #expect(b.fire() == 1)
            withExtendedLifetime((sequence, iterator)) {}
        }
        #expect(a.fire() + b.fire() == 0)
        #expect(log.entries.isEmpty)
    }

    @Test("two iterations of one value are separate, also of a share that was left", arguments: operators)
    func twice(_ made: Operator) throws {
        let sequence = made.make(.once { 1 }, .once { 2 })
        let counts = try SerialTestExecutor().run {
            var counts: [Int] = []
            for _ in 1...2 {
                var count = 0
                for try await _ in sequence { count += 1 }
                counts.append(count)
            }
            return counts
        }
        #expect(counts[0] > 0)
        #expect(counts[0] == counts[1])
    }

    @Test("a task that is already cancelled starts nothing", arguments: operators)
    func cancelledBefore(_ made: Operator) throws {
        let executor = SerialTestExecutor()
        let log = Log()
        let upstream = Emitter<Int, any Error>.once {
            log.add("load")
            return 1
        }
        let sequence = made.make(upstream, upstream)
        let task = Task(executorPreference: executor) {
            for try await _ in sequence { log.add("element") }
            log.add("end")
        }
        task.cancel()
        try executor.runUntilIdle()
        #expect(log.entries == ["end"])
    }

    @Test("a cancelled next() returns when the last upstream has cleaned up, and not before", arguments: operators)
    func awaitsCleanUp(_ made: Operator) throws {
        let executor = SerialTestExecutor()
        let (log, gate, clock) = (Log(), CurrentValue(false), ManualClock())
        let steps = Counter()
        let stubborn = Emitter<Int, any Error>(
            Steps {
                guard steps.increment() > 1 else { return 1 }
                try? await clock.sleep(for: .seconds(1_000))
                // An unstructured task is not cancelled with the child, like an operation of the system.
                let executor = withUnsafeCurrentTask { $0?.unownedTaskExecutor?.asTaskExecutor() }
                await Task(executorPreference: executor) { for await isOpen in gate where isOpen { break } }.value
                log.add("clean")
                return nil
            })
        let source = SignalSource("s")
        let sequence = made.make(stubborn, firings(source))
        let task = Task(executorPreference: executor) {
            for try await _ in sequence {}
            log.add("end")
        }
        try executor.runUntilIdle()
        source.fire()
        try executor.runUntilIdle()
        task.cancel()
        try executor.runUntilIdle()
        #expect(log.entries.isEmpty)
        gate.value = true
        try executor.runUntilIdle()
        #expect(log.entries.last == "end")
        #expect(log.entries.contains("clean"))
        #expect(clock.sleeperCount == 0)
    }

    @Test("firing, finishing and cancelling during a delivery work like elsewhere", arguments: operators)
    func insideDelivery(_ made: Operator) throws {
        let (a, b) = (SignalSource("a"), SignalSource("b"))
        let sequence = made.make(firings(a), firings(b))
        let executor = SerialTestExecutor()
        let counts = try executor.run {
            let (finished, cancelled) = (Counter(), Counter())
            var iterator = sequence.makeAsyncIterator()
            for source in [a, b, a] { source.fire() }
            while try await iterator.next(isolation: nil) != nil {
                if finished.increment() < 3 {
                    b.fire()
                    a.fire()
                } else {
                    a.finish()
                    b.finish()
                }
            }
            let task = Task(executorPreference: executor) {
                for try await _ in made.make(.once { 1 }, .once { 2 }) {
                    cancelled.increment()
                    withUnsafeCurrentTask { $0?.cancel() }
                }
            }
            try await task.value
            return (finished.value, cancelled.value)
        }
        #expect(counts.0 >= 3)
        #expect(counts.1 == 1)
        #expect(a.fire() + b.fire() == 0)
    }

    @Test("an upstream that fails immediately fails the result once, and leaves no subscription", arguments: operators)
    func failsAtOnce(_ made: Operator) throws {
        let source = SignalSource("s")
        let sequence = made.make(.once { throw ValidationError() }, firings(source))
        try SerialTestExecutor().run {
            var iterator = sequence.makeAsyncIterator()
            source.fire()
            do {
                while try await iterator.next(isolation: #isolation) != nil {}
                Issue.record("did not fail")
            } catch {
                #expect(error is ValidationError)
            }
            #expect(source.fire() == 0)
            let afterwards = try await iterator.next(isolation: #isolation)
            #expect(afterwards == nil)
        }
    }

    @Test("a signal that fires during the subscription is received from then on", arguments: allButSwitch)
    func firesWhileSubscribed(_ made: Operator) throws {
        let source = SignalSource("s")
        let sequence = made.make(
            Emitter(Firings(signal: source.signal, whileSubscribing: { source.fire() })), .once { 1 })
        try SerialTestExecutor().run {
            var iterator = sequence.makeAsyncIterator()
            #expect(source.fire() >= 1)
            let element = try await iterator.next(isolation: #isolation)
            #expect(element != nil)
        }
        #expect(source.fire() == 0)
    }

    @Test("a million pending firings take the memory and the time of one")
    func millionFirings() throws {
        let source = SignalSource("s")
        let sequences = Self.allButSwitch.map { $0.make(firings(source), .once { 1 }) }
        try SerialTestExecutor().run {
            var iterators = sequences.map { $0.makeAsyncIterator() }
            for _ in 0..<1_000_000 / sanitizerDivisor { source.fire() }
            for index in iterators.indices {
                for _ in 1...3 {
                    let element = try await iterators[index].next(isolation: #isolation)
                    #expect(element != nil)
                }
            }
        }
        #expect(source.fire() == 0)
    }
}

@Suite("Merging signals")
struct MergedSignalsTests {
    @Test("merging 1,000 signals starts no task")
    func noTask() throws {
        let executor = SerialTestExecutor()
        let sources = (0..<1_000).map { SignalSource("\($0)") }
        let merged: Signal = merge(sources.map(\.signal))
        let firings = Counter()
        let task = Task(executorPreference: executor) { for await _ in merged { firings.increment() } }
        #expect(try executor.runUntilIdle() == 1)
        for source in sources { source.fire() }
        try executor.runUntilIdle()
        #expect(firings.value == 1_000)
        for source in sources { source.finish() }
        try executor.run { await task.value }
    }
}

@Suite("One upstream for many subscribers")
struct ShareTests {
    @Test("the upstream has one iteration, made with the first subscriber and read at the first next()")
    func one() throws {
        let executor = SerialTestExecutor()
        let source = SignalSource("s")
        let log = Log()
        let shared = Logged(base: source.signal, log: log).share(replaying: 0)
        #expect(source.fire() == 0)
        let (first, second) = (Handed(shared.makeAsyncIterator()), Handed(shared.makeAsyncIterator()))
        #expect(source.fire() == 1)
        #expect(log.entries.isEmpty)
        let counts = [Counter(), Counter()]
        let tasks = zip([first, second], counts).map { box, count in
            Task(executorPreference: executor) {
                guard var iterator = box.take() else { return }
                while await iterator.next(isolation: nil) != nil { count.increment() }
            }
        }
        try executor.runUntilIdle()
        #expect(counts.map(\.value) == [1, 1])
        for _ in 1...3 { source.fire() }
        try executor.runUntilIdle()
        #expect(counts.map(\.value) == [4, 4])
        tasks[0].cancel()
        try executor.runUntilIdle()
        source.fire()
        try executor.runUntilIdle()
        #expect(counts.map(\.value) == [4, 5])
        source.finish()
        try executor.run { await tasks[1].value }
        #expect(source.fire() == 0)
    }

    @Test("an endless upstream does not run ahead of its subscribers")
    func pace() throws {
        let executor = SerialTestExecutor()
        let reads = Counter()
        let shared = Steps { reads.increment() }.share(replaying: 3)
        let box = Handed(shared.makeAsyncIterator())
        let request: @Sendable () async throws -> Int? = {
            guard var iterator = box.take() else { return nil }
            defer { box.put(iterator) }
            return try await iterator.next(isolation: nil)
        }
        for number in 1...5 {
            #expect(try executor.run(request) == number)
            #expect(reads.value == number)
        }
        _ = box.take()
        try executor.runUntilIdle()
        #expect(reads.value <= 6)
    }

    @Test("the next upstream iteration starts when the previous one has cleaned up")
    func restart() throws {
        let executor = SerialTestExecutor()
        let (log, gate, clock) = (Log(), CurrentValue(false), ManualClock())
        let runs = Counter()
        let shared = Emitter<Int, any Error>.once {
            let number = runs.increment()
            log.add("run \(number)")
            do { try await clock.sleep(for: .seconds(1)) } catch {
                let executor = withUnsafeCurrentTask { $0?.unownedTaskExecutor?.asTaskExecutor() }
                await Task(executorPreference: executor) { for await isOpen in gate where isOpen { break } }.value
                log.add("clean \(number)")
            }
            return number
        }.share(replaying: 1)
        let first = Task(executorPreference: executor) {
            for try await element in shared { log.add("first \(element)") }
        }
        try executor.runUntilIdle()
        first.cancel()
        try executor.runUntilIdle()
        let second = Task(executorPreference: executor) {
            for try await element in shared { log.add("second \(element)") }
        }
        try executor.runUntilIdle()
        #expect(log.entries == ["run 1"])
        gate.value = true
        try clock.advance(by: .seconds(2), draining: executor)
        #expect(log.entries == ["run 1", "clean 1", "run 2", "second 2"])
        try executor.run { try await first.value }
        try executor.run { try await second.value }
    }

    @Test("a share for ever releases the upstream with its last copy")
    func released() throws {
        let executor = SerialTestExecutor()
        let source = SignalSource("s")
        do {
            let shared = source.signal.share(replaying: 1, while: .forever)
            let task = Task(executorPreference: executor) {
                for await _ in shared { break }
            }
            try executor.runUntilIdle()
            source.fire()
            try executor.run { await task.value }
            #expect(source.fire() == 1, "it has no subscriber, but it is kept")
            withExtendedLifetime(shared) {}
        }
        try executor.runUntilIdle()
        #expect(source.fire() == 0)
    }
}

/// A signal as numbers, with a failure type.
private struct Firings: AsyncSequence, Sendable {
    typealias Element = Int
    typealias Failure = any Error

    let signal: Signal
    var whileSubscribing: @Sendable () -> Void = {}

    func makeAsyncIterator() -> AsyncIterator {
        whileSubscribing()
        let outputs = signal.makeAsyncIterator()
        whileSubscribing()
        return AsyncIterator(outputs: outputs)
    }

    struct AsyncIterator: AsyncIteratorProtocol {
        var outputs: Signal.AsyncIterator
        var number = 0

        mutating func next(isolation: isolated (any Actor)? = #isolation) async throws -> Int? {
            guard await outputs.next(isolation: isolation) != nil else { return nil }
            number += 1
            return number
        }
    }
}

/// A sequence that logs each call of `next()`.
private struct Logged<Base: AsyncSequence & Sendable>: AsyncSequence, Sendable {
    typealias Element = Base.Element
    typealias Failure = Base.Failure

    let base: Base
    let log: Log

    func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(base: base.makeAsyncIterator(), log: log)
    }

    struct AsyncIterator: AsyncIteratorProtocol {
        var base: Base.AsyncIterator
        let log: Log

        mutating func next(isolation: isolated (any Actor)? = #isolation) async throws(Failure) -> Element? {
            log.add("asked")
            return try await base.next(isolation: isolation)
        }
    }
}
