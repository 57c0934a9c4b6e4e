import FreshetTestKit
import Testing

@testable import FreshetSignals

@Suite("A current value")
struct CurrentValueTests {
    @Test("an update is one atomic step, from any thread")
    func atomicUpdate() async {
        let current = CurrentValue(0)
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<4 {
                group.addTask { for _ in 0..<1_000 { current.update { $0 += 1 } } }
            }
        }
        #expect(current.value == 4_000)
    }

    @Test("after finish() neither setting nor updating has an effect; the last value can be read and is delivered")
    func finished() throws {
        let current = CurrentValue("a")
        current.value = "b"
        current.finish()
        current.value = "c"
        current.update { $0 = "d" }
        #expect(current.value == "b")
        let seen = try SerialTestExecutor().run {
            var seen: [String] = []
            for await value in current { seen.append(value) }
            return seen
        }
        #expect(seen == ["b"])
    }

    @Test("equal values are delivered; copies of an iterator share their state")
    func equalValues() throws {
        let current = CurrentValue(1)
        try SerialTestExecutor().run {
            var iterator = current.makeAsyncIterator()
            var copy = iterator
            #expect(await iterator.next() == 1)
            current.value = 1
            #expect(await copy.next() == 1)
            current.finish()
            #expect(await iterator.next() == nil)
            #expect(await copy.next() == nil)
        }
    }

    @Test("a cancelled next() takes nothing and leaves the subscription, which ends with the iterator")
    func cancellation() throws {
        let executor = SerialTestExecutor()
        let current = CurrentValue(1)
        let box = Handed(current.makeAsyncIterator())
        let request: @Sendable () async -> Int? = {
            guard var iterator = box.take() else { return nil }
            let value = await iterator.next()
            box.put(iterator)
            return value
        }
        let early = Task(executorPreference: executor) { await request() }
        early.cancel()
        #expect(try executor.run { await early.value } == nil)
        #expect(try executor.run { await request() } == 1)

        let asleep = Task(executorPreference: executor) { await request() }
        try executor.runUntilIdle()
        asleep.cancel()
        #expect(try executor.run { await asleep.value } == nil)

        let woken = Task(executorPreference: executor) { await request() }
        try executor.runUntilIdle()
        current.value = 2
        woken.cancel()
        #expect(try executor.run { await woken.value } == nil)
        #expect(try executor.run { await request() } == 2)

        #expect(current.readerCount == 1)
        _ = box.take()
        #expect(current.readerCount == 0)
    }

    @Test("a value's deinitializer may use the object that held it")
    func reentrantDeinit() {
        final class Node: Sendable {
            let onDeinit: @Sendable () -> Void
            init(_ onDeinit: @escaping @Sendable () -> Void) { self.onDeinit = onDeinit }
            deinit { onDeinit() }
        }
        let log = Log()
        let current = CurrentValue<Node?>(nil)
        current.value = Node { [weak current] in log.add(current?.value == nil ? "gone" : "replaced") }
        current.value = nil
        #expect(log.entries == ["gone"])
    }
}

@Suite("Emitters")
struct EmitterTests {
    struct ValidationError: Error {}

    @Test("once loads one value for each iteration")
    func once() throws {
        let log = Log()
        let emitter = Emitter.once { () -> Int in
            log.add("load")
            return log.entries.count
        }
        let values = try SerialTestExecutor().run {
            var values: [Int] = []
            for await value in emitter { values.append(value) }
            for await value in emitter { values.append(value) }
            return values
        }
        #expect(values == [1, 2])
    }

    @Test("once throws the error of the load, and then ends")
    func fails() throws {
        let emitter = Emitter<Int, ValidationError>.once { () throws(ValidationError) in throw ValidationError() }
        try SerialTestExecutor().run {
            var iterator = emitter.makeAsyncIterator()
            do {
                _ = try await iterator.next(isolation: #isolation)
                Issue.record("did not fail")
            } catch {
                #expect(error is ValidationError)
            }
            let afterwards = try await iterator.next(isolation: #isolation)
            #expect(afterwards == nil)
        }
    }

    @Test("a cancelled once ends without an element or an error, and does not start its load")
    func cancelled() throws {
        let executor = SerialTestExecutor()
        let clock = ManualClock()
        let log = Log()
        let emitter = Emitter<Int, any Error>.once {
            log.add("load")
            try await clock.sleep(for: .seconds(1))
            return 1
        }
        let tasks = (1...2).map { _ in
            Task(executorPreference: executor) {
                var iterator = emitter.makeAsyncIterator()
                return try await iterator.next()
            }
        }
        tasks[0].cancel()
        try executor.runUntilIdle()
        #expect(log.entries == ["load"])
        tasks[1].cancel()
        #expect(try executor.run { try await tasks[0].value } == nil)
        #expect(try executor.run { try await tasks[1].value } == nil)
        #expect(clock.sleeperCount == 0)
    }

    @Test("an emitter of a signal subscribes when its iterator is made")
    func subscribes() throws {
        let source = SignalSource("a")
        let emitter = Emitter(source.signal)
        #expect(source.fire() == 0)
        let iterator = emitter.makeAsyncIterator()
        #expect(source.fire() == 1)
        withExtendedLifetime(iterator) {}
    }
}
