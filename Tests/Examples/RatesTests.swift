import FreshetSignals
import FreshetTestKit
import SignalExamples
import Testing

@Suite("Example: rates")
struct RatesTests {
    /// `L` is loading, `F` failed, everything else is the loaded rates.
    static func name(_ state: Rates.State) -> String {
        switch state {
        case .loading: "L"
        case .loaded(let rates): rates.joined()
        case .failed: "F"
        }
    }

    @Test("a signal cancels the attempt in progress and begins another")
    func reload() throws {
        let stage = MarbleStage()
        let network = stage.signal("-n-------")
        let reload = stage.signal(" ------a--")
        let rates = Rates {
            try await stage.clock.sleep(for: stage.frame * 3)
            return ["r"]
        }
        let states = rates.states(networkChanged: network, reload: reload)
        try stage.expect(states, " LL--r-L--r", name: Self.name)
    }

    @Test("a failure is a state, and the next signal retries")
    func failure() throws {
        let stage = MarbleStage()
        let origin = Origin(on: stage)
        origin.takeDown("rates")
        stage.at(frame: 3) { origin.bringUp("rates") }
        let rates = Rates {
            try await origin.load("rates", frames: 2)
            return ["r"]
        }
        let states = rates.states(networkChanged: stage.signal("----n---"), reload: .never)
        try stage.expect(states, "L-F-L-r-", name: Self.name)
    }

    @Test("an unstable link costs two attempts; a reload passes immediately")
    func flapping() throws {
        let stage = MarbleStage(frame: .seconds(1))
        let network = stage.signal("-nnnnn------")
        let reload = stage.signal(" ----------a-")
        let rates = Rates { ["r"] }
        let states = rates.debouncedStates(networkChanged: network, reload: reload, clock: stage.clock)
        try stage.expect(states, "(Lr)(Lr)-----(Lr)--(Lr)-", name: Self.name)
    }

    @Test("run shows the states until its task is cancelled")
    func shown() throws {
        let executor = SerialTestExecutor()
        let network = SignalSource("network")
        try executor.run {
            await withTaskGroup(of: Void.self) { group in
                group.addTask {
                    var shown: [String] = []
                    await Rates { ["r"] }.run(networkChanged: network.signal, reload: .never) {
                        shown.append(Self.name($0))
                    }
                    #expect(shown == ["L", "r", "L", "r"])
                }
                await executor.idle()
                network.fire()
                await executor.idle()
                group.cancelAll()
            }
        }
    }

    @Test("sequences with different failure types are combined after the failure type of one was set")
    func differentFailures() throws {
        let stage = MarbleStage()
        let failing = stage.emitter("-a-x")
        let steady = CurrentValue(1).map { value throws in value }
        try stage.expect(combineLatest(failing, steady), "-a-x") { $0.0 }
    }
}
