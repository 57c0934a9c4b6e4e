import FreshetModel
import Testing

@testable import FreshetPipelines

@Suite("Answers to signals")
struct AnsweredTests {
    let policy = RefreshPolicy(freshFor: .zero)

    @Test("the kinds of signals", arguments: ["start", "network", "resume", "foreground", "timer"])
    func environment(_ name: String) {
        #expect(SignalKind(signal: name) == .environment)
    }

    @Test(
        "every signal that is not an environment signal is a request",
        arguments: ["reload", "operator", "file", "language", ""])
    func request(_ name: String) {
        #expect(SignalKind(signal: name) == .request)
    }

    @Test("an environment signal is answered by the success of a run in progress")
    func environmentDuringRun() {
        let dialogue = Dialogue(policy)
        _ = dialogue.at(0, .receives("start", at: 0))
        _ = dialogue.at(1, .receives("network", at: 1))
        _ = dialogue.at(1.5, .succeeds(1))
        #expect(dialogue.wake == nil, "an answered signal sets no timer")
        #expect(dialogue.pass(until: 100) == [])
        #expect(dialogue.wake == nil)
    }

    @Test("it is answered too after it was delivered to the queue")
    func environmentQueued() {
        let dialogue = Dialogue(policy)
        _ = dialogue.at(0, .receives("start", at: 0))
        _ = dialogue.at(1, .receives("network", at: 1))
        #expect(dialogue.pass(until: 5) == [])
        #expect(dialogue.at(6, .succeeds(1)) == [])
        #expect(dialogue.pass(until: 100) == [])
    }

    @Test("an environment signal after the success is not answered by it")
    func environmentAfter() {
        let dialogue = Dialogue(policy)
        _ = dialogue.at(0, .receives("start", at: 0))
        _ = dialogue.at(0.5, .succeeds(1))
        _ = dialogue.at(1, .receives("network", at: 1))
        #expect(dialogue.pass(until: 100) == [.init(at: 3, output: .starts(2, ["network"]))])
    }

    @Test("a signal that fired before the success is answered even if it arrives later; one that fired after it is not")
    func environmentReportedLate() {
        var dialogue = Dialogue(policy)
        let success = RunResult.succeeded(changed: true, generation: 1, at: Dialogue.instant(1))
        _ = dialogue.at(0, .receives("start", at: 0))
        #expect(dialogue.at(5, .ended(run: 1, success), .receives("network", at: 0.9)) == [])
        #expect(dialogue.pass(until: 100) == [])
        dialogue = Dialogue(policy)
        _ = dialogue.at(0, .receives("start", at: 0))
        #expect(dialogue.at(5, .ended(run: 1, success), .receives("network", at: 1.1)) == [.starts(2, ["network"])])
    }

    @Test("a request during a run leads to exactly one more run")
    func requestDuringRun() {
        let dialogue = Dialogue(policy)
        _ = dialogue.at(0, .receives("start", at: 0))
        _ = dialogue.at(1, .receives("reload", at: 1))
        _ = dialogue.at(1.2, .receives("reload", "file", at: 1.2))
        #expect(dialogue.pass(until: 5) == [])
        #expect(dialogue.at(6, .succeeds(1)) == [.starts(2, ["reload", "file"])])
        #expect(dialogue.at(7, .succeeds(2)) == [])
        #expect(dialogue.pass(until: 100) == [])
    }

    @Test("a request held by a burst is answered by a run that starts after it")
    func requestTakenAlong() {
        let dialogue = Dialogue(policy)
        _ = dialogue.at(0, .receives("network", at: 0))
        _ = dialogue.at(0.1, .succeeds(1))
        _ = dialogue.at(0.5, .receives("reload", at: 0.5))
        #expect(dialogue.at(1, .refresh(request: 9, force: false)) == [.starts(2, ["reload", "operator"])])
        #expect(dialogue.wake == 121, "nothing is held any more: only the deadline is waited for")
        #expect(dialogue.at(1.1, .succeeds(2)) == [.answers(9, .changed)])
        #expect(dialogue.pass(until: 100) == [])
    }

    @Test("fresh-for: environment signals do not fetch a fresh copy, and the reason is reported")
    func freshFor() {
        let dialogue = Dialogue(RefreshPolicy(freshFor: .seconds(60)), lastCheck: -20)
        let start = RunCause("start", first: Dialogue.instant(0))
        #expect(dialogue.at(0, .received([start])) == [])
        #expect(dialogue.events.contains(.skipped([start], freshUntil: Dialogue.instant(40))))
        #expect(dialogue.wake == nil)
        #expect(dialogue.at(39.9, .receives("resume", at: 39.9)) == [])
        #expect(dialogue.at(40, .receives("resume", at: 40)) == [.starts(1, ["resume"])])
    }

    @Test("fresh-for does not apply to requests and the timer")
    func freshForRequests() {
        let dialogue = Dialogue(RefreshPolicy(freshFor: .seconds(60)), lastCheck: -1)
        #expect(dialogue.at(0, .receives("reload", at: 0)) == [.starts(1, ["reload"])])
        let other = Dialogue(RefreshPolicy(every: .seconds(10), freshFor: .seconds(60)), lastCheck: -1)
        #expect(other.pass(until: 10) == [.init(at: 9, output: .starts(1, ["timer"]))])
    }

    @Test("a skipped signal begins no burst")
    func freshNoBurst() {
        let dialogue = Dialogue(RefreshPolicy(freshFor: .seconds(60)), lastCheck: -1)
        _ = dialogue.at(0, .receives("start", at: 0))
        #expect(dialogue.at(0.5, .receives("file", at: 0.5)) == [.starts(1, ["file"])])
    }

    @Test("min-interval is the least time between two starts, except for requests of the operator")
    func minInterval() {
        let dialogue = Dialogue(RefreshPolicy(quiet: .zero, minInterval: .seconds(30), freshFor: .zero))
        _ = dialogue.at(0, .receives("file", at: 0))
        _ = dialogue.at(1, .succeeds(1))
        #expect(dialogue.at(5, .receives("file", at: 5)) == [])
        #expect(dialogue.waitsFor == Wait(.interval, until: Dialogue.instant(30)))
        #expect(dialogue.pass(until: 60) == [.init(at: 30, output: .starts(2, ["file"]))])
        _ = dialogue.at(60, .succeeds(2))
        #expect(dialogue.at(61, .refresh(request: nil, force: false)) == [.starts(3, ["operator"])])
    }

    @Test("splay delays only the signals start and network")
    func splay() {
        let dialogue = Dialogue(policy, splay: .seconds(20))
        #expect(dialogue.at(0, .receives("start", at: 0)) == [])
        #expect(dialogue.waitsFor == Wait(.splay, until: Dialogue.instant(20)))
        #expect(dialogue.at(5, .receives("network", at: 5)) == [])
        #expect(dialogue.pass(until: 30) == [.init(at: 20, output: .starts(1, ["start", "network"]))])
        _ = dialogue.at(30, .succeeds(1))
        #expect(dialogue.at(40, .receives("resume", at: 40)) == [.starts(2, ["resume"])])
        _ = dialogue.at(41, .succeeds(2))
        #expect(dialogue.at(50, .receives("network", at: 50)) == [])
        #expect(dialogue.at(51, .refresh(request: nil, force: false)) == [.starts(3, ["network", "operator"])])
    }
}
