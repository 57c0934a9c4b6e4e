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

    @Test("each value is shown when it comes, and the latest again at each pull, also after the last")
    func pulls() throws {
        pull(at: 3, 4, 7, 11)
        let values = stage.emitter("-a---b---|")
        try stage.expect(control.shown(values), "-a-aab-b---b-")
    }

    @Test("a pull before the first value shows nothing")
    func early() throws {
        pull(at: 0, 1)
        let values = stage.emitter("---a---|")
        try stage.expect(control.shown(values), "---a----")
    }

    @Test("the stream runs once for both")
    func once() throws {
        let origin = Origin(on: stage)
        let values = Emitter<String, any Error>.once {
            try await origin.load("v", frames: 2)
            return "v"
        }
        pull(at: 4)
        try stage.expect(control.shown(values), "--v-v-")
        #expect(origin.notes == ["v"])
    }

    @Test("a storm of pulls shows the value once")
    func storm() throws {
        let values = stage.emitter("-a------|")
        stage.at(frame: 3) {
            for _ in 0..<1_000 { control.pull() }
        }
        try stage.expect(control.shown(values), "-a-a----")
    }

    @Test("the stream's failure is the result's")
    func failure() throws {
        pull(at: 2, 5)
        let values = stage.emitter("-a-x")
        try stage.expect(control.shown(values), "-aax--")
    }

    @Test("cancelled, it ends, and the stream with it")
    func cancelled() throws {
        let values = stage.emitter("-a---b-")
        try stage.expect(control.shown(values), "-a-|", consumer: "---!")
        #expect(stage.clock.sleeperCount == 0)
    }
}
