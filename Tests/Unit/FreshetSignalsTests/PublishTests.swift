import FreshetTestKit
import Testing

@testable import FreshetSignals

@Suite("One iteration of publish and its tasks")
struct PublishTests {
    struct ValidationError: Error, Equatable {}

    /// A body whose runs and clean-ups are logged, and that ends only when it is cancelled.
    struct Probe: Sendable {
        let log = Log()
        let clock = ManualClock()

        /// Emits `first`, then sleeps until it is cancelled.
        func body(_ first: Int) -> Emitter<Int, any Error> {
            let steps = Counter()
            return Emitter(
                Steps { [log, clock] in
                    if steps.increment() == 1 {
                        log.add("run \(first)")
                        return first
                    }
                    try? await clock.sleep(for: .seconds(1_000))
                    log.add("clean \(first)")
                    return nil
                })
        }
    }

    @Test("an iterator is subscribed to the signal until it is dropped, and runs nothing before its first next()")
    func neverPulled() {
        let source = SignalSource("s")
        let log = Log()
        let sequence = publishAndRepeat(onOutputFrom: source.signal) {
            log.add("run")
            return Emitter<Int, Never>.once { 1 }
        }
        #expect(source.fire() == 0)
        do {
            let iterator = sequence.makeAsyncIterator()
            #expect(source.fire() == 1)
            withExtendedLifetime(iterator) {}
        }
        #expect(source.fire() == 0)
        #expect(log.entries.isEmpty)
    }

    @Test("a task that is cancelled before its first next() starts nothing")
    func cancelledBefore() throws {
        let executor = SerialTestExecutor()
        let source = SignalSource("s")
        let log = Log()
        let sequence = publishAndRepeat(onOutputFrom: source.signal) {
            log.add("run")
            return Emitter<Int, Never>.once { 1 }
        }
        let task = Task(executorPreference: executor) {
            for await _ in sequence {}
        }
        task.cancel()
        try executor.runUntilIdle()
        #expect(log.entries.isEmpty)
        #expect(source.fire() == 0)
    }

    @Test("the run at the start answers outputs before the first next()")
    func answered() throws {
        let executor = SerialTestExecutor()
        let source = SignalSource("s")
        let log = Log()
        let sequence = publishAndRepeat(onOutputFrom: source.signal) {
            log.add("run")
            return Emitter<Int, Never>.once { 1 }
        }
        let box = Handed(sequence.makeAsyncIterator())
        for _ in 1...3 { source.fire() }
        let task = Task(executorPreference: executor) {
            guard var iterator = box.take() else { return }
            while await iterator.next(isolation: #isolation) != nil { log.add("element") }
        }
        try executor.runUntilIdle()
        #expect(log.entries == ["run", "element"])
        for _ in 1...3 { source.fire() }
        try executor.runUntilIdle()
        #expect(log.entries == ["run", "element", "run", "element"])
        source.finish()
        try executor.run { await task.value }
    }

    @Test("the next run starts when the old one has cleaned up")
    func order() throws {
        let executor = SerialTestExecutor()
        let source = SignalSource("s")
        let probe = Probe()
        let runs = Counter()
        let sequence = publishAndRepeat(onOutputFrom: source.signal) { probe.body(runs.increment()) }
        let task = Task(executorPreference: executor) {
            for try await element in sequence { probe.log.add("got \(element)") }
            probe.log.add("end")
        }
        try executor.runUntilIdle()
        source.fire()
        try executor.runUntilIdle()
        task.cancel()
        try executor.runUntilIdle()
        #expect(probe.log.entries == ["run 1", "got 1", "clean 1", "run 2", "got 2", "clean 2", "end"])
        #expect(source.fire() == 0)
        #expect(probe.clock.sleeperCount == 0)
        try executor.run { try await task.value }
    }

    /// A body that emits its number, and then ignores its cancellation until the gate opens.
    func stubborn(_ runs: Counter, _ gate: CurrentValue<Bool>, _ log: Log) -> Emitter<Int, any Error> {
        let number = runs.increment()
        let steps = Counter()
        log.add("run \(number)")
        return Emitter(
            Steps {
                switch steps.increment() {
                case 1: return number
                case 2:
                    // An unstructured task is not cancelled with the run, like an operation of the system.
                    await Task(executorPreference: currentTaskExecutor()) {
                        for await isOpen in gate where isOpen { break }
                    }.value
                    log.add("late \(number)")
                    return -number
                default: return nil
                }
            })
    }

    @Test("a body that ignores cancellation delays the next run, and its later elements are not delivered")
    func delays() throws {
        let executor = SerialTestExecutor()
        let source = SignalSource("s")
        let (runs, gate, log) = (Counter(), CurrentValue(false), Log())
        let sequence = publishAndRepeat(onOutputFrom: source.signal) { stubborn(runs, gate, log) }
        let task = Task(executorPreference: executor) {
            for try await element in sequence { log.add("got \(element)") }
        }
        try executor.runUntilIdle()
        source.fire()
        source.fire()
        try executor.runUntilIdle()
        source.fire()
        try executor.runUntilIdle()
        #expect(log.entries == ["run 1", "got 1"])
        gate.value = true
        try executor.runUntilIdle()
        #expect(log.entries == ["run 1", "got 1", "late 1", "run 2", "got 2", "late 2", "got -2"])
        task.cancel()
        try executor.run { try await task.value }
    }

    @Test("a cancelled next() returns when the last child has ended, and not before")
    func awaitsChildren() throws {
        let executor = SerialTestExecutor()
        let (runs, gate, log) = (Counter(), CurrentValue(false), Log())
        let sequence = publishAndRepeat(onOutputFrom: .never) { stubborn(runs, gate, log) }
        let task = Task(executorPreference: executor) {
            for try await element in sequence { log.add("got \(element)") }
            log.add("end")
        }
        try executor.runUntilIdle()
        task.cancel()
        try executor.runUntilIdle()
        #expect(log.entries == ["run 1", "got 1"])
        gate.value = true
        try executor.runUntilIdle()
        #expect(log.entries == ["run 1", "got 1", "late 1", "end"])
        try executor.run { try await task.value }
    }

    @Test("a body that never ends in spite of its cancellation does not block the next run")
    func neverEndingBody() throws {
        let executor = SerialTestExecutor()
        let source = SignalSource("s")
        let runs = Counter()
        let log = Log()
        let sequence = publishAndRepeat(onOutputFrom: source.signal) {
            let number = runs.increment()
            return Emitter<Int, any Error>(Steps { number })
        }
        let box = Handed(sequence.makeAsyncIterator())
        let request: @Sendable () async throws -> Int? = {
            guard var iterator = box.take() else { return nil }
            let element = try await iterator.next(isolation: nil)
            box.put(iterator)
            return element
        }
        log.add("\(try executor.run(request) ?? 0)")
        log.add("\(try executor.run(request) ?? 0)")
        source.fire()
        try executor.runUntilIdle()
        log.add("\(try executor.run(request) ?? 0)")
        _ = box.take()
        try executor.runUntilIdle()
        #expect(log.entries == ["1", "1", "2"])
        #expect(source.fire() == 0)
    }

    @Test("dropping the iterator cancels the run and ends the subscription")
    func dropped() throws {
        let executor = SerialTestExecutor()
        let source = SignalSource("s")
        let probe = Probe()
        let sequence = publishAndRepeat(onOutputFrom: source.signal) { probe.body(1) }
        let task = Task(executorPreference: executor) {
            for try await _ in sequence { break }
            probe.log.add("left")
        }
        try executor.runUntilIdle()
        #expect(probe.log.entries == ["run 1", "left", "clean 1"])
        #expect(source.fire() == 0)
        #expect(probe.clock.sleeperCount == 0)
        try executor.run { try await task.value }
    }

    @Test("a failure is delivered after the watcher has ended and the signal was released; then the result ends")
    func failure() throws {
        let source = SignalSource("s")
        let sequence = publishAndRepeat(onOutputFrom: source.signal) {
            () throws(ValidationError) -> Emitter<Int, ValidationError> in
            throw ValidationError()
        }
        try SerialTestExecutor().run {
            var iterator = sequence.makeAsyncIterator()
            do {
                _ = try await iterator.next(isolation: #isolation)
                Issue.record("did not fail")
            } catch {
                #expect(error is ValidationError)
            }
            #expect(source.fire() == 0)
            let afterwards = try await iterator.next(isolation: #isolation)
            #expect(afterwards == nil)
        }
    }

    @Test("a cancelled iteration ends with nil, although its load throws")
    func cancelledLoad() throws {
        let executor = SerialTestExecutor()
        let clock = ManualClock()
        let sequence = publishAndRepeat(onOutputFrom: .never) {
            try await clock.sleep(for: .seconds(1))
            return 1
        }
        let task = Task(executorPreference: executor) {
            var iterator = sequence.makeAsyncIterator()
            return try await iterator.next(isolation: #isolation)
        }
        try executor.runUntilIdle()
        #expect(clock.sleeperCount == 1)
        task.cancel()
        #expect(try executor.run { try await task.value } == nil)
        #expect(clock.sleeperCount == 0)
    }

    @Test("the body runs for each iteration separately")
    func perIteration() throws {
        let runs = Counter()
        let sequence = publishAndRepeat(onOutputFrom: nil) {
            let number = runs.increment()
            return Emitter<Int, Never>.once { number }
        }
        let values = try SerialTestExecutor().run {
            var values: [Int] = []
            for await value in sequence { values.append(value) }
            for await value in sequence { values.append(value) }
            return values
        }
        #expect(values == [1, 2])
    }

    @Test("its tasks run on the executor that the caller of the first next() prefers")
    func executor() throws {
        let executor = SerialTestExecutor()
        let source = SignalSource("s")
        let sequence = publish(onOutputFrom: source.signal) { () async throws -> Bool in
            withUnsafeCurrentTask { task in
                task?.unownedTaskExecutor == executor.asUnownedTaskExecutor()
            }
        }
        let task = Task(executorPreference: executor) {
            for try await isPreferred in sequence { return isPreferred }
            return false
        }
        try executor.runUntilIdle()
        source.fire()
        #expect(try executor.run { try await task.value })
    }

    @Test("after a cancellation at any step no subscription, sleeper or task is left")
    func cancelledAnywhere() throws {
        // Each round cancels one job later than the previous one, until the scenario ends before the cancellation.
        for steps in 0..<60 {
            let executor = SerialTestExecutor()
            let source = SignalSource("s")
            let clock = ManualClock()
            let alive = Token()
            let task = Task(executorPreference: executor) { [token = Token(alive)] in
                let sequence = publishAndRepeat(onOutputFrom: source.signal) { () async throws -> Int in
                    try await clock.sleep(for: .seconds(1))
                    return withExtendedLifetime(token) { 1 }
                }
                for try await _ in sequence { source.fire() }
            }
            let canceller = Task(executorPreference: executor) {
                for step in 0..<steps {
                    if step % 3 == 1 { source.fire() }
                    if step % 3 == 2 { clock.advance(by: .seconds(1)) }
                    await Task.yield()
                }
                task.cancel()
            }
            try executor.runUntilIdle()
            #expect(try executor.run { try await task.value } == ())
            try executor.run { await canceller.value }
            #expect(source.fire() == 0, "after \(steps) steps")
            #expect(clock.sleeperCount == 0, "after \(steps) steps")
            #expect(alive.children == 0, "after \(steps) steps")
        }
    }
}

/// The executor that the current task prefers.
private func currentTaskExecutor() -> (any TaskExecutor)? {
    withUnsafeCurrentTask { $0?.unownedTaskExecutor?.asTaskExecutor() }
}
