import FreshetModel
import Testing

@testable import FreshetPipelines

@Suite("Changes of parameters")
struct ParameterDialogueTests {
    private static func values(_ query: String, language: String = "en") -> ParameterValues {
        ParameterValues(["query": query, "language": language])
    }

    private func dialogue(_ policy: RefreshPolicy = RefreshPolicy(), network: NetworkState = Dialogue.online())
        -> Dialogue
    {
        Dialogue(policy, network: network, parameters: Self.values(""))
    }

    private func sets(_ query: String, language: String = "en", quiet: Double = 0) -> Dialogue.Event {
        .parameters(Self.values(query, language: language), quiet: .milliseconds(Int64(quiet * 1000)))
    }

    private func fetched(_ dialogue: Dialogue) -> ParameterValues? { dialogue.orders.last?.parameters }

    @Test("a change is a request that names the parameters, and runs with the new values, however fresh the copy is")
    func request() throws {
        let dialogue = Dialogue(RefreshPolicy(freshFor: .seconds(600)), lastCheck: -1, parameters: Self.values(""))
        #expect(dialogue.freshness == .fresh)
        #expect(dialogue.at(1, sets("jazz", language: "de")) == [.starts(1, ["parameter"])])
        #expect(fetched(dialogue) == Self.values("jazz", language: "de"))
        let cause = try #require(dialogue.orders.first?.causes.first)
        #expect(cause.detail == "language, query")
        #expect(cause.kind == .request)
        #expect(dialogue.at(2, .succeeds(1)) == [])
        #expect(dialogue.freshness == .fresh)
        #expect(dialogue.wake == nil)
    }

    @Test("changes are debounced: one run, after the quiet period of the last change, with the last values")
    func debounced() throws {
        let dialogue = dialogue()
        for (second, text) in [(0.0, "j"), (0.2, "ja"), (0.4, "jazz")] {
            #expect(dialogue.at(second, sets(text, quiet: 0.3)) == [])
        }
        #expect(dialogue.waitsFor == Wait(.quiet, until: Dialogue.instant(0.7)))
        #expect(dialogue.pass(until: 5) == [.init(at: 0.7, output: .starts(1, ["parameter"]))])
        #expect(fetched(dialogue) == Self.values("jazz"))
        #expect(try #require(dialogue.orders.first?.causes.first).count == 3)
    }

    @Test("the longest quiet period of the current changes counts, and not that of earlier ones")
    func longestQuiet() {
        let dialogue = dialogue()
        #expect(dialogue.at(0, sets("j", quiet: 1)) == [])
        #expect(dialogue.at(0.5, sets("j", language: "de", quiet: 0)) == [])
        #expect(dialogue.pass(until: 5) == [.init(at: 1.5, output: .starts(1, ["parameter"]))])
        #expect(dialogue.at(5, .succeeds(1)) == [])
        #expect(dialogue.at(6, sets("j", language: "en", quiet: 0)) == [.starts(2, ["parameter"])])
    }

    @Test("a burst of signals does not delay a change, and a change begins no burst")
    func burst() {
        let dialogue = dialogue(RefreshPolicy(quiet: .seconds(2), atMost: .seconds(10), freshFor: .zero))
        #expect(dialogue.at(0, .receives("file", at: 0)) == [.starts(1, ["file"])])
        #expect(dialogue.at(0.1, .succeeds(1)) == [])
        #expect(dialogue.at(0.2, .receives("file", at: 0.2)) == [])
        #expect(dialogue.at(0.3, sets("jazz")) == [.starts(2, ["file", "parameter"])])
        #expect(dialogue.at(0.4, .succeeds(2)) == [])
        #expect(dialogue.at(5, sets("rock")) == [.starts(3, ["parameter"])])
        #expect(dialogue.at(5.1, .succeeds(3)) == [])
        #expect(dialogue.at(5.2, .receives("file", at: 5.2)) == [.starts(4, ["file"])])
    }

    @Test(
        "a run with other values is superseded each time; its causes stay, and its success does not count"
    )
    func superseded() {
        let dialogue = dialogue()
        #expect(dialogue.at(0, .refresh(request: 7, force: false)) == [.starts(1, ["operator"])])
        #expect(dialogue.at(1, sets("a")) == [.cancels(1)])
        // The run had committed before it was cancelled.
        #expect(dialogue.at(1.1, .succeeds(1)) == [.starts(2, ["operator", "parameter"])])
        #expect(dialogue.summaries.map(\.outcome) == [.superseded])
        for number in UInt64(2)...6 {
            let second = Double(number)
            #expect(dialogue.at(second, sets("a\(number)")) == [.cancels(number)])
            #expect(
                dialogue.at(second + 0.1, .ended(run: number, .cancelled))
                    == [.starts(number + 1, ["operator", "parameter"])])
        }
        #expect(fetched(dialogue) == Self.values("a6"))
        #expect(dialogue.at(9, .succeeds(7)) == [.answers(7, .changed)])
        #expect(dialogue.wake == nil)
    }

    @Test(
        "`when-running: queue` does not apply to parameters, and a change ends no run before its quiet period is over")
    func untilQuiet() {
        let dialogue = dialogue(RefreshPolicy(whenRunning: .queue))
        #expect(dialogue.at(0, sets("a")) == [.starts(1, ["parameter"])])
        #expect(dialogue.at(1, sets("ab", quiet: 0.5)) == [])
        #expect(dialogue.at(1.2, .succeeds(1)) == [])
        #expect(dialogue.pass(until: 3) == [.init(at: 1.5, output: .starts(2, ["parameter"]))])
        #expect(dialogue.at(4, sets("abc", quiet: 0.5)) == [])
        #expect(dialogue.pass(until: 6) == [.init(at: 4.5, output: .cancels(2))])
    }

    @Test("equal values run nothing; neither do the values of the last attempt when they are set again")
    func same() {
        let dialogue = dialogue()
        #expect(dialogue.at(0, sets("")) == [])
        #expect(dialogue.at(1, sets("jazz")) == [.starts(1, ["parameter"])])
        #expect(dialogue.at(2, sets("rock", quiet: 1)) == [])
        #expect(dialogue.at(2.5, sets("jazz", quiet: 1)) == [])
        #expect(dialogue.pass(until: 10) == [])
        #expect(dialogue.at(10, .succeeds(1)) == [])
        #expect(dialogue.at(11, sets("rock", quiet: 1), sets("jazz", quiet: 1)) == [])
        #expect(dialogue.pass(until: 20) == [])
        #expect(dialogue.wake == nil)
        #expect(dialogue.activity == .loaded)
    }

    @Test("a failed value is not retried when it is set again, and the next value takes effect immediately")
    func failed() {
        let dialogue = dialogue(RefreshPolicy(retry: RetryPolicy(from: .seconds(100), to: .seconds(300))))
        #expect(dialogue.at(0, sets("jazz")) == [.starts(1, ["parameter"])])
        #expect(dialogue.at(1, .fails(1, .transient)) == [])
        #expect(dialogue.at(2, sets("jazz")) == [])
        #expect(dialogue.at(3, sets("rock")) == [.starts(2, ["parameter"])])
        #expect(fetched(dialogue) == Self.values("rock"))
        #expect(dialogue.at(4, .fails(2, .refused)) == [])
        // It is the first failure of these values.
        if case .failed(_, _, let attempts) = dialogue.activity {
            #expect(attempts == 1)
        } else {
            Issue.record("not failed")
        }
        #expect(dialogue.at(5, sets("pop")) == [.starts(3, ["parameter"])])
        #expect(dialogue.at(6, .succeeds(3)) == [])
        #expect(dialogue.activity == .loaded)
    }

    @Test("a run for another reason takes a held change along, and answers it")
    func takenAlong() {
        let dialogue = dialogue()
        #expect(dialogue.at(0, sets("jazz", quiet: 1)) == [])
        #expect(dialogue.at(0.5, .refresh(request: nil, force: false)) == [.starts(1, ["parameter", "operator"])])
        #expect(fetched(dialogue) == Self.values("jazz"))
        #expect(dialogue.at(0.6, .succeeds(1)) == [])
        #expect(dialogue.pass(until: 10) == [])
    }

    @Test("without a network a change waits; if the last tried values are set again, no run is left")
    func offline() {
        let dialogue = dialogue(network: Dialogue.offline())
        #expect(dialogue.at(0, sets("jazz")) == [])
        #expect(dialogue.waitsFor?.reason == .network)
        #expect(dialogue.at(1, sets("")) == [])
        #expect(dialogue.at(2, .network(Dialogue.online(epoch: 2, since: 2))) == [])
        #expect(dialogue.pass(until: 100) == [])

        let other = self.dialogue(network: Dialogue.offline())
        #expect(other.at(0, sets("jazz")) == [])
        #expect(other.at(1, .network(Dialogue.online(epoch: 2, since: 1))) == [.starts(1, ["parameter"])])
    }

    @Test("the causes of a failed run stay when values change and change back")
    func causesStay() {
        let dialogue = dialogue()
        #expect(dialogue.at(0, sets("jazz")) == [.starts(1, ["parameter"])])
        #expect(dialogue.at(1, .network(Dialogue.offline(epoch: 2, since: 1))) == [.cancels(1)])
        #expect(dialogue.at(1.1, .ended(run: 1, .cancelled)) == [])
        #expect(dialogue.at(2, sets("rock")) == [])
        #expect(dialogue.at(3, sets("jazz")) == [])
        let outputs =
            dialogue.at(4, .network(Dialogue.online(epoch: 3, since: 4))) + dialogue.pass(until: 20).map(\.output)
        #expect(outputs == [.starts(2, ["parameter"])])
        #expect(fetched(dialogue) == Self.values("jazz"))
    }

    @Test("`min-interval`, `Retry-After` and a budget delay a change; it runs with the newest values")
    func heldBack() {
        let dialogue = dialogue(RefreshPolicy(minInterval: .seconds(30)))
        #expect(dialogue.at(0, sets("a")) == [.starts(1, ["parameter"])])
        #expect(dialogue.at(1, .succeeds(1)) == [])
        #expect(dialogue.at(2, sets("b")) == [])
        #expect(dialogue.waitsFor == Wait(.interval, until: Dialogue.instant(30)))
        #expect(dialogue.at(3, sets("c")) == [])
        #expect(dialogue.pass(until: 40) == [.init(at: 30, output: .starts(2, ["parameter"]))])
        #expect(fetched(dialogue) == Self.values("c"))
    }

    @Test("other values make a copy stale until they were fetched, and its age does not skip signals")
    func stale() {
        let dialogue = Dialogue(
            RefreshPolicy(freshFor: .seconds(600)), network: Dialogue.offline(), lastCheck: -1,
            parameters: Self.values(""))
        #expect(dialogue.freshness == .fresh)
        #expect(dialogue.at(0, sets("jazz")) == [])
        #expect(dialogue.freshness == .stale)
        #expect(dialogue.at(1, .network(Dialogue.online(epoch: 2, since: 1))) == [.starts(1, ["parameter"])])
        #expect(dialogue.at(2, .fails(1, .refused)) == [])
        #expect(dialogue.at(40, .receives("network", at: 40)) == [])
        #expect(dialogue.freshness == .stale)
    }

    @Test("another configuration starts nothing by itself, but a held change stays held")
    func reconfigured() {
        let dialogue = dialogue()
        #expect(dialogue.at(0, sets("jazz", quiet: 5)) == [])
        let settings = dialogue.machine.settings
        #expect(
            dialogue.at(1, .reconfigured(settings, sameProduct: true, parameters: Self.values("jazz"))) == [])
        #expect(dialogue.pass(until: 10) == [.init(at: 5, output: .starts(1, ["parameter"]))])
        #expect(dialogue.at(10, .succeeds(1)) == [])
        #expect(
            dialogue.at(11, .reconfigured(settings, sameProduct: false, parameters: Self.values("", language: "de")))
                == [])
        #expect(dialogue.pass(until: 20) == [])
        // Values tried with the old configuration are untried with this one.
        #expect(dialogue.at(21, sets("jazz")) == [.starts(2, ["parameter"])])
        // The pipeline has no parameters any more.
        #expect(dialogue.at(22, .succeeds(2), .reconfigured(settings, sameProduct: false)) == [])
        #expect(dialogue.machine.parameters == nil)
    }

    @Test("while held or stopped no run starts; after the release the change takes effect")
    func held() {
        let dialogue = dialogue()
        #expect(dialogue.at(0, .held(true)) == [])
        #expect(dialogue.at(1, sets("jazz", quiet: 0.5)) == [])
        #expect(dialogue.pass(until: 5) == [])
        #expect(dialogue.at(6, .held(false)) == [.starts(1, ["parameter"])])
        #expect(dialogue.at(7, .stopped) == [.cancels(1)])
        #expect(dialogue.at(8, sets("rock")) == [])
        #expect(dialogue.at(9, .ended(run: 1, .cancelled)) == [])
        #expect(dialogue.wake == nil)
    }
}
