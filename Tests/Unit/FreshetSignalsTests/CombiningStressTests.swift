import FreshetTestKit
import TestSupport
import Testing

@testable import FreshetSignals

/// Real threads, for effects that the serial executor cannot show; run them under the thread sanitizer, too.
@Suite("Combining operators from many threads")
struct CombiningStressTests {
    static let elementsEach = 1_000
    static let upstreams = 8

    /// Numbers from 0, as fast as they are requested.
    func numbers(_ count: Int = elementsEach) -> Emitter<Int, any Error> {
        Emitter(
            Numbers(count: count))
    }

    @Test("merge loses nothing, adds nothing and keeps the order of each sequence")
    func merged() async throws {
        let sequences = (0..<Self.upstreams).map { upstream in numbers().map { (upstream, $0) } }
        var next = Array(repeating: 0, count: Self.upstreams)
        for try await (upstream, number) in merge(sequences) {
            #expect(number == next[upstream])
            next[upstream] = number + 1
        }
        #expect(next == Array(repeating: Self.elementsEach, count: Self.upstreams))
    }

    @Test("accumulateLatestMany changes one element of each array after the first, and ends with the last elements")
    func accumulated() async throws {
        var last: [Int] = []
        for try await array in accumulateLatestMany((0..<Self.upstreams).map { _ in numbers() }) {
            if !last.isEmpty {
                let changes = zip(last, array).filter { $0 != $1 }
                #expect(changes.count == 1)
                #expect(changes.allSatisfy { $1 == $0 + 1 })
            }
            last = array
        }
        #expect(last == Array(repeating: Self.elementsEach - 1, count: Self.upstreams))
    }

    @Test("combineLatest never goes back on either side")
    func combined() async throws {
        var last = (-1, -1)
        for try await pair in combineLatest(numbers(), numbers()) {
            #expect(pair.0 >= last.0 && pair.1 >= last.1)
            last = pair
        }
        #expect(last == (Self.elementsEach - 1, Self.elementsEach - 1))
    }

    @Test("withLatestFrom pairs each element once, with values that never go back")
    func paired() async throws {
        let source = SignalSource("s")
        let value = CurrentValue(0)
        let box = Handed(Emitter(source.signal).withLatestFrom(value).makeAsyncIterator())
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                guard var iterator = box.take() else { return }
                var (count, last) = (0, 0)
                while let pair = await iterator.next(isolation: nil) {
                    count += 1
                    #expect(pair.1 >= last)
                    last = pair.1
                }
                #expect(count <= 2 * Self.elementsEach)
                #expect(count > 0)
            }
            for _ in 0..<2 {
                group.addTask {
                    for _ in 0..<Self.elementsEach {
                        value.update { $0 += 1 }
                        source.fire()
                        await Task.yield()
                    }
                }
            }
            try await group.next()
            try await group.next()
            source.finish()
            try await group.waitForAll()
        }
    }

    @Test("all subscribers that share one upstream and are fast enough get all elements, in order")
    func shared() async throws {
        let shared = numbers().share(replaying: Self.elementsEach)
        let holder = shared.makeAsyncIterator()
        try await withThrowingTaskGroup(of: Int.self) { group in
            for _ in 0..<Self.upstreams {
                group.addTask {
                    var count = 0
                    for try await number in shared {
                        #expect(number == count)
                        count += 1
                    }
                    return count
                }
            }
            for try await count in group { #expect(count == Self.elementsEach) }
        }
        withExtendedLifetime(holder) {}
    }

    @Test("operators that are cancelled, released and fired at any moment end and leave nothing behind")
    func churn() async {
        let (a, b) = (SignalSource("a"), SignalSource("b"))
        let value = CurrentValue(0)
        let shared = a.signal.share(replaying: 1)
        await withTaskGroup(of: Void.self) { group in
            for worker in 0..<4 {
                group.addTask {
                    for number in 0..<300 {
                        let task = Self.consumer(
                            number % 7, leavingAfter: number % 4 + 1, a.signal, b.signal, value, shared)
                        a.fire()
                        value.update { $0 += 1 }
                        b.fire()
                        if (number + worker) % 3 == 0 { await Task.yield() }
                        a.fire()
                        if number % 5 > 0 { task.cancel() }
                        b.fire()
                        value.update { $0 += 1 }
                        task.cancel()
                        await task.value
                    }
                }
            }
        }
        // A dropped iterator cannot be awaited: give its driver time to end.
        #expect(await eventually { a.fire() == 0 && b.fire() == 0 && value.readerCount == 0 })
    }

    /// A task that consumes one of the operators.
    static func consumer(
        _ kind: Int, leavingAfter limit: Int, _ a: Signal, _ b: Signal, _ value: CurrentValue<Int>,
        _ shared: some AsyncSequence<Void, Never> & Sendable
    ) -> Task<Void, Never> {
        switch kind {
        case 0: consume(merge([Emitter(a), Emitter(b)]), limit)
        case 1: consume(combineLatest(a, value), limit)
        case 2: consume(accumulateLatestMany([a, b, a]), limit)
        case 3: consume(a.withLatestFrom(value), limit)
        case 4: consume(a.map { _ in value }.switchToLatest(), limit)
        case 5: consume(shared, limit)
        default: consume(combineLatest(shared, b, value), limit)
        }
    }

    static func consume(_ sequence: some AsyncSequence<some Any, Never> & Sendable, _ limit: Int) -> Task<Void, Never> {
        Task {
            var count = 0
            for await _ in sequence {
                count += 1
                if count == limit { break }
            }
        }
    }
}

private struct Numbers: AsyncSequence, Sendable {
    typealias Element = Int
    typealias Failure = any Error

    let count: Int

    func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(numbers: (0..<count).makeIterator())
    }

    struct AsyncIterator: AsyncIteratorProtocol {
        var numbers: Range<Int>.Iterator

        mutating func next(isolation: isolated (any Actor)? = #isolation) async throws -> Int? {
            numbers.next()
        }
    }
}
