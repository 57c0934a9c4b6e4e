import FreshetSignals
import FreshetTestKit
import Testing

@Suite("publish and publishAndRepeat, as marble diagrams")
struct PublishMarbles {
    let stage = MarbleStage()

    @Test("there is a run at the start, then one for each output, without elements of the previous run")
    func repeated() throws {
        let signal = stage.signal("  ----s---------|")
        let run = stage.emitter("    -a-b-c|")
        // the second run            ----(-a-b-c|)
        let expected: Marbles = "    -a-b-a-b-c----|"
        try stage.expect(publishAndRepeat(onOutputFrom: signal) { run }, expected)
    }

    @Test("publish has no run before the first output")
    func published() throws {
        let signal = stage.signal("  ----s---------|")
        let run = stage.emitter("        -a-b-c|")
        let expected: Marbles = "    -----a-b-c----|"
        try stage.expect(publish(onOutputFrom: signal) { run }, expected)
    }

    @Test("after the signal's end the run can finish")
    func signalEnds() throws {
        let signal = stage.signal("  -s-|")
        let run = stage.emitter("     -a-b-c|")
        let expected: Marbles = "    --a-b-c|"
        try stage.expect(publish(onOutputFrom: signal) { run }, expected)
    }

    @Test("without a signal publish is empty")
    func publishWithoutSignal() throws {
        let run = stage.emitter("-a-b|")
        try stage.expect(publish(onOutputFrom: nil) { run }, "|")
    }

    @Test("without a signal publishAndRepeat runs once")
    func repeatWithoutSignal() throws {
        let run = stage.emitter("-a-b|")
        try stage.expect(publishAndRepeat(onOutputFrom: nil) { run }, "-a-b|")
    }

    @Test("only a failure of the latest run counts; it ends the result")
    func failure() throws {
        let signal = stage.signal("  ----s----s------s-|")
        let run = stage.emitter("    -a---x")
        // Each of the first two runs would fail after the output that supersedes it.
        let expected: Marbles = "    -a---a----a---x----"
        try stage.expect(publishAndRepeat(onOutputFrom: signal) { run }, expected)
    }

    @Test("a failure that the body handles lets the next output run again")
    func handledFailure() throws {
        let signal = stage.signal("                -----s-|")
        let run = stage.emitter("                  -a-|")
        let attempts = Attempts()
        try stage.expect(
            publishAndRepeat(onOutputFrom: signal) {
                attempts.next() == 1 ? Emitter.once { "f" } : run
            }, "                                   f-----a-|")
    }

    @Test("a body that throws before it makes a sequence fails the result")
    func bodyThrows() throws {
        let signal = stage.signal("             --s---")
        let run = stage.emitter("               -a|")
        let attempts = Attempts()
        try stage.expect(
            publishAndRepeat(onOutputFrom: signal) { () throws(any Error) in
                if attempts.next() == 2 { throw MarbleFailure() }
                return run
            }, "                                -ax---")
    }

    @Test("outputs at one instant are one")
    func burst() throws {
        let signal = stage.signal("  ----(sss)-|")
        let run = stage.emitter("    --a|")
        try stage.expect(publishAndRepeat(onOutputFrom: signal) { run }, "    --a-  --a|")
    }

    @Test("the run at the start answers the current value of a CurrentValue")
    func currentValueAsSignal() throws {
        let signal = stage.currentValue("p", "----q-------")
        let run = stage.emitter("             -a-b-c|")
        let expected: Marbles = "             -a-b-a-b-c--"
        try stage.expect(publishAndRepeat(onOutputFrom: signal) { run }, expected)
    }

    @Test("publish treats the current value of a CurrentValue as an output")
    func publishOnCurrentValue() throws {
        let signal = stage.currentValue("p", "----q-------")
        let run = stage.emitter("             -a-b-c|")
        let expected: Marbles = "             -a-b-a-b-c--"
        try stage.expect(publish(onOutputFrom: signal) { run }, expected)
    }

    @Test("a run is one element ahead of a slow consumer; an output drops the held element")
    func ahead() throws {
        let signal = stage.signal("  -----s---------")
        let run = stage.emitter("    (abc)----------")
        let consumer: Marbles = "    ^------^-^-^---"
        let expected: Marbles = "    a------a-b-c---"
        try stage.expect(publishAndRepeat(onOutputFrom: signal) { run }, expected, consumer: consumer)
    }

    @Test("a cancelled consumer gets the end")
    func cancelled() throws {
        let signal = stage.signal("  -----s---------")
        let run = stage.emitter("    -a-b-c-d-------")
        let consumer: Marbles = "    ----!"
        let expected: Marbles = "    -a-b|----------"
        try stage.expect(publishAndRepeat(onOutputFrom: signal) { run }, expected, consumer: consumer)
    }
}

/// Counts the runs of a body.
final class Attempts: Sendable {
    private let count = Lock(0)

    func next() -> Int {
        count.withLock { count in
            count += 1
            return count
        }
    }
}
