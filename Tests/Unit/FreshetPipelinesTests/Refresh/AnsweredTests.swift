import Testing

@testable import FreshetPipelines

@Suite("What answers a signal")
struct AnsweredTests {
    let policy = RefreshPolicy(freshFor: .zero)

    @Test("the kinds of signals", arguments: ["start", "network", "resume", "foreground", "timer"])
    func environment(_ name: String) {
        #expect(SignalKind(signal: name) == .environment)
    }

    @Test("whatever is not of the surroundings is a demand", arguments: ["reload", "operator", "file", "language", ""])
    func demand(_ name: String) {
        #expect(SignalKind(signal: name) == .demand)
    }

    @Test("a signal of the surroundings is answered by the success of a run under way")
    func environmentDuringRun() {
        let talk = Dialogue(policy)
        _ = talk.at(0, .hears("start", at: 0))
        _ = talk.at(1, .hears("network", at: 1))
        _ = talk.at(1.5, .succeeds(1))
        #expect(talk.wake == nil, "what is answered wakes nobody")
        #expect(talk.pass(until: 100) == [])
        #expect(talk.wake == nil)
    }

    @Test("it is answered too after it was delivered to the queue")
    func environmentQueued() {
        let talk = Dialogue(policy)
        _ = talk.at(0, .hears("start", at: 0))
        _ = talk.at(1, .hears("network", at: 1))
        #expect(talk.pass(until: 5) == [])
        #expect(talk.at(6, .succeeds(1)) == [])
        #expect(talk.pass(until: 100) == [])
    }

    @Test("one that came after the success is not answered by it")
    func environmentAfter() {
        let talk = Dialogue(policy)
        _ = talk.at(0, .hears("start", at: 0))
        _ = talk.at(0.5, .succeeds(1))
        _ = talk.at(1, .hears("network", at: 1))
        #expect(talk.pass(until: 100) == [.init(at: 3, deed: .starts(2, ["network"]))])
    }

    @Test("one that fired before the success is answered also if it is told of after it; one that fired after is not")
    func environmentToldLate() {
        var talk = Dialogue(policy)
        let success = RunResult.succeeded(changed: true, generation: 1, at: Dialogue.instant(1))
        _ = talk.at(0, .hears("start", at: 0))
        #expect(talk.at(5, .ended(run: 1, success), .hears("network", at: 0.9)) == [])
        #expect(talk.pass(until: 100) == [])
        talk = Dialogue(policy)
        _ = talk.at(0, .hears("start", at: 0))
        #expect(talk.at(5, .ended(run: 1, success), .hears("network", at: 1.1)) == [.starts(2, ["network"])])
    }

    @Test("a demand while a run is under way brings exactly one more run")
    func demandDuringRun() {
        let talk = Dialogue(policy)
        _ = talk.at(0, .hears("start", at: 0))
        _ = talk.at(1, .hears("reload", at: 1))
        _ = talk.at(1.2, .hears("reload", "file", at: 1.2))
        #expect(talk.pass(until: 5) == [])
        #expect(talk.at(6, .succeeds(1)) == [.starts(2, ["reload", "file"])])
        #expect(talk.at(7, .succeeds(2)) == [])
        #expect(talk.pass(until: 100) == [])
    }

    @Test("a demand held by a storm is answered by a run that starts after it")
    func demandTakenAlong() {
        let talk = Dialogue(policy)
        _ = talk.at(0, .hears("network", at: 0))
        _ = talk.at(0.1, .succeeds(1))
        _ = talk.at(0.5, .hears("reload", at: 0.5))
        #expect(talk.at(1, .refresh(request: 9, force: false)) == [.starts(2, ["reload", "operator"])])
        #expect(talk.wake == 121, "nothing is held any more: only the deadline is waited for")
        #expect(talk.at(1.1, .succeeds(2)) == [.answers(9, .changed)])
        #expect(talk.pass(until: 100) == [])
    }

    @Test("fresh-for: the surroundings do not fetch a young copy, and the reason is told")
    func freshFor() {
        let talk = Dialogue(RefreshPolicy(freshFor: .seconds(60)), lastCheck: -20)
        let start = RunCause("start", first: Dialogue.instant(0))
        #expect(talk.at(0, .heard([start])) == [])
        #expect(talk.events.contains(.suppressed([start], freshUntil: Dialogue.instant(40))))
        #expect(talk.wake == nil)
        #expect(talk.at(39.9, .hears("resume", at: 39.9)) == [])
        #expect(talk.at(40, .hears("resume", at: 40)) == [.starts(1, ["resume"])])
    }

    @Test("fresh-for does not hold for demands and for the timer")
    func freshForDemands() {
        let talk = Dialogue(RefreshPolicy(freshFor: .seconds(60)), lastCheck: -1)
        #expect(talk.at(0, .hears("reload", at: 0)) == [.starts(1, ["reload"])])
        let other = Dialogue(RefreshPolicy(every: .seconds(10), freshFor: .seconds(60)), lastCheck: -1)
        #expect(other.pass(until: 10) == [.init(at: 9, deed: .starts(1, ["timer"]))])
    }

    @Test("what fetches nothing begins no storm")
    func freshNoStorm() {
        let talk = Dialogue(RefreshPolicy(freshFor: .seconds(60)), lastCheck: -1)
        _ = talk.at(0, .hears("start", at: 0))
        #expect(talk.at(0.5, .hears("file", at: 0.5)) == [.starts(1, ["file"])])
    }

    @Test("min-interval is the least time between two starts, but for the operator's")
    func minInterval() {
        let talk = Dialogue(RefreshPolicy(quiet: .zero, minInterval: .seconds(30), freshFor: .zero))
        _ = talk.at(0, .hears("file", at: 0))
        _ = talk.at(1, .succeeds(1))
        #expect(talk.at(5, .hears("file", at: 5)) == [])
        #expect(talk.waitsFor == Wait(.interval, until: Dialogue.instant(30)))
        #expect(talk.pass(until: 60) == [.init(at: 30, deed: .starts(2, ["file"]))])
        _ = talk.at(60, .succeeds(2))
        #expect(talk.at(61, .refresh(request: nil, force: false)) == [.starts(3, ["operator"])])
    }

    @Test("splay delays start and network and nothing else")
    func splay() {
        let talk = Dialogue(policy, splay: .seconds(20))
        #expect(talk.at(0, .hears("start", at: 0)) == [])
        #expect(talk.waitsFor == Wait(.splay, until: Dialogue.instant(20)))
        #expect(talk.at(5, .hears("network", at: 5)) == [])
        #expect(talk.pass(until: 30) == [.init(at: 20, deed: .starts(1, ["start", "network"]))])
        _ = talk.at(30, .succeeds(1))
        #expect(talk.at(40, .hears("resume", at: 40)) == [.starts(2, ["resume"])])
        _ = talk.at(41, .succeeds(2))
        #expect(talk.at(50, .hears("network", at: 50)) == [])
        #expect(talk.at(51, .refresh(request: nil, force: false)) == [.starts(3, ["network", "operator"])])
    }
}
