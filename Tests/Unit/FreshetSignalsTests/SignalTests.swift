import FreshetTestKit
import Testing

@testable import FreshetSignals

@Suite("Signals")
struct SignalTests {
    @Test("a subscription receives firings after its iterator was made, also before the first next()")
    func hot() throws {
        let source = SignalSource("a")
        source.fire()
        let received = try SerialTestExecutor().run {
            var iterator = source.signal.makeAsyncIterator()
            source.fire()
            source.fire()
            source.finish()
            var received = 0
            while await iterator.next() != nil { received += 1 }
            return received
        }
        #expect(received == 2)
    }

    @Test("fire() returns the number of live subscriptions that it reached")
    func reached() {
        let source = SignalSource("a")
        #expect(source.fire() == 0)
        var first: Signal.AsyncIterator? = source.signal.makeAsyncIterator()
        var copy = first
        let second = Signal.merge(source.signal, source.signal).makeAsyncIterator()
        #expect(source.fire() == 2, "one that lists the source twice counts once")
        first = nil
        #expect(source.fire() == 2, "the copy holds the subscription")
        copy = nil
        #expect(source.fire() == 1)
        withExtendedLifetime((first, copy, second)) { source.finish() }
        #expect(source.fire() == 0)
    }

    @Test("copies of an iterator share the subscription")
    func copies() throws {
        let source = SignalSource("a")
        let left = try SerialTestExecutor().run {
            var iterator = source.signal.makeAsyncIterator()
            var copy = iterator
            source.fire()
            source.fire()
            await iterator.next()
            await copy.next()
            source.finish()
            return await iterator.next() == nil
        }
        #expect(left)
    }

    @Test("a merge ends when all its sources have ended, a merge of none immediately")
    func mergeEnds() throws {
        let a = SignalSource("a")
        let b = SignalSource("b")
        try SerialTestExecutor().run {
            var none = Signal.merge([]).makeAsyncIterator()
            #expect(await none.next() == nil)
            var both = Signal.merge(a.signal, .merge(b.signal, a.signal)).makeAsyncIterator()
            a.fire()
            a.finish()
            b.fire()
            for _ in 1...3 { #expect(await both.next() != nil) }
            b.finish()
            #expect(await both.next() == nil)
            var late = Signal.merge(a.signal, b.signal).makeAsyncIterator()
            #expect(await late.next() == nil)
        }
    }

    @Test("never does not fire, nor does a source that was released without finish()")
    func silent() throws {
        let executor = SerialTestExecutor()
        var source: SignalSource? = SignalSource("a")
        let signals = [Signal.never, try #require(source).signal]
        source = nil
        for signal in signals {
            let task = Task(executorPreference: executor) {
                var iterator = signal.makeAsyncIterator()
                return await iterator.next() != nil
            }
            try executor.runUntilIdle()
            #expect(try executor.runUntilIdle() == 0)
            task.cancel()
            #expect(try executor.run { await !task.value })
        }
    }

    @Test("coalesced() takes all pending firings as one")
    func coalesced() throws {
        let source = SignalSource("a")
        let count = try SerialTestExecutor().run {
            var iterator = source.signal.coalesced().makeAsyncIterator()
            for _ in 1...5 { source.fire() }
            var count = 0
            await iterator.next(isolation: #isolation)
            count += 1
            source.fire()
            source.finish()
            while await iterator.next(isolation: #isolation) != nil { count += 1 }
            return count
        }
        #expect(count == 2)
    }

    @Test("causes contain each source once, with the injected clock's instants and the details")
    func causes() throws {
        let start = ContinuousClock.now
        let a = SignalSource("a", now: { start })
        let b = Trigger("b", now: { start.advanced(by: .seconds(1)) })
        let causes = try SerialTestExecutor().run {
            let signal = Signal.merge(a.signal, b.signal(activatedBy: 7), a.signal)
            var iterator = signal.causes.makeAsyncIterator()
            b.activate(for: 7, "seven")
            a.fire("one")
            a.fire("two")
            return await iterator.next(isolation: #isolation)
        }
        let later = start.advanced(by: .seconds(1))
        #expect(
            causes == [
                Cause(first: Occurrence(signal: "b", number: 1, instant: later, detail: "seven")),
                Cause(
                    first: Occurrence(signal: "a", number: 1, instant: start, detail: "one"),
                    last: Occurrence(signal: "a", number: 2, instant: start, detail: "two"), count: 2),
            ])
    }

    @Test("the clock is only read for subscribers of causes, and earlier firings are counted")
    func clockIsReadForReaders() async throws {
        let reads = Lock(0)
        let source = SignalSource(
            "s",
            now: {
                reads.withLock { $0 += 1 }
                return .now
            })
        let plain = source.signal.makeAsyncIterator()
        let coalesced = source.signal.coalesced().makeAsyncIterator()
        source.fire()
        #expect(reads.withLock { $0 } == 0)
        do {
            var causes = source.signal.causes.makeAsyncIterator()
            source.fire()
            let cause = try #require(await causes.next()?.first)
            #expect(cause.first.number == 2)
            #expect(reads.withLock { $0 } == 1)
        }
        source.fire()
        #expect(reads.withLock { $0 } == 1)
        withExtendedLifetime((plain, coalesced)) {}
    }

    @Test("subscribers on one executor run in turn, also when a handler fires again")
    func turns() throws {
        let executor = SerialTestExecutor()
        let source = SignalSource("a")
        let log = Log()
        let tasks = ["A", "B"].map { name in
            Task(executorPreference: executor) {
                var received = 0
                for await _ in source.signal {
                    received += 1
                    log.add("\(name)\(received)")
                    if name == "A", received < 3 { source.fire() }
                    if received == 3 { break }
                }
            }
        }
        try executor.runUntilIdle()
        source.fire()
        try executor.runUntilIdle()
        #expect(log.entries == ["A1", "B1", "A2", "B2", "A3", "B3"])
        withExtendedLifetime(tasks) {}
    }

    @Test("subscribers that find a pending burst still run in turn with the subscribers for which they fire")
    func turnsAfterBurst() throws {
        let executor = SerialTestExecutor()
        let source = SignalSource("a")
        let log = Log()
        let tasks = ["A", "B"].map { name in
            let gate = Handed(source.signal.makeAsyncIterator())
            return Task(executorPreference: executor) {
                guard var iterator = gate.take() else { return }
                for number in 1...3 {
                    await iterator.next()
                    log.add("\(name)\(number)")
                    if name == "A" { source.fire() }
                }
            }
        }
        source.fire()
        try executor.runUntilIdle()
        #expect(log.entries == ["A1", "B1", "A2", "B2", "A3", "B3"])
        withExtendedLifetime(tasks) {}
    }
}

@Suite("Cancelling next() of a signal")
struct SignalCancellationTests {
    @Test("a next() that was cancelled before, during or after its sleep takes nothing and leaves the subscription")
    func takesNothing() throws {
        let executor = SerialTestExecutor()
        let source = SignalSource("a")
        let box = Handed(source.signal.makeAsyncIterator())
        let request: @Sendable () async -> Bool = {
            guard var iterator = box.take() else { return false }
            let received = await iterator.next() != nil
            box.put(iterator)
            return received
        }

        // Cancelled before it began.
        source.fire()
        let early = Task(executorPreference: executor) { await request() }
        early.cancel()
        #expect(try executor.run { await !early.value })
        #expect(try executor.run { await request() }, "the firing is still there")

        // Cancelled while it slept.
        let asleep = Task(executorPreference: executor) { await request() }
        try executor.runUntilIdle()
        asleep.cancel()
        #expect(try executor.run { await !asleep.value })

        // Woken, and cancelled before it ran.
        let woken = Task(executorPreference: executor) { await request() }
        try executor.runUntilIdle()
        #expect(source.fire() == 1)
        woken.cancel()
        #expect(try executor.run { await !woken.value })
        #expect(try executor.run { await request() }, "the firing is still there")

        // Cancelled while it yielded.
        source.fire()
        let yielding = Task(executorPreference: executor) { await request() }
        let canceller = Task(executorPreference: executor) { yielding.cancel() }
        #expect(try executor.run { await !yielding.value })
        #expect(try executor.run { await request() }, "the firing is still there")

        #expect(source.fire() == 1, "the subscription stays alive")
        _ = box.take()
        #expect(source.fire() == 0)
        withExtendedLifetime(canceller) {}
    }

    @Test("two concurrent next() trap")
    func concurrentNext() async {
        await #expect(processExitsWith: .failure) {
            let executor = SerialTestExecutor()
            let box = Handed(Signal.never.makeAsyncIterator())
            guard var iterator = box.take() else { return }
            var copy = iterator
            let first = Handed(iterator)
            iterator = Signal.never.makeAsyncIterator()
            let task = Task(executorPreference: executor) {
                guard var iterator = first.take() else { return }
                await iterator.next()
            }
            try executor.runUntilIdle()
            await copy.next()
            withExtendedLifetime(task) {}
        }
    }
}
