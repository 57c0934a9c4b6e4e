import Testing

@testable import FreshetPipelines

@Suite("What changed parameters make of a pipeline")
struct ParameterDialogueTests {
    private static func values(_ query: String, language: String = "en") -> ParameterValues {
        ParameterValues(["query": query, "language": language])
    }

    private func talk(_ policy: RefreshPolicy = RefreshPolicy(), network: NetworkState = Dialogue.online()) -> Dialogue
    {
        Dialogue(policy, network: network, parameters: Self.values(""))
    }

    private func sets(_ query: String, language: String = "en", quiet: Double = 0) -> Dialogue.Event {
        .parameters(Self.values(query, language: language), quiet: .milliseconds(Int64(quiet * 1000)))
    }

    private func fetched(_ talk: Dialogue) -> ParameterValues? { talk.orders.last?.parameters }

    @Test("a change is a demand that names what changed, and runs with the new values, however fresh the copy is")
    func demand() throws {
        let talk = Dialogue(RefreshPolicy(freshFor: .seconds(600)), lastCheck: -1, parameters: Self.values(""))
        #expect(talk.freshness == .fresh)
        #expect(talk.at(1, sets("jazz", language: "de")) == [.starts(1, ["parameter"])])
        #expect(fetched(talk) == Self.values("jazz", language: "de"))
        let cause = try #require(talk.orders.first?.causes.first)
        #expect(cause.detail == "language, query")
        #expect(cause.kind == .demand)
        #expect(talk.at(2, .succeeds(1)) == [])
        #expect(talk.freshness == .fresh)
        #expect(talk.wake == nil)
    }

    @Test("typing has to end: one run, after the quiet of the last change, with the last values")
    func debounced() throws {
        let talk = talk()
        for (second, text) in [(0.0, "j"), (0.2, "ja"), (0.4, "jazz")] {
            #expect(talk.at(second, sets(text, quiet: 0.3)) == [])
        }
        #expect(talk.waitsFor == Wait(.quiet, until: Dialogue.instant(0.7)))
        #expect(talk.pass(until: 5) == [.init(at: 0.7, deed: .starts(1, ["parameter"]))])
        #expect(fetched(talk) == Self.values("jazz"))
        #expect(try #require(talk.orders.first?.causes.first).count == 3)
    }

    @Test("the longest quiet of what changed since counts, and that of another time does not")
    func longestQuiet() {
        let talk = talk()
        #expect(talk.at(0, sets("j", quiet: 1)) == [])
        #expect(talk.at(0.5, sets("j", language: "de", quiet: 0)) == [])
        #expect(talk.pass(until: 5) == [.init(at: 1.5, deed: .starts(1, ["parameter"]))])
        #expect(talk.at(5, .succeeds(1)) == [])
        #expect(talk.at(6, sets("j", language: "en", quiet: 0)) == [.starts(2, ["parameter"])])
    }

    @Test("a storm of signals does not hold a change back, and a change begins none")
    func storm() {
        let talk = talk(RefreshPolicy(quiet: .seconds(2), atMost: .seconds(10), freshFor: .zero))
        #expect(talk.at(0, .hears("file", at: 0)) == [.starts(1, ["file"])])
        #expect(talk.at(0.1, .succeeds(1)) == [])
        #expect(talk.at(0.2, .hears("file", at: 0.2)) == [])
        #expect(talk.at(0.3, sets("jazz")) == [.starts(2, ["file", "parameter"])])
        #expect(talk.at(0.4, .succeeds(2)) == [])
        #expect(talk.at(5, sets("rock")) == [.starts(3, ["parameter"])])
        #expect(talk.at(5.1, .succeeds(3)) == [])
        #expect(talk.at(5.2, .hears("file", at: 5.2)) == [.starts(4, ["file"])])
    }

    @Test(
        "a run with other values is superseded, each time; what it was for goes along, and its success counts for nothing"
    )
    func superseded() {
        let talk = talk()
        #expect(talk.at(0, .refresh(request: 7, force: false)) == [.starts(1, ["operator"])])
        #expect(talk.at(1, sets("a")) == [.cancels(1)])
        // It had committed before it noticed.
        #expect(talk.at(1.1, .succeeds(1)) == [.starts(2, ["operator", "parameter"])])
        #expect(talk.summaries.map(\.outcome) == [.superseded])
        for number in UInt64(2)...6 {
            let second = Double(number)
            #expect(talk.at(second, sets("a\(number)")) == [.cancels(number)])
            #expect(
                talk.at(second + 0.1, .ended(run: number, .cancelled))
                    == [.starts(number + 1, ["operator", "parameter"])])
        }
        #expect(fetched(talk) == Self.values("a6"))
        #expect(talk.at(9, .succeeds(7)) == [.answers(7, .changed)])
        #expect(talk.wake == nil)
    }

    @Test("`when-running: queue` says nothing of parameters, and typing ends no run before it is quiet")
    func untilQuiet() {
        let talk = talk(RefreshPolicy(whenRunning: .queue))
        #expect(talk.at(0, sets("a")) == [.starts(1, ["parameter"])])
        #expect(talk.at(1, sets("ab", quiet: 0.5)) == [])
        #expect(talk.at(1.2, .succeeds(1)) == [])
        #expect(talk.pass(until: 3) == [.init(at: 1.5, deed: .starts(2, ["parameter"]))])
        #expect(talk.at(4, sets("abc", quiet: 0.5)) == [])
        #expect(talk.pass(until: 6) == [.init(at: 4.5, deed: .cancels(2))])
    }

    @Test("equal values run nothing; nor do those of the last attempt, when typing comes back to them")
    func same() {
        let talk = talk()
        #expect(talk.at(0, sets("")) == [])
        #expect(talk.at(1, sets("jazz")) == [.starts(1, ["parameter"])])
        #expect(talk.at(2, sets("rock", quiet: 1)) == [])
        #expect(talk.at(2.5, sets("jazz", quiet: 1)) == [])
        #expect(talk.pass(until: 10) == [])
        #expect(talk.at(10, .succeeds(1)) == [])
        #expect(talk.at(11, sets("rock", quiet: 1), sets("jazz", quiet: 1)) == [])
        #expect(talk.pass(until: 20) == [])
        #expect(talk.wake == nil)
        #expect(talk.activity == .loaded)
    }

    @Test("a value that failed is not tried again when it is set again, and the next one is heard at once")
    func failed() {
        let talk = talk(RefreshPolicy(retry: RetryPolicy(from: .seconds(100), to: .seconds(300))))
        #expect(talk.at(0, sets("jazz")) == [.starts(1, ["parameter"])])
        #expect(talk.at(1, .fails(1, .transient)) == [])
        #expect(talk.at(2, sets("jazz")) == [])
        #expect(talk.at(3, sets("rock")) == [.starts(2, ["parameter"])])
        #expect(fetched(talk) == Self.values("rock"))
        #expect(talk.at(4, .fails(2, .refused)) == [])
        // Of these values it is the first failure.
        if case .failed(_, _, let attempts) = talk.activity {
            #expect(attempts == 1)
        } else {
            Issue.record("not failed")
        }
        #expect(talk.at(5, sets("pop")) == [.starts(3, ["parameter"])])
        #expect(talk.at(6, .succeeds(3)) == [])
        #expect(talk.activity == .loaded)
    }

    @Test("a run for another reason takes a change along while typing goes on, and answers it")
    func takenAlong() {
        let talk = talk()
        #expect(talk.at(0, sets("jazz", quiet: 1)) == [])
        #expect(talk.at(0.5, .refresh(request: nil, force: false)) == [.starts(1, ["parameter", "operator"])])
        #expect(fetched(talk) == Self.values("jazz"))
        #expect(talk.at(0.6, .succeeds(1)) == [])
        #expect(talk.pass(until: 10) == [])
    }

    @Test("without a network a change waits; changed back to what was tried last, nothing is left to do")
    func offline() {
        let talk = talk(network: Dialogue.offline())
        #expect(talk.at(0, sets("jazz")) == [])
        #expect(talk.waitsFor?.reason == .network)
        #expect(talk.at(1, sets("")) == [])
        #expect(talk.at(2, .network(Dialogue.online(epoch: 2, since: 2))) == [])
        #expect(talk.pass(until: 100) == [])

        let other = self.talk(network: Dialogue.offline())
        #expect(other.at(0, sets("jazz")) == [])
        #expect(other.at(1, .network(Dialogue.online(epoch: 2, since: 1))) == [.starts(1, ["parameter"])])
    }

    @Test("what a run was for that came to nothing is wanted still, when values change and change back")
    func wantedStill() {
        let talk = talk()
        #expect(talk.at(0, sets("jazz")) == [.starts(1, ["parameter"])])
        #expect(talk.at(1, .network(Dialogue.offline(epoch: 2, since: 1))) == [.cancels(1)])
        #expect(talk.at(1.1, .ended(run: 1, .cancelled)) == [])
        #expect(talk.at(2, sets("rock")) == [])
        #expect(talk.at(3, sets("jazz")) == [])
        let deeds = talk.at(4, .network(Dialogue.online(epoch: 3, since: 4))) + talk.pass(until: 20).map(\.deed)
        #expect(deeds == [.starts(2, ["parameter"])])
        #expect(fetched(talk) == Self.values("jazz"))
    }

    @Test("`min-interval`, `Retry-After` and a budget hold a change back; it comes with the newest values")
    func heldBack() {
        let talk = talk(RefreshPolicy(minInterval: .seconds(30)))
        #expect(talk.at(0, sets("a")) == [.starts(1, ["parameter"])])
        #expect(talk.at(1, .succeeds(1)) == [])
        #expect(talk.at(2, sets("b")) == [])
        #expect(talk.waitsFor == Wait(.interval, until: Dialogue.instant(30)))
        #expect(talk.at(3, sets("c")) == [])
        #expect(talk.pass(until: 40) == [.init(at: 30, deed: .starts(2, ["parameter"]))])
        #expect(fetched(talk) == Self.values("c"))
    }

    @Test("other values make a copy stale until they were fetched, and its age holds back no signal")
    func stale() {
        let talk = Dialogue(
            RefreshPolicy(freshFor: .seconds(600)), network: Dialogue.offline(), lastCheck: -1,
            parameters: Self.values(""))
        #expect(talk.freshness == .fresh)
        #expect(talk.at(0, sets("jazz")) == [])
        #expect(talk.freshness == .stale)
        #expect(talk.at(1, .network(Dialogue.online(epoch: 2, since: 1))) == [.starts(1, ["parameter"])])
        #expect(talk.at(2, .fails(1, .refused)) == [])
        #expect(talk.at(40, .hears("network", at: 40)) == [])
        #expect(talk.freshness == .stale)
    }

    @Test("another configuration starts nothing by itself, but a change that is held goes on to be")
    func reconfigured() {
        let talk = talk()
        #expect(talk.at(0, sets("jazz", quiet: 5)) == [])
        let settings = talk.machine.settings
        #expect(
            talk.at(1, .reconfigured(settings, sameProduct: true, parameters: Self.values("jazz"))) == [])
        #expect(talk.pass(until: 10) == [.init(at: 5, deed: .starts(1, ["parameter"]))])
        #expect(talk.at(10, .succeeds(1)) == [])
        #expect(
            talk.at(11, .reconfigured(settings, sameProduct: false, parameters: Self.values("", language: "de"))) == [])
        #expect(talk.pass(until: 20) == [])
        // What was tried with the old configuration was not tried with this one.
        #expect(talk.at(21, sets("jazz")) == [.starts(2, ["parameter"])])
        // A pipeline without parameters any more.
        #expect(talk.at(22, .succeeds(2), .reconfigured(settings, sameProduct: false)) == [])
        #expect(talk.machine.parameters == nil)
    }

    @Test("held and stopped, nothing starts; released, the change is acted on")
    func held() {
        let talk = talk()
        #expect(talk.at(0, .held(true)) == [])
        #expect(talk.at(1, sets("jazz", quiet: 0.5)) == [])
        #expect(talk.pass(until: 5) == [])
        #expect(talk.at(6, .held(false)) == [.starts(1, ["parameter"])])
        #expect(talk.at(7, .stopped) == [.cancels(1)])
        #expect(talk.at(8, sets("rock")) == [])
        #expect(talk.at(9, .ended(run: 1, .cancelled)) == [])
        #expect(talk.wake == nil)
    }
}
