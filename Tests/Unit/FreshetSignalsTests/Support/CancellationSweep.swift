import FreshetTestKit
import Testing

@testable import FreshetSignals

/// The building blocks of a sequence under ``cancellationSweep(of:events:maxJobs:sourceLocation:)``. They count their
/// subscribers, iterators and sleepers.
final class SweepStage: Sendable {
    let clock = ManualClock()
    /// Detects leaks: each `Token(stage.held)` has to be released in the end.
    let held = Token()
    /// The number of `next()` calls of probes that are in progress.
    let nextCalls = Lock(0)
    private let sources = Lock<[String: SignalSource]>([:])
    private let values = Lock<[CurrentValue<Int>]>([])

    /// The source with this name.
    func source(_ name: String) -> SignalSource {
        sources.withLock { sources in
            let source = sources[name] ?? SignalSource(name, now: { [clock] in clock.now })
            sources[name] = source
            return source
        }
    }

    /// The source's signal, with its iterators counted.
    func signal(_ name: String) -> some AsyncSequence<Void, Never> & Sendable {
        probe(source(name).signal)
    }

    /// A value whose readers are counted; `index` is the order in which the values were made.
    func value(_ initial: Int) -> CurrentValue<Int> {
        let value = CurrentValue(initial)
        values.withLock { $0.append(value) }
        return value
    }

    func value(at index: Int) -> CurrentValue<Int> {
        values.withLock { $0[index] }
    }

    /// The sequence, with its iterators and their `next()` calls counted.
    func probe<Base: AsyncSequence & Sendable>(_ base: Base) -> SweepProbe<Base> {
        SweepProbe(base: base, stage: self)
    }

    /// An emitter of numbers from 0, one at each firing of the source with this name; then the end, or a failure.
    func numbers(on name: String, count: Int, fails: Bool = false) -> some AsyncSequence<Int, any Error> & Sendable {
        let source = source(name)
        return probe(Numbers(signal: source.signal, count: count, fails: fails))
    }

    /// Descriptions of the objects that are still alive; empty if there are none.
    func leaks() -> [String] {
        var leaks: [String] = []
        if held.children > 0 { leaks.append("\(held.children) iterators or bodies") }
        if nextCalls.withLock({ $0 }) > 0 { leaks.append("\(nextCalls.withLock { $0 }) calls of next()") }
        if clock.sleeperCount > 0 { leaks.append("\(clock.sleeperCount) sleepers") }
        let subscriptions = sources.withLock { $0.values.reduce(0) { $0 + $1.fire() } }
        if subscriptions > 0 { leaks.append("\(subscriptions) subscriptions") }
        let readers = values.withLock { $0.reduce(0) { $0 + $1.readerCount } }
        if readers > 0 { leaks.append("\(readers) readers") }
        return leaks
    }
}

/// A sequence whose stage counts its iterators.
struct SweepProbe<Base: AsyncSequence & Sendable>: AsyncSequence, Sendable {
    typealias Element = Base.Element
    typealias Failure = Base.Failure

    let base: Base
    let stage: SweepStage

    func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(base: base.makeAsyncIterator(), stage: stage, token: Token(stage.held))
    }

    struct AsyncIterator: AsyncIteratorProtocol {
        var base: Base.AsyncIterator
        let stage: SweepStage
        let token: Token

        mutating func next(isolation: isolated (any Actor)? = #isolation) async throws(Failure) -> Element? {
            stage.nextCalls.withLock { $0 += 1 }
            defer { stage.nextCalls.withLock { $0 -= 1 } }
            return try await base.next(isolation: isolation)
        }
    }
}

/// The failure of a sequence of a sweep that should fail.
struct SweepFailure: Error {}

private struct Numbers: AsyncSequence, Sendable {
    typealias Element = Int
    typealias Failure = any Error

    let signal: Signal
    let count: Int
    let fails: Bool

    func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(outputs: signal.makeAsyncIterator(), count: count, fails: fails)
    }

    struct AsyncIterator: AsyncIteratorProtocol {
        var outputs: Signal.AsyncIterator
        let count: Int
        let fails: Bool
        var number = 0

        mutating func next(isolation: isolated (any Actor)? = #isolation) async throws -> Int? {
            guard await outputs.next(isolation: isolation) != nil else { return nil }
            guard number < count else {
                if fails { throw SweepFailure() }
                return nil
            }
            defer { number += 1 }
            return number
        }
    }
}

/// Plays one scenario repeatedly, job by job on one thread. It cancels the consumer before the first job, before the
/// second, and so on until the scenario ends before the cancellation; with a fast consumer and with a slow one. Then it
/// plays the scenario with a consumer that releases the iterator after its first element, after its second, and so on.
///
/// Each time `next()` has to return, and nothing may be left of the iteration: no task, no iterator, no sleeper, no
/// subscription, no reader.
///
/// - Parameters:
///   - make: Makes the sequence from a new stage.
///   - events: External events: the next one happens whenever all tasks wait.
///   - maxJobs: A scenario with more jobs than this is an error of the test.
///   - stride: How many jobs later the next play is cancelled.
/// - Returns: The number of jobs of the whole scenario, and so of cancellations.
@discardableResult
func cancellationSweep<S: AsyncSequence & Sendable>(
    of make: @escaping (SweepStage) -> S, events: [@Sendable (SweepStage) -> Void], maxJobs: Int = 2_000,
    stride: Int = 1,
    sourceLocation: SourceLocation = #_sourceLocation
) -> Int {
    var sweep = Sweep(make: make, events: events, maxJobs: maxJobs, sourceLocation: sourceLocation)
    sweep.cancelEverywhere(stride: stride, yieldsBetweenElements: 3)
    let jobs = sweep.cancelEverywhere(stride: stride, yieldsBetweenElements: 0)
    sweep.leaveEverywhere()
    return jobs
}

private struct Sweep<S: AsyncSequence & Sendable> {
    let make: (SweepStage) -> S
    let events: [@Sendable (SweepStage) -> Void]
    let maxJobs: Int
    let sourceLocation: SourceLocation
    private var isOver = false

    init(
        make: @escaping (SweepStage) -> S, events: [@Sendable (SweepStage) -> Void], maxJobs: Int,
        sourceLocation: SourceLocation
    ) {
        self.make = make
        self.events = events
        self.maxJobs = maxJobs
        self.sourceLocation = sourceLocation
    }

    @discardableResult
    mutating func cancelEverywhere(stride: Int, yieldsBetweenElements: Int) -> Int {
        var jobs = 0
        while !isOver, jobs <= maxJobs {
            let outcome = play(cancelAfter: jobs, yieldsBetweenElements: yieldsBetweenElements)
            report(outcome.leaks, "cancelled after \(jobs) jobs")
            if outcome.wasOver { return jobs }
            jobs += stride
        }
        report(isOver ? [] : ["work to do"], "after \(maxJobs) jobs")
        return jobs
    }

    mutating func leaveEverywhere() {
        var elements = 1
        while !isOver {
            let outcome = play(leaveAfter: elements)
            report(outcome.leaks, "left after \(elements) elements")
            if outcome.elements < elements { return }
            elements += 1
        }
    }

    private mutating func report(_ leaks: [String], _ moment: String) {
        guard !leaks.isEmpty, !isOver else { return }
        isOver = true
        Issue.record("\(moment) it leaves \(leaks.joined(separator: ", "))", sourceLocation: sourceLocation)
    }

    /// Plays the scenario once. Returns whether it ended before the cancellation, the delivered elements and the leaks.
    private func play(
        cancelAfter jobs: Int = .max, leaveAfter elements: Int = .max, yieldsBetweenElements: Int = 0
    ) -> (wasOver: Bool, elements: Int, leaks: [String]) {
        let executor = SteppingExecutor()
        let stage = SweepStage()
        let (delivered, returned) = (Counter(), Counter())
        let task = Self.consume(
            make(stage), on: executor, leaveAfter: elements, yieldsBetweenElements, delivered, returned)
        var rest = events[...]
        var wasOver = false
        for _ in 0..<min(jobs, maxJobs) where !wasOver {
            while !wasOver, !executor.step() {
                if let event = rest.popFirst() { event(stage) } else { wasOver = true }
            }
        }
        // A consumer that has left by itself need not be cancelled.
        if delivered.value < elements { task.cancel() }
        var leaks = executor.run() ? [] : ["jobs without an end"]
        if returned.value == 0 { leaks.append("a consumer that waits for ever") }
        leaks += stage.leaks()
        return (wasOver, delivered.value, leaks)
    }

    /// A task in a separate function, so that no other frame holds the sequence.
    private static func consume(
        _ sequence: S, on executor: SteppingExecutor, leaveAfter elements: Int, _ yieldsBetweenElements: Int,
        _ delivered: Counter, _ returned: Counter
    ) -> Task<Void, Never> {
        Task(executorPreference: executor) {
            do {
                for try await _ in sequence {
                    if delivered.increment() == elements { break }
                    for _ in 0..<yieldsBetweenElements { await Task.yield() }
                }
            } catch {
                // A failure ends the iteration, like the end.
            }
            returned.increment()
        }
    }
}
