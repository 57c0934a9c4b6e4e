import FreshetSignals
import FreshetTestKit
import Testing

@Suite("retry(on:), as marble diagrams")
struct RetryMarbles {
    let stage = MarbleStage()
    let attempts = Attempts()
    let failures = Failures()

    /// An upstream with these attempts; the last one is repeated.
    func upstream(_ diagrams: Marbles...) -> some AsyncSequence<String, any Error> & Sendable {
        let emitters = diagrams.map { stage.emitter($0) }
        return Fresh { [attempts] in emitters[min(attempts.next(), emitters.count) - 1] }
    }

    @Test("after a failed attempt the next output begins another")
    func output() throws {
        let signal = stage.signal("                     ------s-----s-|---")
        let sequence = upstream("-a-x", "-b-x", "-c-|").retry(on: signal)
        let expected: Marbles = "                        -a-----b-----c-|"
        try stage.expect(sequence, expected)
    }

    @Test("outputs during an attempt count as one, and retry as soon as it fails")
    func during() throws {
        let signal = stage.signal("s-(ss)s-----------")
        let sequence = upstream("  -a-   -x", "-b-x").retry(on: signal, onFailure: failures.add)
        let expected: Marbles = "  -a-   --b--"
        try stage.expect(sequence, expected)
        #expect(failures.attempts == [1, 2])
    }

    @Test("an output does not disturb an attempt in progress")
    func undisturbed() throws {
        let signal = stage.signal("           -s-s-s-|")
        try stage.expect(upstream("            -a-b-c-|").retry(on: signal), "-a-b-c-|")
    }

    @Test("outputs between two attempts are one")
    func between() throws {
        let signal = stage.signal("                  -----(sss)------")
        try stage.expect(upstream("-a-x").retry(on: signal, onFailure: failures.add), "-a----a---")
        #expect(failures.attempts == [1, 2])
    }

    @Test("after the signal's end there is no retry: the last failure is thrown")
    func ended() throws {
        let signal = stage.signal("                 ----s|--------")
        try stage.expect(upstream("-a-x").retry(on: signal, onFailure: failures.add), "-a---a-x")
        #expect(failures.attempts == [1, 2])
    }

    @Test("if the signal ends while an output is awaited, the last failure is thrown then")
    func endsWhileWaiting() throws {
        let signal = stage.signal("                 -----|")
        try stage.expect(upstream("-a-x").retry(on: signal, onFailure: failures.add), "-a---x")
        #expect(failures.attempts == [1])
    }

    @Test("a replayed current value counts, once")
    func replayed() throws {
        let value = stage.currentValue("p", "-----q----")
        try stage.expect(upstream("-a-x").retry(on: value, onFailure: failures.add), "-a--a--a--")
        #expect(failures.attempts == [1, 2, 3])
    }

    @Test("the end of an attempt ends the result")
    func end() throws {
        let signal = stage.signal("                     -----s----s-")
        try stage.expect(upstream("-a-x", "-b-|").retry(on: signal), "-a----b-|")
    }

    @Test("elements of an attempt that were not taken come before its failure")
    func slow() throws {
        let signal = stage.signal("                           -s---------")
        let sequence = upstream("(ax)", "-b-|").retry(on: signal)
        try stage.expect(sequence, "-----ab-|", consumer: "-----^^^^^")
    }

    @Test("a sequence that is cancelled while it waits for an output ends")
    func cancelled() throws {
        try stage.expect(upstream("-a-x").retry(on: Signal.never), "-a---|", consumer: "-----!")
    }

    @Test("a sequence that is cancelled during an attempt ends, and no failure is reported")
    func cancelledAttempt() throws {
        let sequence = upstream("-a-----x").retry(on: Signal.never, onFailure: failures.add)
        try stage.expect(sequence, "-a--|", consumer: "----!")
        #expect(failures.attempts == [])
    }
}

/// The attempts whose failures were reported.
final class Failures: Sendable {
    private let log = Lock<[Int]>([])

    var attempts: [Int] { log.withLock { $0 } }

    func add(_ failure: any Error, attempt: Int) {
        log.withLock { $0.append(attempt) }
    }
}

/// A sequence that makes a different base for each iteration.
struct Fresh<Base: AsyncSequence & Sendable>: AsyncSequence, Sendable {
    typealias Element = Base.Element
    typealias Failure = Base.Failure

    let make: @Sendable () -> Base

    init(_ make: @escaping @Sendable () -> Base) {
        self.make = make
    }

    func makeAsyncIterator() -> Base.AsyncIterator {
        make().makeAsyncIterator()
    }
}
