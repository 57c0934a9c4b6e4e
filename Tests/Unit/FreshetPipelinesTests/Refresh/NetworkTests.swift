import Testing

@testable import FreshetPipelines

@Suite("The network")
struct NetworkTests {
    let policy = RefreshPolicy(freshFor: .zero)

    @Test("without a network a pipeline waits, and does not fail")
    func waits() {
        let talk = Dialogue(policy, network: Dialogue.offline())
        #expect(talk.activity == .waiting(Wait(.network)))
        #expect(talk.at(0, .hears("start", at: 0)) == [])
        #expect(talk.pass(until: 10000) == [])
        #expect(talk.activity == .waiting(Wait(.network)))
    }

    @Test("one that needs no network runs without")
    func needsNone() {
        let talk = Dialogue(policy, needsNetwork: false, network: Dialogue.offline())
        #expect(talk.at(0, .hears("start", at: 0)) == [.starts(1, ["start"])])
    }

    @Test("what waited runs at once when the network is there: fact first")
    func factFirst() {
        let talk = Dialogue(policy, network: Dialogue.offline())
        _ = talk.at(0, .hears("start", at: 0))
        #expect(talk.at(1, .network(Dialogue.online(epoch: 2, since: 1))) == [.starts(1, ["start"])])
        #expect(talk.at(1, .hears("network", at: 1)) == [])
        #expect(talk.at(1.2, .succeeds(1)) == [])
        #expect(talk.pass(until: 100) == [])
        #expect(talk.orders.map(\.epoch) == [2])
    }

    @Test("what waited runs at once when the network is there: signal first")
    func signalFirst() {
        let talk = Dialogue(policy, network: Dialogue.offline())
        _ = talk.at(0, .hears("start", at: 0))
        #expect(talk.at(1, .hears("network", at: 1)) == [])
        #expect(talk.at(1, .network(Dialogue.online(epoch: 2, since: 1))) == [.starts(1, ["start", "network"])])
        #expect(talk.at(1.2, .succeeds(1)) == [])
        #expect(talk.pass(until: 100) == [])
    }

    @Test("fact and signal together make one run with both causes")
    func together() {
        let talk = Dialogue(policy, network: Dialogue.offline())
        _ = talk.at(0, .hears("start", at: 0))
        let fact = RefreshMachine.Event.network(Dialogue.online(epoch: 2, since: 1))
        #expect(talk.at(1, fact, .hears("network", at: 1)) == [.starts(1, ["start", "network"])])
    }

    @Test("a pipeline at rest runs once when the network comes back, in both orders", arguments: [true, false])
    func rest(_ factFirst: Bool) {
        let talk = Dialogue(policy, network: Dialogue.offline(), lastCheck: -500)
        let fact = RefreshMachine.Event.network(Dialogue.online(epoch: 2, since: 1))
        let signal = RefreshMachine.Event.hears("network", at: 1)
        let deeds = talk.at(1, factFirst ? fact : signal) + talk.at(1.001, factFirst ? signal : fact)
        #expect(deeds == [.starts(1, ["network"])])
        _ = talk.at(1.2, .succeeds(1))
        #expect(talk.pass(until: 100) == [])
    }

    @Test("the loss of the path cancels the run; it waits, and runs again when the network is back")
    func lost() throws {
        let talk = Dialogue(policy)
        _ = talk.at(0, .hears("file", at: 0))
        #expect(talk.at(1, .network(Dialogue.offline(since: 1))) == [.cancels(1)])
        #expect(talk.at(1, .ended(run: 1, .cancelled)) == [])
        #expect(talk.activity == .waiting(Wait(.network)))
        #expect(try #require(talk.summaries.last).outcome == .superseded)
        #expect(talk.at(10, .network(Dialogue.online(epoch: 2, since: 10))) == [.starts(2, ["file"])])
    }

    @Test("another path cancels the run, and another takes its place")
    func changed() {
        let talk = Dialogue(policy)
        _ = talk.at(0, .hears("file", at: 0))
        #expect(talk.at(10, .network(Dialogue.online("b", epoch: 2, since: 10))) == [.cancels(1)])
        #expect(talk.at(10, .ended(run: 1, .cancelled)) == [.starts(2, ["file"])])
        #expect(talk.at(10, .hears("network", at: 10)) == [])
        #expect(talk.at(11, .succeeds(2)) == [])
        #expect(talk.pass(until: 100) == [])
    }

    @Test("in a storm a run whose path changed is gathered, not started again at once")
    func changedInStorm() {
        let talk = Dialogue(policy)
        _ = talk.at(0, .hears("network", at: 0))
        #expect(talk.at(1, .network(Dialogue.online("b", epoch: 2, since: 1))) == [.cancels(1)])
        #expect(talk.at(1, .ended(run: 1, .cancelled)) == [])
        #expect(talk.pass(until: 100) == [.init(at: 3, deed: .starts(2, ["network"]))])
    }

    @Test("in a storm the operator's run is started again at once, and so is one behind which something is ready")
    func changedButUrgent() {
        var talk = Dialogue(policy)
        _ = talk.at(0, .hears("network", at: 0))
        _ = talk.at(0.1, .succeeds(1))
        _ = talk.at(0.2, .refresh(request: 1, force: false))
        #expect(talk.at(1, .network(Dialogue.online("b", epoch: 2, since: 1))) == [.cancels(2)])
        #expect(talk.at(1, .ended(run: 2, .cancelled)) == [.starts(3, ["operator"])])
        talk = Dialogue(policy)
        _ = talk.at(0, .hears("file", at: 0))
        _ = talk.at(1, .refresh(request: nil, force: false))
        #expect(talk.at(1, .network(Dialogue.online("b", epoch: 2, since: 1))) == [.cancels(1)])
        #expect(talk.at(1, .ended(run: 1, .cancelled)) == [.starts(2, ["file", "operator"])])
    }

    @Test("a run that the signal started before the fact came is started again at once, with the new epoch")
    func changedEarly() {
        let talk = Dialogue(policy)
        #expect(talk.at(1.001, .hears("network", at: 1)) == [.starts(1, ["network"])])
        #expect(talk.at(1.002, .network(Dialogue.online("b", epoch: 2, since: 1))) == [.cancels(1)])
        #expect(talk.at(1.003, .ended(run: 1, .cancelled)) == [.starts(2, ["network"])])
        #expect(talk.orders.map(\.epoch) == [1, 2])
    }

    @Test("a run of a pipeline that needs no network is not cancelled by it")
    func indifferent() {
        let talk = Dialogue(policy, needsNetwork: false)
        _ = talk.at(0, .hears("file", at: 0))
        #expect(talk.at(1, .network(Dialogue.offline(since: 1))) == [])
    }

    @Test("an overdue check is attempted every 15 minutes although routing says no, and says so")
    func attemptsAnyway() throws {
        let policy = RefreshPolicy(every: .seconds(600), freshFor: .zero)
        let talk = Dialogue(policy, network: Dialogue.offline(), lastCheck: 0)
        #expect(talk.pass(until: 899) == [])
        #expect(talk.pass(until: 1000) == [.init(at: 900, deed: .starts(1, ["timer"]))])
        #expect(try #require(talk.orders.last).reason == .routingSaysNo)
        _ = talk.at(1001, .fails(1, .connection))
        #expect(talk.activity == .waiting(Wait(.network, until: Dialogue.instant(1800))))
        #expect(try #require(talk.summaries.last).counts == false)
        #expect(talk.pass(until: 1799) == [])
        #expect(talk.pass(until: 1800) == [.init(at: 1800, deed: .starts(2, ["timer"]))])
        // Routing was wrong: the plan goes on, and the next is attempted when it is due.
        _ = talk.at(1801, .succeeds(2))
        #expect(talk.pass(until: 2750) == [.init(at: 2700, deed: .starts(3, ["timer"]))])
    }

    @Test("that attempt, too, keeps min-interval from the run before")
    func attemptsAnywayLater() {
        let policy = RefreshPolicy(
            every: .seconds(600), quiet: .zero, minInterval: .seconds(3000), freshFor: .zero)
        let talk = Dialogue(policy, lastCheck: -500)
        #expect(talk.pass(until: 100).map(\.deed) == [.starts(1, ["timer"])])
        #expect(talk.at(101, .network(Dialogue.offline(since: 101))) == [.cancels(1)])
        _ = talk.at(102, .ended(run: 1, .cancelled))
        #expect(talk.pass(until: 3200) == [.init(at: 3100, deed: .starts(2, ["timer"]))])
        #expect(talk.orders.last?.reason == .routingSaysNo)
    }

    @Test("in the grace after network a failure to connect is none: 0.25, 0.5, 1, 2, 4, 8 s")
    func grace() throws {
        let talk = Dialogue(policy, network: Dialogue.offline())
        _ = talk.at(0, .network(Dialogue.online(epoch: 2, since: 0)), .hears("network", at: 0))
        var starts: [Double] = []
        for run in 1...UInt64(6) {
            _ = talk.at(talk.now, .fails(run, .connection))
            guard case .waiting(let wait) = talk.activity else {
                Issue.record("\(talk.activity)")
                return
            }
            #expect(wait.reason == .network)
            let until = try #require(wait.until)
            starts += talk.pass(until: Dialogue.seconds(until)).map(\.at)
        }
        #expect(starts == [0.25, 0.75, 1.75, 3.75, 7.75, 15.75])
        #expect(talk.orders.last?.reason == .networkSettling)
        _ = talk.at(31, .fails(7, .connection))
        guard case .failed(_, _, attempts: 1) = talk.activity else {
            Issue.record("\(talk.activity)")
            return
        }
    }

    @Test("grace holds for failures to connect only, and begins with resume as well")
    func graceKinds() {
        let talk = Dialogue(policy)
        _ = talk.at(100, .hears("resume", at: 100))
        _ = talk.at(100.1, .fails(1, .connection))
        #expect(talk.activity == .waiting(Wait(.network, until: Dialogue.instant(100.35))))
        #expect(talk.pass(until: 101).count == 1)
        _ = talk.at(101, .fails(2, .transient))
        guard case .failed(_, _, attempts: 1) = talk.activity else {
            Issue.record("\(talk.activity)")
            return
        }
    }

    @Test("a new network within grace begins it anew, with short waits")
    func graceAnew() {
        var gate = NetworkGate(Dialogue.online(since: 0), now: Dialogue.instant(0))
        func delay() -> Duration { gate.graceDelay() }
        #expect(gate.isGrace(at: Dialogue.instant(29.9)))
        #expect(!gate.isGrace(at: Dialogue.instant(30)))
        #expect(delay() == .milliseconds(250))
        #expect(delay() == .milliseconds(500))
        let change = gate.update(Dialogue.online("b", epoch: 2, since: 20), now: Dialogue.instant(20))
        #expect(change == .path)
        #expect(delay() == .milliseconds(250))
        #expect(gate.isGrace(at: Dialogue.instant(49.9)))
    }

    @Test("an attempt that did not connect within grace does not begin min-interval")
    func graceMinInterval() {
        let talk = Dialogue(
            RefreshPolicy(minInterval: .seconds(60), freshFor: .zero), network: Dialogue.online(since: 0))
        _ = talk.at(0, .hears("start", at: 0))
        _ = talk.at(0.1, .fails(1, .connection))
        #expect(talk.pass(until: 1) == [.init(at: 0.35, deed: .starts(2, ["start"]))])
    }

    @Test("those who wait for a refresh go on waiting through grace and through a lost network")
    func requestsWait() {
        let talk = Dialogue(policy, network: Dialogue.online(since: 0))
        _ = talk.at(0, .refresh(request: 1, force: false))
        #expect(talk.at(0.1, .fails(1, .connection)) == [])
        #expect(talk.pass(until: 1) == [.init(at: 0.35, deed: .starts(2, ["operator"]))])
        #expect(talk.at(1, .network(Dialogue.offline(since: 1))) == [.cancels(2)])
        #expect(talk.at(1, .ended(run: 2, .cancelled)) == [])
        #expect(talk.at(5, .network(Dialogue.online(epoch: 2, since: 5))) == [.starts(3, ["operator"])])
        #expect(talk.at(6, .succeeds(3)) == [.answers(1, .changed)])
    }

    @Test("force attempts without a network, and its end is told")
    func forced() {
        let talk = Dialogue(policy, network: Dialogue.offline())
        #expect(talk.at(1, .refresh(request: 1, force: false)) == [])
        #expect(talk.at(2, .refresh(request: 2, force: true)) == [.starts(1, ["operator"])])
        #expect(talk.at(3, .fails(1, .connection)) == [.answers(1, .failed), .answers(2, .failed)])
        #expect(talk.activity == .waiting(Wait(.network)))
        #expect(talk.pass(until: 100) == [])
    }
}
