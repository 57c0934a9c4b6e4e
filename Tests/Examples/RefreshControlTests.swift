import FreshetSignals
import FreshetTestKit
import SignalExamples
import Testing

@Suite("Example: refresh control")
struct RefreshControlTests {
    let stage = MarbleStage()
    let control = RefreshControl()

    func pull(at frames: Int...) {
        for frame in frames {
            stage.at(frame: frame) { control.pull() }
        }
    }

    @Test("each value is shown when it arrives, and the latest again at each pull, also after the last value")
    func pulls() throws {
        pull(at: 3, 4, 7, 11)
        let values = stage.emitter("-a---b---|")
        try stage.expect(control.shown(values), "-a-aab-b---b-")
    }

    @Test("a pull before the first value has no effect")
    func early() throws {
        pull(at: 0, 1)
        let values = stage.emitter("---a---|")
        try stage.expect(control.shown(values), "---a----")
    }

    @Test("the stream runs once for both uses")
    func once() throws {
        let origin = Origin(on: stage)
        let values = Emitter<String, any Error>.once {
            try await origin.load("v", frames: 2)
            return "v"
        }
        pull(at: 4)
        try stage.expect(control.shown(values), "--v-v-")
        #expect(origin.log == ["v"])
    }

    @Test("a burst of pulls shows the value once")
    func burst() throws {
        let values = stage.emitter("-a------|")
        stage.at(frame: 3) {
            for _ in 0..<1_000 { control.pull() }
        }
        try stage.expect(control.shown(values), "-a-a----")
    }

    @Test("a failure of the stream fails the result")
    func failure() throws {
        pull(at: 2, 5)
        let values = stage.emitter("-a-x")
        try stage.expect(control.shown(values), "-aax--")
    }

    @Test("a cancelled consumer gets the end, and the stream ends, too")
    func cancelled() throws {
        let values = stage.emitter("-a---b-")
        try stage.expect(control.shown(values), "-a-|", consumer: "---!")
        #expect(stage.clock.sleeperCount == 0)
    }
}
