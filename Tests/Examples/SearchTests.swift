import FreshetSignals
import FreshetTestKit
import SignalExamples
import Testing

/// The quiet period is three frames, a search takes two. `L` is loading, `F` failed, everything else is the result.
@Suite("Example: search")
struct SearchTests {
    let stage = MarbleStage()
    let origin: Origin
    let search: Search
    let reload = SignalSource("reload")

    init() {
        let origin = Origin(on: stage)
        self.origin = origin
        search = Search { query in
            try await origin.load("\(query.text)/\(query.shelf)", frames: 2)
            return [query.text, query.shelf]
        }
    }

    func type(_ text: String, at frame: Int) {
        stage.at(frame: frame) { search.text.value = text }
    }

    func expect(_ expected: Marbles, consumer: Marbles = "") throws {
        let states = search.states(reload: reload.signal, quiet: stage.frame * 3, clock: stage.clock)
        try stage.expect(states, expected, consumer: consumer) { state in
            switch state {
            case .loading: "L"
            case .loaded(let found): found.joined(separator: "/")
            case .failed: "F"
            }
        }
        #expect(stage.clock.sleeperCount == 0, "a sleeper is left")
    }

    @Test("the search runs when both parameters have not changed for the quiet period")
    func rest() throws {
        type("c", at: 1)
        type("ca", at: 2)
        type("cat", at: 3)
        stage.at(frame: 5) { search.shelf.value = "new" }
        try expect("--------L-{cat/new}---")
        #expect(origin.log == ["cat/new"])
    }

    @Test("a query that is unchanged, or was changed back, does not run again")
    func repetition() throws {
        type("cat", at: 0)
        type("cat", at: 2)
        type("cats", at: 7)
        type("cat", at: 8)
        try expect("---L-{cat/all}-----------")
        #expect(origin.log == ["cat/all"])
    }

    @Test("the next query cancels the search in progress")
    func cancelledByNext() throws {
        type("cat", at: 0)
        type("dog", at: 1)
        stage.at(frame: 2) { search.shelf.value = "new" }
        stage.at(frame: 6) { reload.fire() }
        try expect("-----LL-{dog/new}---")
        #expect(origin.log == ["dog/new", "dog/new cancelled", "dog/new"])
    }

    @Test("a query that becomes stable during the search of the previous one replaces it")
    func replaced() throws {
        type("cat", at: 0)
        stage.at(frame: 1) { search.shelf.value = "new" }
        stage.at(frame: 5) { reload.fire() }
        type("dog", at: 3)
        try expect("----  -  -L-{dog/new}")
    }

    @Test("a failed attempt is a state, and the next query and the next reload still run")
    func failure() throws {
        origin.takeDown("cat/all")
        type("cat", at: 0)
        stage.at(frame: 6) { origin.bringUp("cat/all") }
        stage.at(frame: 7) { reload.fire() }
        stage.at(frame: 10) { origin.takeDown("cat/all") }
        stage.at(frame: 11) { reload.fire() }
        type("dog", at: 14)
        try expect("---L-F-L-{cat/all}-L-F---L-{dog/all}")
    }

    @Test("a reload runs immediately, with the last query")
    func reloadAtOnce() throws {
        type("cat", at: 0)
        stage.at(frame: 8) { reload.fire() }
        try expect("---L-{cat/all}--L-{cat/all}")
    }

    @Test("a burst of changes is one search")
    func burst() throws {
        stage.at(frame: 1) {
            for number in 0...1_000 { search.text.value = "\(number)" }
        }
        try expect("----L-{1000/all}---")
        #expect(origin.log == ["1000/all"])
    }

    @Test("a cancelled consumer gets the end when the search has ended")
    func cancelled() throws {
        type("cat", at: 0)
        try expect("---L|", consumer: "----!")
        #expect(origin.log == ["cat/all", "cat/all cancelled"])
    }
}
