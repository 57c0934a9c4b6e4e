import FreshetTestKit
import TestSupport
import Testing

@testable import FreshetSignals

/// Real threads and real time, for effects that the serial executor cannot show; run them under the thread sanitizer,
/// too.
@Suite("Timed and retrying operators from many threads")
struct TimedStressTests {
    static let settersCount = 4
    static let changesEach = 1_000

    /// Changes a value from several tasks at the same time, then finishes it.
    func change(_ value: CurrentValue<Int>) async {
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<Self.settersCount {
                group.addTask {
                    for _ in 0..<Self.changesEach { value.update { $0 += 1 } }
                }
            }
        }
        value.finish()
    }

    @Test("paced values grow, and end with the last value")
    func paced() async {
        let value = CurrentValue(0)
        let clock = ContinuousClock()
        let sequences: [Emitter<Int, Never>] = [
            Emitter(value.debounce(for: .microseconds(50), atMost: .microseconds(200), clock: clock)),
            Emitter(value.debounce(for: .microseconds(50), atMost: nil, leading: true, clock: clock)),
            Emitter(value.debounce(for: .zero, atMost: nil)),
            Emitter(value.throttle(for: .microseconds(100), latest: true, clock: clock)),
            Emitter(value.throttle(for: .zero, latest: true)),
            Emitter(value.prepend(-1).scan(-1) { max($0, $1) }.removeDuplicates().wait(untilOutputFrom: value)),
        ]
        await withTaskGroup(of: Void.self) { group in
            for sequence in sequences {
                group.addTask {
                    var last = Int.min
                    for await element in sequence {
                        #expect(element > last)
                        last = element
                    }
                    #expect(last == Self.settersCount * Self.changesEach)
                }
            }
            group.addTask { await change(value) }
        }
        #expect(value.readerCount == 0)
    }

    @Test("operators under many firings, cancelled at any moment, always end and leave nothing behind")
    func churn() async {
        let source = SignalSource("s")
        let clock = ContinuousClock()
        let alive = Token()
        let makers: [@Sendable () -> Emitter<Int, any Error>] = [
            {
                let token = Token(alive)
                let upstream = Steps { () async throws -> Int? in
                    try withExtendedLifetime(token) { throw SweepFailure() }
                }
                return Emitter(upstream.retry(on: source.signal))
            },
            {
                let token = Token(alive)
                let load: @Sendable (Int) async throws -> Page<Token, Int> = { cursor in
                    if cursor % 5 == 3 { throw SweepFailure() }
                    return Page([token], next: cursor + 1)
                }
                return Emitter(
                    paginated(by: source.signal, initially: 2, first: { try await load(1) }, next: load)
                        .scan(0) { $0 + $1.count })
            },
            { [self] in
                let token = Token(alive)
                return Emitter(
                    failing(source.signal.scan(0) { count, _ in withExtendedLifetime(token) { count + 1 } })
                        .debounce(for: .microseconds(20), atMost: .microseconds(50), leading: true, clock: clock))
            },
            { [self] in
                let token = Token(alive)
                return Emitter(
                    failing(source.signal.scan(0) { count, _ in withExtendedLifetime(token) { count + 1 } })
                        .throttle(for: .microseconds(20), latest: false, clock: clock)
                        .wait(untilOutputFrom: source.signal))
            },
        ]
        await withTaskGroup(of: Void.self) { group in
            for (worker, make) in (makers + makers).enumerated() {
                group.addTask {
                    for number in 0..<150 {
                        let task = startConsumer(of: make(), upTo: number % 4 + 1)
                        for _ in 0..<(number % 7) { source.fire() }
                        if (number + worker) % 3 == 0 { task.cancel() }
                        for _ in 0..<3 {
                            source.fire()
                            await Task.yield()
                        }
                        task.cancel()
                        await task.value
                    }
                }
            }
        }
        // An iterator that a consumer dropped cannot be awaited: give its driver time to end.
        #expect(await eventually { source.fire() == 0 && alive.children == 0 })
    }

    /// The sequence; it fails at its 50th element.
    func failing<S: AsyncSequence & Sendable>(
        _ sequence: S
    ) -> some AsyncSequence<Int, any Error> & Sendable where S.Element == Int {
        Failing(base: sequence)
    }
}

/// Consumes some elements in a separate task, and drops the iterator.
private func startConsumer(of sequence: Emitter<Int, any Error>, upTo limit: Int) -> Task<Void, Never> {
    Task(executorPreference: nil) {
        var seen = 0
        do {
            for try await _ in sequence {
                seen += 1
                if seen == limit { break }
            }
        } catch {
            // A failure ends the iteration, like the end.
        }
    }
}

private struct Failing<Base: AsyncSequence & Sendable>: AsyncSequence, Sendable where Base.Element == Int {
    typealias Failure = any Error

    let base: Base

    struct AsyncIterator: AsyncIteratorProtocol {
        var base: Base.AsyncIterator

        mutating func next(isolation: isolated (any Actor)? = #isolation) async throws -> Int? {
            let element = try await base.next(isolation: isolation)
            if let element, element >= 50 { throw SweepFailure() }
            return element
        }
    }

    func makeAsyncIterator() -> AsyncIterator { AsyncIterator(base: base.makeAsyncIterator()) }
}
