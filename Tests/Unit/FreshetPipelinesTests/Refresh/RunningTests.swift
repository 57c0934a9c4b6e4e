import FreshetModel
import Testing

@testable import FreshetPipelines

@Suite("While a run is in progress")
struct RunningTests {
    let queue = RefreshPolicy(quiet: .zero, freshFor: .zero)
    let ignore = RefreshPolicy(quiet: .zero, whenRunning: .ignore, freshFor: .zero)
    let restart = RefreshPolicy(quiet: .zero, whenRunning: .restart, freshFor: .zero)

    @Test("queue: a signal waits for the run's end")
    func queued() {
        let dialogue = Dialogue(queue)
        _ = dialogue.at(0, .receives("file", at: 0))
        #expect(dialogue.at(1, .receives("file", at: 1)) == [])
        #expect(dialogue.at(2, .succeeds(1)) == [.starts(2, ["file"])])
    }

    @Test("restart: a signal cancels the run, and the next one starts when it has ended, with the causes of both")
    func restarted() throws {
        let dialogue = Dialogue(restart)
        _ = dialogue.at(0, .receives("query", at: 0))
        #expect(dialogue.at(1, .receives("file", at: 1)) == [.cancels(1)])
        #expect(dialogue.at(1.5, .receives("file", at: 1.5)) == [], "it is cancelled once")
        #expect(dialogue.at(2, .ended(run: 1, .cancelled)) == [.starts(2, ["query", "file"])])
        #expect(try #require(dialogue.summaries.last).outcome == .superseded)
    }

    @Test("restart: after two superseded runs in a row the third may finish, then runs are superseded again")
    func third() {
        let dialogue = Dialogue(restart)
        _ = dialogue.at(0, .receives("query", at: 0))
        #expect(dialogue.at(1, .receives("query", at: 1)) == [.cancels(1)])
        #expect(dialogue.at(1, .ended(run: 1, .cancelled)) == [.starts(2, ["query"])])
        #expect(dialogue.at(2, .receives("query", at: 2)) == [.cancels(2)])
        #expect(dialogue.at(2, .ended(run: 2, .cancelled)) == [.starts(3, ["query"])])
        #expect(dialogue.at(3, .receives("query", at: 3)) == [])
        #expect(dialogue.at(4, .succeeds(3)) == [.starts(4, ["query"])])
        #expect(dialogue.at(5, .receives("query", at: 5)) == [.cancels(4)])
    }

    @Test("ignore: signals during a run are counted and start no run, and the next signal runs")
    func ignored() throws {
        let dialogue = Dialogue(ignore)
        _ = dialogue.at(0, .receives("file", at: 0))
        #expect(dialogue.at(1, .receives("file", "network", at: 1)) == [])
        #expect(dialogue.at(2, .receives("dbus", at: 2)) == [])
        let causes = ["file", "network"].map { RunCause($0, first: Dialogue.instant(1)) }
        #expect(dialogue.events.contains(.ignored(causes, run: 1)))
        #expect(dialogue.at(3, .succeeds(1)) == [])
        #expect(dialogue.pass(until: 1000) == [])
        #expect(try #require(dialogue.summaries.last).ignored == 3)
        #expect(dialogue.at(1001, .receives("file", at: 1001)) == [.starts(2, ["file"])])
        _ = dialogue.at(1002, .succeeds(2))
        #expect(try #require(dialogue.summaries.last).ignored == 0)
    }

    @Test("ignore: a run that fails is retried for its own causes")
    func ignoredAndFailed() {
        let dialogue = Dialogue(ignore)
        _ = dialogue.at(0, .receives("file", at: 0))
        _ = dialogue.at(1, .receives("dbus", at: 1))
        _ = dialogue.at(2, .fails(1, .transient))
        #expect(dialogue.pass(until: 10).map(\.output) == [.starts(2, ["file"])])
    }

    @Test("ignore: a signal of the other pipeline during a run that found no copy there is not lost")
    func ignoredAndAbsent() {
        let dialogue = Dialogue(ignore)
        _ = dialogue.at(0, .receives("start", at: 0))
        _ = dialogue.at(1, .fails(1, .absent))
        #expect(dialogue.pass(until: 10) == [], "nothing has fired")
        _ = dialogue.at(11, .receives("pipeline", at: 11))
        _ = dialogue.at(12, .receives("pipeline", at: 12))
        _ = dialogue.at(13, .fails(2, .absent))
        #expect(dialogue.pass(until: 20).map(\.output) == [.starts(3, ["pipeline"])])
    }

    @Test("ignore: a request of the operator joins the run, unless it has to be unconditional or the run is cancelled")
    func joined() {
        let dialogue = Dialogue(ignore)
        _ = dialogue.at(0, .receives("file", at: 0))
        #expect(dialogue.at(1, .refresh(request: 1, force: false), .refresh(request: 2, force: true)) == [])
        #expect(dialogue.at(2, .succeeds(1)) == [.answers(1, .changed), .answers(2, .changed)])
        _ = dialogue.at(3, .receives("file", at: 3))
        #expect(dialogue.at(4, .refresh(request: 3, force: false, unconditional: true)) == [])
        #expect(dialogue.at(5, .succeeds(2)) == [.starts(3, ["operator"])])
        #expect(dialogue.at(6, .refresh(request: 4, force: false, unconditional: true)) == [])
        #expect(dialogue.at(7, .succeeds(3)) == [.answers(3, .changed), .answers(4, .changed)])
        _ = dialogue.at(8, .receives("file", at: 8))
        #expect(dialogue.at(9, .network(Dialogue.online("b", epoch: 2, since: 9))) == [.cancels(4)])
        #expect(dialogue.at(9, .refresh(request: 5, force: false)) == [])
        #expect(dialogue.at(10, .ended(run: 4, .cancelled)) == [.starts(5, ["file", "operator"])])
        #expect(dialogue.at(11, .succeeds(5)) == [.answers(5, .changed)])
    }

    @Test("a run that succeeded although it was being cancelled counts")
    func successWins() throws {
        let dialogue = Dialogue(restart)
        _ = dialogue.at(0, .receives("query", at: 0))
        _ = dialogue.at(1, .receives("query", at: 1))
        #expect(dialogue.at(2, .succeeds(1)) == [.starts(2, ["query"])])
        #expect(try #require(dialogue.summaries.last).outcome == .changed)
    }

    @Test("a client gets the first run after a number: the next one, the one in progress, or the last one")
    func awaited() {
        let dialogue = Dialogue(queue)
        _ = dialogue.at(0, .awaitRun(request: 1, after: 0))
        _ = dialogue.at(0, .receives("file", at: 0))
        _ = dialogue.at(1, .awaitRun(request: 2, after: 0))
        // The run in progress is not after 1: it waits for the next one.
        _ = dialogue.at(1, .awaitRun(request: 3, after: 1))
        #expect(dialogue.at(2, .succeeds(1)) == [.answers(1, .changed), .answers(2, .changed)])
        #expect(dialogue.at(3, .awaitRun(request: 4, after: 0)) == [.answers(4, .changed)])
        _ = dialogue.at(4, .receives("file", at: 4))
        #expect(dialogue.at(5, .succeeds(2)) == [.answers(3, .changed)])
        #expect(dialogue.at(6, .held(true)) == [])
        #expect(dialogue.at(6, .awaitRun(request: 5, after: 2)) == [.refuses(5, .held)])
        _ = dialogue.at(7, .stopped)
        #expect(dialogue.at(8, .awaitRun(request: 6, after: 2)) == [.stops(6)])
    }

    @Test("a superseded run is not the first run: the run that replaces it is")
    func awaitedSuperseded() {
        let dialogue = Dialogue(restart)
        _ = dialogue.at(0, .receives("query", at: 0))
        _ = dialogue.at(1, .receives("file", at: 1))
        _ = dialogue.at(1, .awaitRun(request: 1, after: 0))
        _ = dialogue.at(2, .ended(run: 1, .cancelled))
        _ = dialogue.at(2, .awaitRun(request: 2, after: 0))
        #expect(dialogue.at(3, .succeeds(2)) == [.answers(1, .changed), .answers(2, .changed)])
    }

    @Test("a configuration with another product cancels the run and starts a new one")
    func reconfigured() {
        let dialogue = Dialogue(queue)
        _ = dialogue.at(0, .receives("file", at: 0))
        let settings = RefreshSettings(policy: queue, needsNetwork: true)
        #expect(dialogue.at(1, .reconfigured(settings, sameProduct: false)) == [.cancels(1)])
        // Even a success would belong to the old configuration.
        #expect(dialogue.at(2, .succeeds(1)) == [.starts(2, ["file"])])
    }

    @Test("a cancelled run that commits nevertheless does not count for another configuration")
    func reconfiguredAfterCancel() {
        let dialogue = Dialogue(RefreshPolicy(freshFor: .zero))
        _ = dialogue.at(0, .receives("file", at: 0))
        #expect(dialogue.at(1, .network(Dialogue.offline(since: 1))) == [.cancels(1)])
        let settings = RefreshSettings(policy: RefreshPolicy(freshFor: .zero), needsNetwork: false)
        #expect(dialogue.at(2, .reconfigured(settings, sameProduct: false)) == [])
        #expect(dialogue.at(3, .succeeds(1)) == [.starts(2, ["file"])])
        #expect(dialogue.summaries.map(\.outcome) == [.superseded])
    }

    @Test("a configuration with the same product does not change the run and the backoff")
    func reconfiguredPolicy() {
        let dialogue = Dialogue(queue)
        _ = dialogue.at(0, .receives("file", at: 0))
        let settings = RefreshSettings(policy: RefreshPolicy(every: .seconds(100), quiet: .zero), needsNetwork: true)
        #expect(dialogue.at(1, .reconfigured(settings, sameProduct: true)) == [])
        _ = dialogue.at(2, .succeeds(1))
        #expect(dialogue.wake == 102)
    }

    @Test("a reconfiguration together with the signal reload costs one run")
    func reconfiguredAndReload() {
        let dialogue = Dialogue(RefreshPolicy(every: .seconds(600)), lastCheck: -1)
        let settings = RefreshSettings(policy: RefreshPolicy(every: .seconds(600)), needsNetwork: true)
        #expect(dialogue.at(1, .reconfigured(settings, sameProduct: false)) == [])
        #expect(dialogue.at(1.1, .receives("reload", at: 1.1)) == [.starts(1, ["reload"])])
        _ = dialogue.at(1.2, .succeeds(1))
        #expect(dialogue.pass(until: 100) == [])
    }

    @Test("a changed source without a signal is checked by the clock, since its state is unknown")
    func reconfiguredAlone() {
        let dialogue = Dialogue(RefreshPolicy(every: .seconds(600)), lastCheck: -1)
        let settings = RefreshSettings(policy: RefreshPolicy(every: .seconds(600)), needsNetwork: true)
        _ = dialogue.at(1, .reconfigured(settings, sameProduct: false))
        #expect(dialogue.pass(until: 100) == [.init(at: 3, output: .starts(1, ["timer"]))])
    }

    @Test("a reconfiguration during a backoff tries again, from the first attempt")
    func reconfiguredFailing() {
        let dialogue = Dialogue(queue)
        _ = dialogue.at(0, .receives("file", at: 0))
        _ = dialogue.at(1, .fails(1, .refused))
        let settings = RefreshSettings(policy: queue, needsNetwork: true)
        #expect(dialogue.at(10, .reconfigured(settings, sameProduct: false)) == [.starts(2, ["file"])])
    }

    @Test("the deadline cancels the run, and that is a failure")
    func deadline() throws {
        let dialogue = Dialogue(RefreshPolicy(freshFor: .zero, deadline: .seconds(10)))
        _ = dialogue.at(0, .receives("file", at: 0))
        #expect(dialogue.pass(until: 20) == [.init(at: 10, output: .cancels(1))])
        _ = dialogue.at(20, .ended(run: 1, .cancelled))
        let summary = try #require(dialogue.summaries.last)
        #expect(summary.outcome == .failed)
        #expect(summary.failure?.kind == .deadline)
        guard case .failed(_, _, attempts: 1) = dialogue.activity else {
            Issue.record("\(dialogue.activity)")
            return
        }
    }

    @Test("while all requests of a run wait for other runs, its deadline is paused")
    func stalled() {
        let dialogue = Dialogue(RefreshPolicy(freshFor: .zero, deadline: .seconds(10)))
        _ = dialogue.at(0, .receives("file", at: 0))
        #expect(dialogue.wake == 10)
        _ = dialogue.at(4, .stalled(run: 1, true))
        #expect(dialogue.wake == nil)
        #expect(dialogue.at(50, .stalled(run: 1, true)) == [], "a second report does not restart the stall")
        _ = dialogue.at(100, .stalled(run: 1, false))
        #expect(dialogue.wake == 106)
        #expect(dialogue.at(101, .stalled(run: 1, false), .stalled(run: 7, true)) == [])
        // The event comes late, and so did the deadline: the state at the time counts.
        _ = dialogue.at(105, .stalled(run: 1, true))
        #expect(dialogue.pass(until: 200) == [])
        _ = dialogue.at(200, .stalled(run: 1, false))
        #expect(dialogue.pass(until: 300) == [.init(at: 201, output: .cancels(1))])
    }

    @Test("without a deadline a run that waits for others has none when it continues")
    func stalledWithoutDeadline() {
        let dialogue = Dialogue(RefreshPolicy(freshFor: .zero, deadline: .zero))
        _ = dialogue.at(0, .receives("file", at: 0))
        _ = dialogue.at(4, .stalled(run: 1, true))
        _ = dialogue.at(9, .stalled(run: 1, false))
        #expect(dialogue.wake == nil)
        #expect(dialogue.at(10, .succeeds(1)) == [])
    }

    @Test("runs are numbered from the stored number on")
    func numbers() {
        var machine = RefreshMachine(
            RefreshSettings(policy: queue, needsNetwork: false), network: Dialogue.offline(),
            memory: StoredRefreshState(lastRun: 41), jitter: Jitter(seed: 1), now: Dialogue.instant(0))
        _ = machine.handle(.receives("file", at: 0), now: Dialogue.instant(0))
        let actions = machine.handle(.permitGranted(1), now: Dialogue.instant(0))
        #expect(actions.contains { if case .start(let order) = $0 { order.run == 42 } else { false } })
    }

    @Test("while no permit is free the pipeline waits, and the run takes the signals that come meanwhile")
    func permit() {
        let dialogue = Dialogue(queue)
        dialogue.grantsPermits = false
        _ = dialogue.at(0, .receives("file", at: 0))
        #expect(dialogue.permitRequests == [1])
        #expect(dialogue.activity == .waiting(Wait(.permit)))
        _ = dialogue.at(1, .receives("reload", at: 1))
        #expect(dialogue.permitRequests == [1])
        #expect(dialogue.at(2, .permitGranted(1)) == [.starts(1, ["file", "reload"])])
        #expect(dialogue.at(3, .succeeds(1)) == [])
        #expect(dialogue.permitReleases == [1])
    }

    @Test("a permit that is granted after the network was lost is released, and requested again with the network")
    func permitWithoutNetwork() {
        let dialogue = Dialogue(queue)
        dialogue.grantsPermits = false
        _ = dialogue.at(0, .receives("file", at: 0))
        _ = dialogue.at(1, .network(Dialogue.offline(since: 1)))
        #expect(dialogue.at(2, .permitGranted(1)) == [])
        #expect(dialogue.permitReleases == [1])
        #expect(dialogue.waitsFor?.reason == .network)
        _ = dialogue.at(3, .network(Dialogue.online(epoch: 2, since: 3)))
        #expect(dialogue.permitRequests == [1, 2])
    }

    @Test("held: no run starts and requests are refused; released: the received signals run")
    func held() {
        let dialogue = Dialogue(queue)
        _ = dialogue.at(0, .held(true))
        #expect(dialogue.activity == .held)
        #expect(dialogue.at(1, .receives("file", at: 1)) == [])
        #expect(dialogue.at(2, .refresh(request: 5, force: true)) == [.refuses(5, .held)])
        #expect(dialogue.at(3, .held(false)) == [.starts(1, ["file"])])
    }

    @Test("stopped: the run is cancelled, waiting requests are answered, and no run starts any more")
    func stopped() throws {
        let dialogue = Dialogue(queue)
        _ = dialogue.at(0, .refresh(request: 1, force: false))
        _ = dialogue.at(1, .refresh(request: 2, force: false))
        #expect(dialogue.at(2, .stopped) == [.stops(2), .cancels(1)])
        #expect(dialogue.at(3, .ended(run: 1, .cancelled)) == [.stops(1)])
        #expect(try #require(dialogue.summaries.last).outcome == .cancelled)
        #expect(dialogue.at(4, .receives("file", at: 4), .refresh(request: 3, force: true)) == [.stops(3)])
        #expect(dialogue.wake == nil)
    }
}
