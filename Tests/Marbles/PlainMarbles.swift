import FreshetSignals
import FreshetTestKit
import Testing

@Suite("prepend, scan and replaceError, as marble diagrams")
struct PlainMarbles {
    let stage = MarbleStage()

    @Test("prepended values come first, in their order")
    func prepend() throws {
        let upstream = stage.emitter("-   -a-b|")
        let expected: Marbles = "     (pq)-a-b|"
        try stage.expect(upstream.prepend("p", "q"), expected)
    }

    @Test("a firing before the prepended values were taken is received")
    func prependedSignal() throws {
        let signal = stage.signal("-s---|  ")
        let consumer: Marbles = "  --^-^-^^"
        try stage.expect(signal.prepend(()), "  --o-o-|", consumer: consumer)
    }

    @Test("prepending no values changes nothing")
    func prependNothing() throws {
        try stage.expect(stage.emitter("-a-x").prepend(), "-a-x")
    }

    @Test("there is one result for each element; the initial one is not emitted")
    func scan() throws {
        let upstream = stage.emitter(" -a--b-c|")
        let expected: Marbles = "     -{0a}--{0ab}-{0abc}|"
        try stage.expect(upstream.scan("0") { $0 + $1 }, expected)
    }

    @Test("scan passes a failure on")
    func scanFails() throws {
        try stage.expect(stage.emitter("-a-x").scan(0) { count, _ in count + 1 }, "-1-x")
    }

    @Test("a failure is replaced by a value, then the result ends")
    func replaceError() throws {
        try stage.expect(stage.emitter("-a-x").replaceError(with: "r"), "-a-(r|)")
    }

    @Test("without a failure nothing is replaced")
    func replaceNothing() throws {
        try stage.expect(stage.emitter("-a-|").replaceError(with: "r"), "-a-|")
        let other = MarbleStage()
        try other.expect(other.signal("-a-|").replaceError(with: ()), "-o-|")
    }

    @Test("a replacement is computed from the failure when it happens")
    func replaceComputed() throws {
        let attempts = Attempts()
        let sequence = stage.emitter("-a-x").replaceError { "\($0 is MarbleFailure)\(attempts.next())" }
        try stage.expect(sequence, "-a-({true1}|)")
    }
}
