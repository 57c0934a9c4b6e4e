import FreshetSignals
import FreshetTestKit
import SignalExamples
import Testing

/// Topics take two frames to load, pages of `a` one and pages of `b` three; each topic has three pages of one medium. A
/// state is shown as `a12 b?`: two media of `a`, none of `b`. A leading `L` means loading, `F` failed; `*` marks a row
/// with an error.
@Suite("Example: home page")
struct HomePageTests {
    let stage = MarbleStage()
    let origin: Origin
    let home: HomePage
    let appeared = SignalSource("appeared")
    let networkChanged = SignalSource("network changed")
    let pulled = SignalSource("pulled")

    init() {
        let origin = Origin(on: stage)
        self.origin = origin
        home = HomePage(
            topics: .once {
                try await origin.load("topics", frames: 2)
                return ["a", "b"]
            },
            media: { topic, cursor in
                let number = cursor ?? 1
                try await origin.load("\(topic)\(number)", frames: topic == "a" ? 1 : 3)
                return Page(["\(number)"], next: number < 3 ? number + 1 : nil)
            })
    }

    func expect(_ expected: Marbles, consumer: Marbles = "") throws {
        let states = home.states(
            appeared: appeared.signal, networkChanged: networkChanged.signal, pulled: pulled.signal)
        try stage.expect(states, expected, consumer: consumer) { state in
            let rows = state.rows.map {
                $0.topic + ($0.media?.joined() ?? "?") + ($0.error == nil ? "" : "*")
            }
            switch state {
            case .loading: return "L" + rows.joined(separator: " ")
            case .loaded: return rows.joined(separator: " ")
            case .failed: return "F" + rows.joined(separator: " ")
            }
        }
        #expect(stage.clock.sleeperCount == 0, "a sleeper is left")
    }

    @Test("rows begin as placeholders, in order, and fill in as they load; each request loads one page of a row")
    func fillingIn() throws {
        stage.at(frame: 7) { home.loadMore(of: "a") }
        stage.at(frame: 9) { home.loadMore(of: "b") }
        try expect("L-{a? b?}{a1 b?}-{a1 b1}--{a12 b1}---{a12 b12}")
    }

    @Test("each of the three signals reloads and cancels all loads in progress")
    func reload() throws {
        stage.at(frame: 1) { networkChanged.fire() }
        stage.at(frame: 5) { appeared.fire() }
        stage.at(frame: 6) { pulled.fire() }
        try expect("L--{a? b?}{a1 b?}{La1 b?}--{a1 b?}--{a1 b1}")
        #expect(
            origin.log == [
                "topics", "topics cancelled", "topics", "a1", "b1", "b1 cancelled", "topics", "topics cancelled",
                "topics", "a1", "b1",
            ])
    }

    @Test("a reload also cancels a requested page")
    func reloadDuringPage() throws {
        stage.at(frame: 6) { home.loadMore(of: "b") }
        stage.at(frame: 7) { pulled.fire() }
        try expect("L-{a? b?}{a1 b?}-{a1 b1}-{La1 b1}-{a1 b1}---")
        #expect(origin.log.contains("b2 cancelled"))
    }

    @Test("a failing row keeps its last media, and recovers with the next reload")
    func failingRow() throws {
        stage.at(frame: 6) { origin.takeDown("b1") }
        stage.at(frame: 7) { pulled.fire() }
        stage.at(frame: 13) { origin.bringUp("b1") }
        stage.at(frame: 14) { networkChanged.fire() }
        try expect("L-{a? b?}{a1 b?}-{a1 b1}-{La1 b1}-{a1 b1}--{a1 b1*}-{La1 b1*}-{a1 b1}---")
    }

    @Test("a failed further page leaves the row unchanged and can be requested again")
    func failingPage() throws {
        origin.takeDown("a2")
        stage.at(frame: 6) { home.loadMore(of: "a") }
        stage.at(frame: 8) { origin.bringUp("a2") }
        stage.at(frame: 9) { home.loadMore(of: "a") }
        try expect("L-{a? b?}{a1 b?}-{a1 b1}----{a12 b1}")
    }

    @Test("a row that never had media shows its error instead of a placeholder, without effect on other rows")
    func invalidFromTheStart() throws {
        origin.takeDown("a1")
        try expect("L-{a? b?}{a?* b?}-{a?* b1}")
    }

    @Test("a failure of the topics is a state that keeps the rows, and does not end the sequence")
    func failingTopics() throws {
        origin.takeDown("topics")
        stage.at(frame: 3) { origin.bringUp("topics") }
        stage.at(frame: 4) { pulled.fire() }
        stage.at(frame: 10) { origin.takeDown("topics") }
        stage.at(frame: 11) { appeared.fire() }
        try expect("L-F-L-{a? b?}{a1 b?}-{a1 b1}-{La1 b1}-{Fa1 b1}---")
    }

    @Test("a burst of signals at one instant is one reload")
    func burst() throws {
        stage.at(frame: 3) {
            for _ in 0..<1_000 {
                appeared.fire()
                networkChanged.fire()
                pulled.fire()
            }
        }
        try expect("L-{a? b?}{La? b?}-{a? b?}{a1 b?}-{a1 b1}---")
        #expect(origin.log.count { $0 == "topics" } == 2)
    }

    @Test("a cancelled consumer gets the end when all loads have ended")
    func cancelled() throws {
        try expect("L-{a? b?}{a1 b?}|", consumer: "----!")
        #expect(origin.log.last == "b1 cancelled")
    }
}
