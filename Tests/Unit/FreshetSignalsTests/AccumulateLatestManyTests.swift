import FreshetTestKit
import TestSupport
import Testing

@testable import FreshetSignals

@Suite("One iteration of accumulateLatestMany and its branches")
struct AccumulateLatestManyTests {
    @Test("100,000 branches work")
    func manyBranches() async {
        let count = 100_000 / sanitizerDivisor
        let sequence = accumulateLatestMany((0..<count).map { number in Emitter.once { number } })
        var arrays: [[Int]] = []
        for await array in sequence { arrays.append(array) }
        #expect(arrays == [Array(0..<count)])
    }

    @Test("100,000 branches can be released, cancelled and failed at the same time")
    func manyBranchesEndAtOnce() async throws {
        struct ValidationError: Error {}
        let count = 100_000 / sanitizerDivisor
        let never = SignalSource("never")
        let silent = Emitter<Int, any Error>(
            Steps {
                for await _ in never.signal {}
                return nil
            })
        let branches = Array(repeating: silent, count: count)
        do {
            // Never read.
            let iterator = accumulateLatestMany(branches).makeAsyncIterator()
            withExtendedLifetime(iterator) {}
        }
        let sequence = accumulateLatestMany(branches + [Emitter.once { throw ValidationError() }])
        await #expect(throws: ValidationError.self) {
            for try await _ in sequence { Issue.record("delivered") }
        }
        let gate = CurrentValue(1)
        for await _ in accumulateLatestMany((0..<count / 10).map { _ in Emitter(gate) }) { break }
        #expect(await eventually { gate.readerCount == 0 })
    }

    @Test("the number of jobs for an element does not depend on the number of branches", arguments: [1, 10_000])
    func jobsPerElement(_ count: Int) throws {
        let executor = SerialTestExecutor()
        let sources = (0..<count).map { _ in CurrentValue(0) }
        let sequence = accumulateLatestMany(sources)
        let arrays = Counter()
        let task = Task(executorPreference: executor) {
            for await _ in sequence { arrays.increment() }
        }
        // Each branch is started, resumed and put to sleep: linear.
        #expect(try executor.runUntilIdle() < 10 * count + 20)
        #expect(arrays.value == 1)
        sources[count / 2].value = 1
        #expect(try executor.runUntilIdle() <= 4)
        #expect(arrays.value == 2)
        task.cancel()
        try executor.runUntilIdle()
        #expect(sources.allSatisfy { $0.readerCount == 0 })
    }

    @Test("the array is copied only if the consumer still holds the previous one")
    func copies() throws {
        let values = (0..<100).map { _ in CurrentValue(0) }
        let (kept, released) = try SerialTestExecutor().run {
            var iterator = accumulateLatestMany(values).makeAsyncIterator()
            var places: Set<UnsafeRawPointer?> = []
            for number in 1...10 {
                let array = await iterator.next(isolation: #isolation)
                places.insert(array?.withUnsafeBytes { $0.baseAddress })
                values[number].value = number
            }
            var held: [[Int]] = []
            for number in 1...10 {
                if let array = await iterator.next(isolation: #isolation) { held.append(array) }
                values[number].value = -number
            }
            return (Set(held.map { $0.withUnsafeBytes { $0.baseAddress } }).count, places.count)
        }
        #expect(released == 1)
        #expect(kept == 10)
    }

    @Test("a branch that never suspends starves no other, and is not read while its array waits")
    func neverSuspends() throws {
        let executor = SerialTestExecutor()
        let reads = Counter()
        let quick = Emitter<Int, any Error>(Steps { reads.increment() })
        let other = CurrentValue(0)
        let source = SignalSource("s")
        let slow = Emitter<Int, any Error>(
            Steps { [outputs = Handed(source.signal.makeAsyncIterator())] in
                guard var iterator = outputs.take() else { return nil }
                defer { outputs.put(iterator) }
                return await iterator.next(isolation: nil).map { -1 }
            })
        let box = Handed(accumulateLatestMany([quick, slow]).makeAsyncIterator())
        let request: @Sendable () async throws -> [Int]? = {
            guard var iterator = box.take() else { return nil }
            let array = try await iterator.next(isolation: nil)
            box.put(iterator)
            return array
        }
        // The fast branch is read continuously until the slow one runs.
        let task = Task(executorPreference: executor) { try await request() }
        #expect(throws: LivelockError.self) { try executor.runUntilIdle(jobLimit: 1_000) }
        source.fire()
        let first = try #require(try executor.run { try await task.value })
        #expect(first[1] == -1)
        // One array and one element ahead; no more without a waiting next().
        let read = reads.value
        #expect(read <= first[0] + 1)
        try executor.runUntilIdle()
        #expect(reads.value == read)
        #expect(try executor.run(request) == [first[0] + 1, -1])
        _ = box.take()
        try executor.runUntilIdle()
        #expect(source.fire() <= 1)
        withExtendedLifetime(other) {}
    }
}
