import FreshetTestKit
import Testing

@testable import FreshetSignals

/// What a sequence under a ``cancellationSweep(of:events:maxJobs:sourceLocation:)`` is made from. Whoever subscribes,
/// iterates or sleeps here is counted.
final class SweepStage: Sendable {
    let clock = ManualClock()
    /// Held by whoever is not to be leaked: each `Token(stage.held)` has to be gone in the end.
    let held = Token()
    /// `next()` calls of probes that are under way.
    let asking = Lock(0)
    private let sources = Lock<[String: SignalSource]>([:])
    private let values = Lock<[CurrentValue<Int>]>([])

    /// The source of this name.
    func source(_ name: String) -> SignalSource {
        sources.withLock { sources in
            let source = sources[name] ?? SignalSource(name, now: { [clock] in clock.now })
            sources[name] = source
            return source
        }
    }

    /// Its signal, with its iterators counted.
    func signal(_ name: String) -> some AsyncSequence<Void, Never> & Sendable {
        probe(source(name).signal)
    }

    /// A value whose readers are counted; `index` counts them in the order of their making.
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

    /// An emitter of numbers from 0, one each time that the source of this name fires; then the end, or a failure.
    func numbers(on name: String, count: Int, fails: Bool = false) -> some AsyncSequence<Int, any Error> & Sendable {
        let source = source(name)
        return probe(Numbers(signal: source.signal, count: count, fails: fails))
    }

    /// What is still alive, in words; empty if nothing is.
    func leaks() -> [String] {
        var leaks: [String] = []
        if held.children > 0 { leaks.append("\(held.children) iterators or bodies") }
        if asking.withLock({ $0 }) > 0 { leaks.append("\(asking.withLock { $0 }) calls of next()") }
        if clock.sleeperCount > 0 { leaks.append("\(clock.sleeperCount) sleepers") }
        let subscriptions = sources.withLock { $0.values.reduce(0) { $0 + $1.fire() } }
        if subscriptions > 0 { leaks.append("\(subscriptions) subscriptions") }
        let readers = values.withLock { $0.reduce(0) { $0 + $1.readerCount } }
        if readers > 0 { leaks.append("\(readers) readers") }
        return leaks
    }
}

/// A sequence whose iterators are counted by their stage.
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
            stage.asking.withLock { $0 += 1 }
            defer { stage.asking.withLock { $0 -= 1 } }
            return try await base.next(isolation: isolation)
        }
    }
}

/// How a sweep's stage ends a sequence that is to fail.
struct SweepFault: Error {}

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
                if fails { throw SweepFault() }
                return nil
            }
            defer { number += 1 }
            return number
        }
    }
}

/// Plays one scenario again and again, job by job on one thread, and cancels its consumer before the first job, before
/// the second, and so on until the play is over before the cancellation. Each time `next()` has to return, and nothing
/// may be left of the iteration: no task, no iterator, no sleeper, no subscription, no reader.
///
/// - Parameters:
///   - make: Makes what is consumed from a new stage.
///   - events: What happens from outside: the next one whenever all waits.
///   - maxJobs: A play of more jobs than this is an error of the test.
/// - Returns: How many jobs the whole play took, and so how often it was cancelled.
@discardableResult
func cancellationSweep<S: AsyncSequence & Sendable>(
    of make: (SweepStage) -> S, events: [(SweepStage) -> Void], maxJobs: Int = 2_000,
    sourceLocation: SourceLocation = #_sourceLocation
) -> Int {
    var jobs = 0
    while jobs < maxJobs {
        let (wasOver, leaks) = play(make, events: events, cancelAfter: jobs)
        if !leaks.isEmpty {
            let what = leaks.joined(separator: ", ")
            Issue.record("cancelled after \(jobs) jobs it leaves \(what)", sourceLocation: sourceLocation)
            return jobs
        }
        if wasOver { return jobs }
        jobs += 1
    }
    Issue.record("not over after \(maxJobs) jobs", sourceLocation: sourceLocation)
    return jobs
}

/// One play. Returns whether nothing was left to do before the cancellation, and what was leaked.
private func play<S: AsyncSequence & Sendable>(
    _ make: (SweepStage) -> S, events: [(SweepStage) -> Void], cancelAfter jobs: Int
) -> (wasOver: Bool, leaks: [String]) {
    let executor = SteppingExecutor()
    let stage = SweepStage()
    let returned = Counter()
    let task = startConsumer(of: make(stage), on: executor, returned)
    var rest = events[...]
    var wasOver = false
    for _ in 0..<jobs where !wasOver {
        while !wasOver, !executor.step() {
            if let event = rest.popFirst() { event(stage) } else { wasOver = true }
        }
    }
    task.cancel()
    var leaks = executor.run() ? [] : ["jobs without an end"]
    if returned.value == 0 { leaks.append("a consumer that waits for ever") }
    leaks += stage.leaks()
    return (wasOver, leaks)
}

/// A task of its own function, so that no other frame holds the sequence.
private func startConsumer<S: AsyncSequence & Sendable>(
    of sequence: S, on executor: SteppingExecutor, _ returned: Counter
) -> Task<Void, Never> {
    Task(executorPreference: executor) {
        do {
            for try await _ in sequence {}
        } catch {
            // A failure ends the iteration, as the end does.
        }
        returned.increment()
    }
}
