import FreshetModel
import Testing

@testable import FreshetPipelines

@Suite("The network")
struct NetworkTests {
    let policy = RefreshPolicy(freshFor: .zero)

    @Test("without a network a pipeline waits, and does not fail")
    func waits() {
        let dialogue = Dialogue(policy, network: Dialogue.offline())
        #expect(dialogue.activity == .waiting(Wait(.network)))
        #expect(dialogue.at(0, .receives("start", at: 0)) == [])
        #expect(dialogue.pass(until: 10000) == [])
        #expect(dialogue.activity == .waiting(Wait(.network)))
    }

    @Test("a pipeline that needs no network runs without one")
    func needsNone() {
        let dialogue = Dialogue(policy, needsNetwork: false, network: Dialogue.offline())
        #expect(dialogue.at(0, .receives("start", at: 0)) == [.starts(1, ["start"])])
    }

    /// The network is reachable, with the signal.
    private func comes(_ path: String = "a", epoch: UInt64 = 2, at second: Double) -> RefreshMachine.Event {
        .network(
            Dialogue.online(path, epoch: epoch, since: second),
            cause: RunCause(SignalName.network, first: Dialogue.instant(second)))
    }

    @Test("a waiting run starts immediately when the network is reachable, for its own cause and for the signal")
    func together() {
        let dialogue = Dialogue(policy, network: Dialogue.offline())
        _ = dialogue.at(0, .receives("start", at: 0))
        #expect(dialogue.at(1, comes(at: 1)) == [.starts(1, ["start", "network"])])
        #expect(dialogue.at(1.2, .succeeds(1)) == [])
        #expect(dialogue.pass(until: 100) == [])
        #expect(dialogue.orders.map(\.epoch) == [2])
    }

    @Test("a waiting run of a pipeline without a subscription starts when the network is reachable")
    func stateAlone() {
        let dialogue = Dialogue(policy, network: Dialogue.offline())
        _ = dialogue.at(0, .receives("start", at: 0))
        #expect(dialogue.at(1, .network(Dialogue.online(epoch: 2, since: 1))) == [.starts(1, ["start"])])
        #expect(dialogue.at(1.2, .succeeds(1)) == [])
        #expect(dialogue.pass(until: 100) == [])
    }

    @Test("an idle pipeline runs once when the network comes back")
    func rest() {
        let dialogue = Dialogue(policy, network: Dialogue.offline(), lastCheck: -500)
        #expect(dialogue.at(1, comes(at: 1)) == [.starts(1, ["network"])])
        _ = dialogue.at(1.2, .succeeds(1))
        #expect(dialogue.pass(until: 100) == [])
    }

    @Test("a program that has only the signal gets a run for it, on the network that it has stated")
    func signalAlone() {
        let dialogue = Dialogue(policy, lastCheck: -500)
        #expect(dialogue.at(1, .receives("network", at: 1)) == [.starts(1, ["network"])])
        _ = dialogue.at(1.2, .succeeds(1))
        #expect(dialogue.pass(until: 100) == [])
        #expect(dialogue.orders.map(\.epoch) == [1])
    }

    @Test("the loss of the path cancels the run; it waits, and runs again when the network is back")
    func lost() throws {
        let dialogue = Dialogue(policy)
        _ = dialogue.at(0, .receives("file", at: 0))
        #expect(dialogue.at(1, .network(Dialogue.offline(since: 1))) == [.cancels(1)])
        #expect(dialogue.at(1, .ended(run: 1, .cancelled)) == [])
        #expect(dialogue.activity == .waiting(Wait(.network)))
        #expect(try #require(dialogue.summaries.last).outcome == .superseded)
        #expect(dialogue.at(10, .network(Dialogue.online(epoch: 2, since: 10))) == [.starts(2, ["file"])])
    }

    @Test("another path cancels the run, and another run replaces it")
    func changed() {
        let dialogue = Dialogue(policy)
        _ = dialogue.at(0, .receives("file", at: 0))
        #expect(dialogue.at(10, .network(Dialogue.online("b", epoch: 2, since: 10))) == [.cancels(1)])
        #expect(dialogue.at(10, .ended(run: 1, .cancelled)) == [.starts(2, ["file"])])
        #expect(dialogue.at(10, .receives("network", at: 10)) == [])
        #expect(dialogue.at(11, .succeeds(2)) == [])
        #expect(dialogue.pass(until: 100) == [])
    }

    @Test("in a burst a run whose path changed is held, not repeated immediately")
    func changedInBurst() {
        let dialogue = Dialogue(policy)
        _ = dialogue.at(0, .receives("network", at: 0))
        #expect(dialogue.at(1, .network(Dialogue.online("b", epoch: 2, since: 1))) == [.cancels(1)])
        #expect(dialogue.at(1, .ended(run: 1, .cancelled)) == [])
        #expect(dialogue.pass(until: 100) == [.init(at: 3, output: .starts(2, ["network"]))])
    }

    @Test("in a burst the operator's run is repeated immediately, and so is a run with ready requests")
    func changedButUrgent() {
        var dialogue = Dialogue(policy)
        _ = dialogue.at(0, .receives("network", at: 0))
        _ = dialogue.at(0.1, .succeeds(1))
        _ = dialogue.at(0.2, .refresh(request: 1, force: false))
        #expect(dialogue.at(1, .network(Dialogue.online("b", epoch: 2, since: 1))) == [.cancels(2)])
        #expect(dialogue.at(1, .ended(run: 2, .cancelled)) == [.starts(3, ["operator"])])
        dialogue = Dialogue(policy)
        _ = dialogue.at(0, .receives("file", at: 0))
        _ = dialogue.at(1, .refresh(request: nil, force: false))
        #expect(dialogue.at(1, .network(Dialogue.online("b", epoch: 2, since: 1))) == [.cancels(1)])
        #expect(dialogue.at(1, .ended(run: 1, .cancelled)) == [.starts(2, ["file", "operator"])])
    }

    @Test("a run that a program's signal started before the state came is repeated after the burst, with the new epoch")
    func signalBeforeState() {
        let dialogue = Dialogue(policy)
        #expect(dialogue.at(1.001, .receives("network", at: 1)) == [.starts(1, ["network"])])
        #expect(dialogue.at(1.002, .network(Dialogue.online("b", epoch: 2, since: 1))) == [.cancels(1)])
        #expect(dialogue.at(1.003, .ended(run: 1, .cancelled)) == [])
        #expect(dialogue.pass(until: 100).map(\.output) == [.starts(2, ["network"])])
        #expect(dialogue.orders.map(\.epoch) == [1, 2])
    }

    @Test("network changes do not cancel a run of a pipeline that needs no network")
    func indifferent() {
        let dialogue = Dialogue(policy, needsNetwork: false)
        _ = dialogue.at(0, .receives("file", at: 0))
        #expect(dialogue.at(1, .network(Dialogue.offline(since: 1))) == [])
    }

    @Test("an overdue check is attempted every 15 minutes without a route, with this reason")
    func attemptsAnyway() throws {
        let policy = RefreshPolicy(every: .seconds(600), freshFor: .zero)
        let dialogue = Dialogue(policy, network: Dialogue.offline(), lastCheck: 0)
        #expect(dialogue.pass(until: 899) == [])
        #expect(dialogue.pass(until: 1000) == [.init(at: 900, output: .starts(1, ["timer"]))])
        #expect(try #require(dialogue.orders.last).reason == .noRoute)
        _ = dialogue.at(1001, .fails(1, .connection))
        #expect(dialogue.activity == .waiting(Wait(.network, until: Dialogue.instant(1800))))
        #expect(try #require(dialogue.summaries.last).counts == false)
        #expect(dialogue.pass(until: 1799) == [])
        #expect(dialogue.pass(until: 1800) == [.init(at: 1800, output: .starts(2, ["timer"]))])
        // The attempt succeeded: the plan continues, and the next check is attempted when it is due.
        _ = dialogue.at(1801, .succeeds(2))
        #expect(dialogue.pass(until: 2750) == [.init(at: 2700, output: .starts(3, ["timer"]))])
    }

    @Test("this attempt also respects min-interval after the previous run")
    func attemptsAnywayLater() {
        let policy = RefreshPolicy(
            every: .seconds(600), quiet: .zero, minInterval: .seconds(3000), freshFor: .zero)
        let dialogue = Dialogue(policy, lastCheck: -500)
        #expect(dialogue.pass(until: 100).map(\.output) == [.starts(1, ["timer"])])
        #expect(dialogue.at(101, .network(Dialogue.offline(since: 101))) == [.cancels(1)])
        _ = dialogue.at(102, .ended(run: 1, .cancelled))
        #expect(dialogue.pass(until: 3200) == [.init(at: 3100, output: .starts(2, ["timer"]))])
        #expect(dialogue.orders.last?.reason == .noRoute)
    }

    @Test("in the grace period after network a failure to connect does not count: 0.25, 0.5, 1, 2, 4, 8 s")
    func grace() throws {
        let dialogue = Dialogue(policy, network: Dialogue.offline())
        _ = dialogue.at(0, .network(Dialogue.online(epoch: 2, since: 0)), .receives("network", at: 0))
        var starts: [Double] = []
        for run in 1...UInt64(6) {
            _ = dialogue.at(dialogue.now, .fails(run, .connection))
            guard case .waiting(let wait) = dialogue.activity else {
                Issue.record("\(dialogue.activity)")
                return
            }
            #expect(wait.reason == .network)
            let until = try #require(wait.until)
            starts += dialogue.pass(until: Dialogue.seconds(until)).map(\.at)
        }
        #expect(starts == [0.25, 0.75, 1.75, 3.75, 7.75, 15.75])
        #expect(dialogue.orders.last?.reason == .networkSettling)
        _ = dialogue.at(31, .fails(7, .connection))
        guard case .failed(_, _, attempts: 1) = dialogue.activity else {
            Issue.record("\(dialogue.activity)")
            return
        }
    }

    @Test("the grace period is for failures to connect only, and begins with resume too")
    func graceKinds() {
        let dialogue = Dialogue(policy)
        _ = dialogue.at(100, .receives("resume", at: 100))
        _ = dialogue.at(100.1, .fails(1, .connection))
        #expect(dialogue.activity == .waiting(Wait(.network, until: Dialogue.instant(100.35))))
        #expect(dialogue.pass(until: 101).count == 1)
        _ = dialogue.at(101, .fails(2, .transient))
        guard case .failed(_, _, attempts: 1) = dialogue.activity else {
            Issue.record("\(dialogue.activity)")
            return
        }
    }

    @Test("a new network within the grace period begins it again, with short waits")
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

    @Test("an attempt without a connection in the grace period does not begin min-interval")
    func graceMinInterval() {
        let dialogue = Dialogue(
            RefreshPolicy(minInterval: .seconds(60), freshFor: .zero), network: Dialogue.online(since: 0))
        _ = dialogue.at(0, .receives("start", at: 0))
        _ = dialogue.at(0.1, .fails(1, .connection))
        #expect(dialogue.pass(until: 1) == [.init(at: 0.35, output: .starts(2, ["start"]))])
    }

    @Test("waiting requests for a refresh stay through the grace period and a lost network")
    func requestsWait() {
        let dialogue = Dialogue(policy, network: Dialogue.online(since: 0))
        _ = dialogue.at(0, .refresh(request: 1, force: false))
        #expect(dialogue.at(0.1, .fails(1, .connection)) == [])
        #expect(dialogue.pass(until: 1) == [.init(at: 0.35, output: .starts(2, ["operator"]))])
        #expect(dialogue.at(1, .network(Dialogue.offline(since: 1))) == [.cancels(2)])
        #expect(dialogue.at(1, .ended(run: 2, .cancelled)) == [])
        #expect(dialogue.at(5, .network(Dialogue.online(epoch: 2, since: 5))) == [.starts(3, ["operator"])])
        #expect(dialogue.at(6, .succeeds(3)) == [.answers(1, .changed)])
    }

    @Test("force attempts a run without a network, and its end is answered")
    func forced() {
        let dialogue = Dialogue(policy, network: Dialogue.offline())
        #expect(dialogue.at(1, .refresh(request: 1, force: false)) == [])
        #expect(dialogue.at(2, .refresh(request: 2, force: true)) == [.starts(1, ["operator"])])
        #expect(dialogue.at(3, .fails(1, .connection)) == [.answers(1, .failed), .answers(2, .failed)])
        #expect(dialogue.activity == .waiting(Wait(.network)))
        #expect(dialogue.pass(until: 100) == [])
    }
}
