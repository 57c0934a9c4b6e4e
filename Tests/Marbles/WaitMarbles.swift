import FreshetSignals
import FreshetTestKit
import Testing

@Suite("wait(untilOutputFrom:), as marble diagrams")
struct WaitMarbles {
    let stage = MarbleStage()

    @Test("the upstream begins with the first output, and further ones are ignored")
    func waits() throws {
        let signal = stage.signal("   ---s--s---s-")
        let upstream = stage.emitter("    -a-b-c-|")
        let expected: Marbles = "     ----a-b-c-|"
        try stage.expect(upstream.wait(untilOutputFrom: signal), expected)
    }

    @Test("a hot upstream is received from the output on")
    func hot() throws {
        let signal = stage.signal("   ---s----")
        let other = stage.signal("    a-b-c-d|")
        let expected: Marbles = "     ----o-o|"
        try stage.expect(other.wait(untilOutputFrom: signal), expected)
    }

    @Test("an output that already exists ends the wait immediately")
    func present() throws {
        let upstream = stage.emitter("-a-|")
        try stage.expect(upstream.wait(untilOutputFrom: CurrentValue(1)), "-a-|")
    }

    @Test("the signal's end after its output is ignored")
    func signalEnds() throws {
        let signal = stage.signal("   -s-|-----")
        let upstream = stage.emitter("  --a--b-|")
        let expected: Marbles = "     ---a--b-|"
        try stage.expect(upstream.wait(untilOutputFrom: signal), expected)
    }

    @Test("a signal that ends without an output ends the result")
    func noOutput() throws {
        let signal = stage.signal("---|--")
        let upstream = stage.emitter("a-b-|")
        try stage.expect(upstream.wait(untilOutputFrom: signal), "---|")
    }

    @Test("a failure of the upstream fails the result")
    func failure() throws {
        let signal = stage.signal("   --s----")
        let upstream = stage.emitter("   a-x")
        try stage.expect(upstream.wait(untilOutputFrom: signal), "--a-x")
    }

    @Test("a sequence that is cancelled during the wait ends")
    func cancelled() throws {
        let signal = stage.signal("   -----s")
        let upstream = stage.emitter("     a--")
        try stage.expect(upstream.wait(untilOutputFrom: signal), "---|--", consumer: "---!")
    }

    @Test("an output before the consumer's first call ends the wait")
    func late() throws {
        let signal = stage.signal("   -s-----")
        let upstream = stage.emitter("    a-b|")
        let consumer: Marbles = "     ----^^--^"
        let expected: Marbles = "     ----a-b-|"
        try stage.expect(upstream.wait(untilOutputFrom: signal), expected, consumer: consumer)
    }
}
