import Testing

@testable import FreshetPipelines

@Suite("While a run is under way")
struct RunningTests {
    let queue = RefreshPolicy(quiet: .zero, freshFor: .zero)
    let restart = RefreshPolicy(quiet: .zero, whenRunning: .restart, freshFor: .zero)

    @Test("queue: a signal waits for the run's end")
    func queued() {
        let talk = Dialogue(queue)
        _ = talk.at(0, .hears("file", at: 0))
        #expect(talk.at(1, .hears("file", at: 1)) == [])
        #expect(talk.at(2, .succeeds(1)) == [.starts(2, ["file"])])
    }

    @Test("restart: a signal cancels the run, and the next starts when it has returned, with the causes of both")
    func restarted() throws {
        let talk = Dialogue(restart)
        _ = talk.at(0, .hears("query", at: 0))
        #expect(talk.at(1, .hears("file", at: 1)) == [.cancels(1)])
        #expect(talk.at(1.5, .hears("file", at: 1.5)) == [], "it is cancelled once")
        #expect(talk.at(2, .ended(run: 1, .cancelled)) == [.starts(2, ["query", "file"])])
        #expect(try #require(talk.summaries.last).outcome == .superseded)
    }

    @Test("restart: after two superseded runs in a row the third is left to finish, then it may happen again")
    func third() {
        let talk = Dialogue(restart)
        _ = talk.at(0, .hears("query", at: 0))
        #expect(talk.at(1, .hears("query", at: 1)) == [.cancels(1)])
        #expect(talk.at(1, .ended(run: 1, .cancelled)) == [.starts(2, ["query"])])
        #expect(talk.at(2, .hears("query", at: 2)) == [.cancels(2)])
        #expect(talk.at(2, .ended(run: 2, .cancelled)) == [.starts(3, ["query"])])
        #expect(talk.at(3, .hears("query", at: 3)) == [])
        #expect(talk.at(4, .succeeds(3)) == [.starts(4, ["query"])])
        #expect(talk.at(5, .hears("query", at: 5)) == [.cancels(4)])
    }

    @Test("a run that succeeded although it was being cancelled counts")
    func successWins() throws {
        let talk = Dialogue(restart)
        _ = talk.at(0, .hears("query", at: 0))
        _ = talk.at(1, .hears("query", at: 1))
        #expect(talk.at(2, .succeeds(1)) == [.starts(2, ["query"])])
        #expect(try #require(talk.summaries.last).outcome == .changed)
    }

    @Test("another configuration that makes another product cancels the run and starts one of its own")
    func reconfigured() {
        let talk = Dialogue(queue)
        _ = talk.at(0, .hears("file", at: 0))
        let settings = RefreshSettings(policy: queue, needsNetwork: true)
        #expect(talk.at(1, .reconfigured(settings, sameProduct: false)) == [.cancels(1)])
        // Even if it had succeeded, it was of the old configuration.
        #expect(talk.at(2, .succeeds(1)) == [.starts(2, ["file"])])
    }

    @Test("a run that was cancelled already and commits all the same is none of another configuration")
    func reconfiguredAfterCancel() {
        let talk = Dialogue(RefreshPolicy(freshFor: .zero))
        _ = talk.at(0, .hears("file", at: 0))
        #expect(talk.at(1, .network(Dialogue.offline(since: 1))) == [.cancels(1)])
        let settings = RefreshSettings(policy: RefreshPolicy(freshFor: .zero), needsNetwork: false)
        #expect(talk.at(2, .reconfigured(settings, sameProduct: false)) == [])
        #expect(talk.at(3, .succeeds(1)) == [.starts(2, ["file"])])
        #expect(talk.summaries.map(\.outcome) == [.superseded])
    }

    @Test("another configuration of the same product leaves run and back-off alone")
    func reconfiguredPolicy() {
        let talk = Dialogue(queue)
        _ = talk.at(0, .hears("file", at: 0))
        let settings = RefreshSettings(policy: RefreshPolicy(every: .seconds(100), quiet: .zero), needsNetwork: true)
        #expect(talk.at(1, .reconfigured(settings, sameProduct: true)) == [])
        _ = talk.at(2, .succeeds(1))
        #expect(talk.wake == 102)
    }

    @Test("a reconfiguration together with the signal reload costs one run")
    func reconfiguredAndReload() {
        let talk = Dialogue(RefreshPolicy(every: .seconds(600)), lastCheck: -1)
        let settings = RefreshSettings(policy: RefreshPolicy(every: .seconds(600)), needsNetwork: true)
        #expect(talk.at(1, .reconfigured(settings, sameProduct: false)) == [])
        #expect(talk.at(1.1, .hears("reload", at: 1.1)) == [.starts(1, ["reload"])])
        _ = talk.at(1.2, .succeeds(1))
        #expect(talk.pass(until: 100) == [])
    }

    @Test("a changed source without any signal is checked by the clock, since nothing is known of it")
    func reconfiguredAlone() {
        let talk = Dialogue(RefreshPolicy(every: .seconds(600)), lastCheck: -1)
        let settings = RefreshSettings(policy: RefreshPolicy(every: .seconds(600)), needsNetwork: true)
        _ = talk.at(1, .reconfigured(settings, sameProduct: false))
        #expect(talk.pass(until: 100) == [.init(at: 3, deed: .starts(1, ["timer"]))])
    }

    @Test("a reconfiguration during a back-off tries anew, from the first attempt")
    func reconfiguredFailing() {
        let talk = Dialogue(queue)
        _ = talk.at(0, .hears("file", at: 0))
        _ = talk.at(1, .fails(1, .refused))
        let settings = RefreshSettings(policy: queue, needsNetwork: true)
        #expect(talk.at(10, .reconfigured(settings, sameProduct: false)) == [.starts(2, ["file"])])
    }

    @Test("the deadline cancels the run, and that is a failure")
    func deadline() throws {
        let talk = Dialogue(RefreshPolicy(freshFor: .zero, deadline: .seconds(10)))
        _ = talk.at(0, .hears("file", at: 0))
        #expect(talk.pass(until: 20) == [.init(at: 10, deed: .cancels(1))])
        _ = talk.at(20, .ended(run: 1, .cancelled))
        let summary = try #require(talk.summaries.last)
        #expect(summary.outcome == .failed)
        #expect(summary.failure?.kind == .deadline)
        guard case .failed(_, _, attempts: 1) = talk.activity else {
            Issue.record("\(talk.activity)")
            return
        }
    }

    @Test("while all that a run asks waits for others, its deadline does not come nearer")
    func stalled() {
        let talk = Dialogue(RefreshPolicy(freshFor: .zero, deadline: .seconds(10)))
        _ = talk.at(0, .hears("file", at: 0))
        #expect(talk.wake == 10)
        _ = talk.at(4, .stalled(run: 1, true))
        #expect(talk.wake == nil)
        #expect(talk.at(50, .stalled(run: 1, true)) == [], "told twice it counts from the first time")
        _ = talk.at(100, .stalled(run: 1, false))
        #expect(talk.wake == 106)
        #expect(talk.at(101, .stalled(run: 1, false), .stalled(run: 7, true)) == [])
        // It comes late, and so did the deadline: what counts is what was so.
        _ = talk.at(105, .stalled(run: 1, true))
        #expect(talk.pass(until: 200) == [])
        _ = talk.at(200, .stalled(run: 1, false))
        #expect(talk.pass(until: 300) == [.init(at: 201, deed: .cancels(1))])
    }

    @Test("without a deadline a run that waits for others has none when it goes on")
    func stalledWithoutDeadline() {
        let talk = Dialogue(RefreshPolicy(freshFor: .zero, deadline: .zero))
        _ = talk.at(0, .hears("file", at: 0))
        _ = talk.at(4, .stalled(run: 1, true))
        _ = talk.at(9, .stalled(run: 1, false))
        #expect(talk.wake == nil)
        #expect(talk.at(10, .succeeds(1)) == [])
    }

    @Test("runs are numbered on from the remembered number")
    func numbers() {
        var machine = RefreshMachine(
            RefreshSettings(policy: queue, needsNetwork: false), network: Dialogue.offline(),
            memory: StoredRefreshState(lastRun: 41), jitter: Jitter(seed: 1), now: Dialogue.instant(0))
        _ = machine.handle(.hears("file", at: 0), now: Dialogue.instant(0))
        let actions = machine.handle(.slotGranted(1), now: Dialogue.instant(0))
        #expect(actions.contains { if case .start(let order) = $0 { order.run == 42 } else { false } })
    }

    @Test("while no slot is free the pipeline waits for it, and the run takes along what comes meanwhile")
    func slot() {
        let talk = Dialogue(queue)
        talk.grantsSlots = false
        _ = talk.at(0, .hears("file", at: 0))
        #expect(talk.slotRequests == [1])
        #expect(talk.activity == .waiting(Wait(.slot)))
        _ = talk.at(1, .hears("reload", at: 1))
        #expect(talk.slotRequests == [1])
        #expect(talk.at(2, .slotGranted(1)) == [.starts(1, ["file", "reload"])])
        #expect(talk.at(3, .succeeds(1)) == [])
        #expect(talk.slotReleases == [1])
    }

    @Test("a slot that comes when the network has gone is given back, and asked for again when it is there")
    func slotWithoutNetwork() {
        let talk = Dialogue(queue)
        talk.grantsSlots = false
        _ = talk.at(0, .hears("file", at: 0))
        _ = talk.at(1, .network(Dialogue.offline(since: 1)))
        #expect(talk.at(2, .slotGranted(1)) == [])
        #expect(talk.slotReleases == [1])
        #expect(talk.waitsFor?.reason == .network)
        _ = talk.at(3, .network(Dialogue.online(epoch: 2, since: 3)))
        #expect(talk.slotRequests == [1, 2])
    }

    @Test("held: nothing starts and requests are refused; released, what was heard runs")
    func held() {
        let talk = Dialogue(queue)
        _ = talk.at(0, .held(true))
        #expect(talk.activity == .held)
        #expect(talk.at(1, .hears("file", at: 1)) == [])
        #expect(talk.at(2, .refresh(request: 5, force: true)) == [.refuses(5, .held)])
        #expect(talk.at(3, .held(false)) == [.starts(1, ["file"])])
    }

    @Test("stopped: the run is cancelled, those who wait are told, and nothing starts any more")
    func stopped() throws {
        let talk = Dialogue(queue)
        _ = talk.at(0, .refresh(request: 1, force: false))
        _ = talk.at(1, .refresh(request: 2, force: false))
        #expect(talk.at(2, .stopped) == [.stops(2), .cancels(1)])
        #expect(talk.at(3, .ended(run: 1, .cancelled)) == [.stops(1)])
        #expect(try #require(talk.summaries.last).outcome == .cancelled)
        #expect(talk.at(4, .hears("file", at: 4), .refresh(request: 3, force: true)) == [.stops(3)])
        #expect(talk.wake == nil)
    }
}
