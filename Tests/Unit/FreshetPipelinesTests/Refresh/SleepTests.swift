import FreshetSignals
import FreshetTestKit
import Testing
import WorldTestSupport

@testable import FreshetPipelines

@Suite("Sleep and wake")
struct SleepTests {
    let policy = RefreshPolicy(freshFor: .zero)

    @Test("about to sleep nothing starts, whoever asks; a run under way goes on, and at the wake all is one run")
    func gate() {
        let talk = Dialogue(policy)
        _ = talk.at(0, .hears("file", at: 0))
        #expect(talk.at(1, .goesToSleep(true)) == [])
        #expect(talk.at(2, .succeeds(1)) == [])
        #expect(talk.waitsFor == nil, "nothing wants to run")
        #expect(talk.at(3, .hears("network", at: 3)) == [])
        #expect(talk.activity == .waiting(Wait(.sleep)))
        #expect(talk.at(3.1, .refresh(request: 1, force: true)) == [])
        #expect(talk.at(3.2, .hears("file", at: 3.2)) == [])
        #expect(talk.pass(until: 4000) == [])
        let deeds = talk.at(4000, .woke, .hears("resume", at: 4000))
        #expect(deeds == [.starts(2, ["network", "operator", "file", "resume"])])
        #expect(talk.at(4001, .succeeds(2)) == [.answers(1, .changed)])
        #expect(talk.pass(until: 5000) == [])
    }

    @Test("a place that was asked for before is given back when it is granted too late")
    func slot() {
        let talk = Dialogue(policy)
        talk.grantsSlots = false
        _ = talk.at(0, .hears("file", at: 0))
        _ = talk.at(1, .goesToSleep(true))
        #expect(talk.at(2, .slotGranted(1)) == [])
        #expect(talk.slotReleases == [1])
        talk.grantsSlots = true
        #expect(talk.at(3, .woke, .hears("resume", at: 3)) == [.starts(1, ["file", "resume"])])
    }

    @Test("a sleep that comes to nothing lets what waited go on, without a wake")
    func notAfterAll() {
        let talk = Dialogue(policy)
        _ = talk.at(0, .goesToSleep(true))
        #expect(talk.at(1, .hears("file", at: 1)) == [])
        #expect(talk.at(20, .goesToSleep(false)) == [.starts(1, ["file"])])
    }

    @Test("told together, in whatever order, it is awake after a wake")
    func together() {
        let talk = Dialogue(policy)
        _ = talk.at(0, .goesToSleep(true), .woke)
        #expect(talk.at(1, .hears("file", at: 1)) == [.starts(1, ["file"])])
    }

    @Test("an overdue check comes after `resume`, and is the same run")
    func overdue() {
        let talk = Dialogue(
            RefreshPolicy(every: .seconds(900), randomDelay: .seconds(60)), plannedDelay: .seconds(30), lastCheck: 0)
        #expect(talk.wake == 930)
        // Not a timer before the wake; then the wake's word and the timer's ring come together.
        #expect(talk.at(5000, .woke, .timer, .hears("resume", at: 5000)) == [.starts(1, ["resume"])])
        #expect(talk.at(5001, .succeeds(1)) == [])
        #expect(talk.pass(until: 6000) == [.init(at: 5931, deed: .starts(2, ["timer"]))])
    }

    @Test("without a random delay it is one run with both causes, `resume` first")
    func overdueAtOnce() {
        let talk = Dialogue(RefreshPolicy(every: .seconds(900)), lastCheck: 0)
        #expect(talk.at(5000, .woke, .timer, .hears("resume", at: 4999.999)) == [.starts(1, ["resume", "timer"])])
        _ = talk.at(5001, .succeeds(1))
        #expect(talk.pass(until: 5900) == [])
    }

    @Test("who does not listen to `resume` checks once what is overdue, spread by the random delay")
    func overdueAlone() {
        let talk = Dialogue(
            RefreshPolicy(every: .seconds(900), randomDelay: .seconds(60)), plannedDelay: .seconds(30), lastCheck: 0)
        #expect(talk.at(5000, .woke, .timer) == [])
        #expect(talk.pass(until: 5100) == [.init(at: 5030, deed: .starts(1, ["timer"]))])
        _ = talk.at(5100, .succeeds(1))
        #expect(talk.pass(until: 6000) == [])
    }

    @Test("a run on connections from before the wake is cancelled, and another takes its place with all causes")
    func epoch() {
        let talk = Dialogue(policy)
        _ = talk.at(0, .hears("file", at: 0))
        #expect(talk.at(600, .woke, .hears("resume", at: 600)) == [])
        #expect(talk.at(600, .network(Dialogue.online(epoch: 2, since: 600))) == [.cancels(1)])
        #expect(talk.at(600.01, .ended(run: 1, .cancelled)) == [.starts(2, ["file", "resume"])])
        #expect(talk.orders.map(\.epoch) == [1, 2])
        _ = talk.at(601, .succeeds(2))
        #expect(talk.pass(until: 1000) == [])
    }

    @Test("a run that the wake started before the epoch's fact came is left alone")
    func epochAfterSignal() {
        let talk = Dialogue(policy)
        #expect(talk.at(600.002, .woke, .hears("resume", at: 600.001)) == [.starts(1, ["resume"])])
        #expect(talk.at(600.003, .network(Dialogue.online(epoch: 2, since: 600))) == [])
        _ = talk.at(601, .succeeds(1))
        #expect(talk.pass(until: 1000) == [])
    }

    @Test("a run of a pipeline that needs no network is not cancelled by an epoch")
    func epochElsewhere() {
        let talk = Dialogue(policy, needsNetwork: false)
        _ = talk.at(0, .hears("file", at: 0))
        #expect(talk.at(600, .woke, .network(Dialogue.online(epoch: 2, since: 600))) == [])
    }

    @Test("the deadline of a run under way does not count the sleep")
    func deadline() {
        let talk = Dialogue(RefreshPolicy(deadline: .seconds(20)), needsNetwork: false)
        _ = talk.at(0, .hears("file", at: 0))
        #expect(talk.at(600, .woke) == [])
        #expect(talk.wake == 620)
        #expect(talk.pass(until: 700) == [.init(at: 620, deed: .cancels(1))])
    }

    @Test("for 30 s after a wake a failure to connect is none, also for who does not listen to `resume`")
    func grace() {
        let talk = Dialogue(RefreshPolicy(every: .seconds(900)), lastCheck: 0)
        #expect(talk.at(5000, .woke) == [.starts(1, ["timer"])])
        var waits: [Double] = []
        for run in 1...4 {
            _ = talk.at(talk.now, .fails(UInt64(run), .connection))
            let before = talk.now
            waits.append(talk.pass(until: talk.now + 8).first.map { $0.at - before } ?? -1)
            _ = talk.at(before + (waits.last ?? 0))
        }
        #expect(waits.map { ($0 * 100).rounded() / 100 } == [0.25, 0.5, 1, 2])
        #expect(talk.summaries.allSatisfy { !$0.counts })
        #expect(talk.activity != .loaded && talk.machine.failing == nil)
    }

    @Test("the carrier lost a second after the wake and back two seconds later: one success, no failure counted")
    func carrier() {
        let talk = Dialogue(policy)
        #expect(talk.at(600, .woke, .hears("resume", at: 600)) == [.starts(1, ["resume"])])
        _ = talk.at(600, .network(Dialogue.online(epoch: 2, since: 600)))
        #expect(talk.at(601, .network(Dialogue.offline(epoch: 2, since: 601))) == [.cancels(1)])
        #expect(talk.at(601, .ended(run: 1, .cancelled)) == [])
        let deeds = talk.at(603, .network(Dialogue.online(epoch: 3, since: 603)), .hears("network", at: 603))
        #expect(deeds == [.starts(2, ["resume", "network"])])
        _ = talk.at(603.1, .succeeds(2))
        #expect(talk.pass(until: 1000) == [])
        #expect(talk.summaries.map(\.outcome) == [.superseded, .changed])
    }
}

@Suite("A wall clock that is stepped")
struct ClockStepTests {
    private func instant(_ second: Double) -> ContinuousClock.Instant { Dialogue.instant(second) }

    private func step(_ lastCheck: Double?, retryAfter: Double? = nil) -> RefreshMachine.Event {
        .clockStepped(
            StoredRefreshState(
                lastCheck: lastCheck.map(instant), retryAfter: retryAfter.map(instant), hasGeneration: true))
    }

    @Test("ends the back-off for a certificate whose dates did not fit, and no other")
    func certificate() {
        var talk = Dialogue(RefreshPolicy(retry: RetryPolicy(from: .seconds(600), to: .seconds(600))))
        _ = talk.at(0, .hears("file", at: 0))
        _ = talk.at(1, .fails(1, .certificateDate))
        #expect(talk.at(2, step(nil)) == [.starts(2, ["file"])])
        talk = Dialogue(RefreshPolicy(retry: RetryPolicy(from: .seconds(600), to: .seconds(600))))
        _ = talk.at(0, .hears("file", at: 0))
        _ = talk.at(1, .fails(1, .transient))
        #expect(talk.at(2, step(nil)) == [])
    }

    @Test("a machine that was off for days, with a clock that stood still: the check is due when the clock is right")
    func stoodStill() {
        let talk = Dialogue(RefreshPolicy(every: .seconds(86400)), plannedDelay: .seconds(5), lastCheck: -300)
        #expect(talk.wake == 86105)
        #expect(talk.at(10, step(-259_500)) == [])
        #expect(talk.freshness == .stale)
        #expect(talk.pass(until: 20) == [.init(at: 15, deed: .starts(1, ["timer"]))])
    }

    @Test("a clock that ran ahead: what seemed overdue is not")
    func ranAhead() {
        let talk = Dialogue(RefreshPolicy(every: .seconds(3600)), lastCheck: -9000)
        #expect(talk.wake == 2)
        #expect(talk.at(1, step(-600)) == [])
        #expect(talk.wake == 3000)
    }

    @Test("what has been checked since the start counts by boot time, which no step changes")
    func sinceStart() {
        let talk = Dialogue(RefreshPolicy(every: .seconds(3600)), lastCheck: -300)
        _ = talk.at(0, .hears("file", at: 0))
        _ = talk.at(1, .succeeds(1))
        #expect(talk.at(2, step(-259_500)) == [])
        #expect(talk.wake == 3601)
    }

    @Test(
        "changes nothing of a back-off or of what the origin asked for since the start, forward or back",
        arguments: [-86_400.0, 86_400])
    func duringBackOff(_ step: Double) {
        let policy = RefreshPolicy(
            quiet: .zero, freshFor: .zero, retry: RetryPolicy(from: .seconds(600), to: .seconds(600)))
        for kind in [RunFailure.Kind.connection, .transient, .refused, .content, .local, .deadline] {
            for asked in [nil, Duration.seconds(5000)] {
                let talk = Dialogue(policy, lastCheck: -300, retryAfter: nil)
                _ = talk.at(0, .hears("file", at: 0))
                _ = talk.at(1, .fails(1, kind, retryAfter: asked))
                let due = talk.nextRun
                #expect(talk.at(2, self.step(-300 - step, retryAfter: nil)) == [])
                #expect(talk.nextRun == due)
                #expect(talk.at(3, self.step(nil)) == [])
                #expect(talk.nextRun == due)
            }
        }
    }

    @Test("makes a wait that was remembered no longer than a week, however far the clock was set back")
    func farBack() throws {
        let stage = try Stage(RefreshPolicy(freshFor: .zero))
        stage.store.state.withLock {
            $0.remembered = PersistentState(retryAfter: stage.clock.wallStart + 600_000_000)
        }
        try stage.restart()
        try stage.fire("start")
        stage.clock.stepWall(by: .seconds(-10 * 365 * 86_400))
        stage.engine.clockStepped()
        try stage.executor.runUntilIdle()
        #expect(stage.status.waitsFor?.until == stage.clock.manual.start.advanced(by: Backoff.longestRetryAfter))
        stage.clock.stepWall(by: .seconds(10 * 365 * 86_400))
        stage.engine.clockStepped()
        try stage.executor.runUntilIdle()
        #expect(stage.status.waitsFor?.until == stage.clock.manual.start.advanced(by: .seconds(600)))
        try stage.advance(599)
        #expect(stage.origin.times == [])
        try stage.advance(1)
        #expect(stage.origin.times == [600])
    }

    @Test("a wait that the origin asked for before the restart ends when the clock says so")
    func retryAfter() {
        let talk = Dialogue(retryAfter: 5000)
        #expect(talk.at(0, .hears("file", at: 0)) == [])
        #expect(talk.at(10, step(nil, retryAfter: 60)) == [])
        #expect(talk.wake == 60)
        #expect(talk.at(20, step(nil)) == [.starts(1, ["file"])])
    }
}
