import FreshetModel
import FreshetSignals
import FreshetTestKit
import Testing
import WorldTestSupport

@testable import FreshetPipelines

@Suite("Sleep and wake")
struct SleepTests {
    let policy = RefreshPolicy(freshFor: .zero)

    @Test(
        "before a sleep no run starts, a run in progress continues, and after the wake there is one run"
    )
    func gate() {
        let dialogue = Dialogue(policy)
        _ = dialogue.at(0, .receives("file", at: 0))
        #expect(dialogue.at(1, .goesToSleep(true)) == [])
        #expect(dialogue.at(2, .succeeds(1)) == [])
        #expect(dialogue.waitsFor == nil, "no run is requested")
        #expect(dialogue.at(3, .receives("network", at: 3)) == [])
        #expect(dialogue.activity == .waiting(Wait(.sleep)))
        #expect(dialogue.at(3.1, .refresh(request: 1, force: true)) == [])
        #expect(dialogue.at(3.2, .receives("file", at: 3.2)) == [])
        #expect(dialogue.pass(until: 4000) == [])
        let outputs = dialogue.at(4000, .woke, .receives("resume", at: 4000))
        #expect(outputs == [.starts(2, ["network", "operator", "file", "resume"])])
        #expect(dialogue.at(4001, .succeeds(2)) == [.answers(1, .changed)])
        #expect(dialogue.pass(until: 5000) == [])
    }

    @Test("a permit that was requested before is released when it is granted too late")
    func permit() {
        let dialogue = Dialogue(policy)
        dialogue.grantsPermits = false
        _ = dialogue.at(0, .receives("file", at: 0))
        _ = dialogue.at(1, .goesToSleep(true))
        #expect(dialogue.at(2, .permitGranted(1)) == [])
        #expect(dialogue.permitReleases == [1])
        dialogue.grantsPermits = true
        #expect(dialogue.at(3, .woke, .receives("resume", at: 3)) == [.starts(1, ["file", "resume"])])
    }

    @Test("if an announced sleep does not come, waiting runs start without a wake")
    func notAfterAll() {
        let dialogue = Dialogue(policy)
        _ = dialogue.at(0, .goesToSleep(true))
        #expect(dialogue.at(1, .receives("file", at: 1)) == [])
        #expect(dialogue.at(20, .goesToSleep(false)) == [.starts(1, ["file"])])
    }

    @Test("for events that come together in any order, the machine is awake after a wake")
    func together() {
        let dialogue = Dialogue(policy)
        _ = dialogue.at(0, .goesToSleep(true), .woke)
        #expect(dialogue.at(1, .receives("file", at: 1)) == [.starts(1, ["file"])])
    }

    @Test("an overdue check comes after `resume`, and is the same run")
    func overdue() {
        let dialogue = Dialogue(
            RefreshPolicy(every: .seconds(900), randomDelay: .seconds(60)), plannedDelay: .seconds(30), lastCheck: 0)
        #expect(dialogue.wake == 930)
        // The timer does not fire before the wake; the wake and the timer come together.
        #expect(dialogue.at(5000, .woke, .timer, .receives("resume", at: 5000)) == [.starts(1, ["resume"])])
        #expect(dialogue.at(5001, .succeeds(1)) == [])
        #expect(dialogue.pass(until: 6000) == [.init(at: 5931, output: .starts(2, ["timer"]))])
    }

    @Test("without a random delay it is one run with both causes, `resume` first")
    func overdueAtOnce() {
        let dialogue = Dialogue(RefreshPolicy(every: .seconds(900)), lastCheck: 0)
        #expect(
            dialogue.at(5000, .woke, .timer, .receives("resume", at: 4999.999)) == [.starts(1, ["resume", "timer"])])
        _ = dialogue.at(5001, .succeeds(1))
        #expect(dialogue.pass(until: 5900) == [])
    }

    @Test("without a subscription to `resume` an overdue check runs once, spread by the random delay")
    func overdueAlone() {
        let dialogue = Dialogue(
            RefreshPolicy(every: .seconds(900), randomDelay: .seconds(60)), plannedDelay: .seconds(30), lastCheck: 0)
        #expect(dialogue.at(5000, .woke, .timer) == [])
        #expect(dialogue.pass(until: 5100) == [.init(at: 5030, output: .starts(1, ["timer"]))])
        _ = dialogue.at(5100, .succeeds(1))
        #expect(dialogue.pass(until: 6000) == [])
    }

    @Test("a run with connections from before the wake is cancelled, and another run with all causes replaces it")
    func epoch() {
        let dialogue = Dialogue(policy)
        _ = dialogue.at(0, .receives("file", at: 0))
        #expect(dialogue.at(600, .woke, .receives("resume", at: 600)) == [])
        #expect(dialogue.at(600, .network(Dialogue.online(epoch: 2, since: 600))) == [.cancels(1)])
        #expect(dialogue.at(600.01, .ended(run: 1, .cancelled)) == [.starts(2, ["file", "resume"])])
        #expect(dialogue.orders.map(\.epoch) == [1, 2])
        _ = dialogue.at(601, .succeeds(2))
        #expect(dialogue.pass(until: 1000) == [])
    }

    @Test("a run that the wake started before the new epoch came continues")
    func epochAfterSignal() {
        let dialogue = Dialogue(policy)
        #expect(dialogue.at(600.002, .woke, .receives("resume", at: 600.001)) == [.starts(1, ["resume"])])
        #expect(dialogue.at(600.003, .network(Dialogue.online(epoch: 2, since: 600))) == [])
        _ = dialogue.at(601, .succeeds(1))
        #expect(dialogue.pass(until: 1000) == [])
    }

    @Test("an epoch does not cancel a run of a pipeline that needs no network")
    func epochElsewhere() {
        let dialogue = Dialogue(policy, needsNetwork: false)
        _ = dialogue.at(0, .receives("file", at: 0))
        #expect(dialogue.at(600, .woke, .network(Dialogue.online(epoch: 2, since: 600))) == [])
    }

    @Test("the deadline of a run in progress does not count the sleep")
    func deadline() {
        let dialogue = Dialogue(RefreshPolicy(deadline: .seconds(20)), needsNetwork: false)
        _ = dialogue.at(0, .receives("file", at: 0))
        #expect(dialogue.at(600, .woke) == [])
        #expect(dialogue.wake == 620)
        #expect(dialogue.pass(until: 700) == [.init(at: 620, output: .cancels(1))])
    }

    @Test("for 30 s after a wake a failure to connect does not count, even without a subscription to `resume`")
    func grace() {
        let dialogue = Dialogue(RefreshPolicy(every: .seconds(900)), lastCheck: 0)
        #expect(dialogue.at(5000, .woke) == [.starts(1, ["timer"])])
        var waits: [Double] = []
        for run in 1...4 {
            _ = dialogue.at(dialogue.now, .fails(UInt64(run), .connection))
            let before = dialogue.now
            waits.append(dialogue.pass(until: dialogue.now + 8).first.map { $0.at - before } ?? -1)
            _ = dialogue.at(before + (waits.last ?? 0))
        }
        #expect(waits.map { ($0 * 100).rounded() / 100 } == [0.25, 0.5, 1, 2])
        #expect(dialogue.summaries.allSatisfy { !$0.counts })
        #expect(dialogue.activity != .loaded && dialogue.machine.schedule.failing == nil)
    }

    @Test("the carrier is lost a second after the wake and back two seconds later: one success, no failure counted")
    func carrier() {
        let dialogue = Dialogue(policy)
        #expect(dialogue.at(600, .woke, .receives("resume", at: 600)) == [.starts(1, ["resume"])])
        _ = dialogue.at(600, .network(Dialogue.online(epoch: 2, since: 600)))
        #expect(dialogue.at(601, .network(Dialogue.offline(epoch: 2, since: 601))) == [.cancels(1)])
        #expect(dialogue.at(601, .ended(run: 1, .cancelled)) == [])
        let outputs = dialogue.at(603, .network(Dialogue.online(epoch: 3, since: 603)), .receives("network", at: 603))
        #expect(outputs == [.starts(2, ["resume", "network"])])
        _ = dialogue.at(603.1, .succeeds(2))
        #expect(dialogue.pass(until: 1000) == [])
        #expect(dialogue.summaries.map(\.outcome) == [.superseded, .changed])
    }
}

@Suite("A wall clock that is stepped")
struct ClockStepTests {
    private func instant(_ second: Double) -> BootInstant { Dialogue.instant(second) }

    private func step(_ lastCheck: Double?, retryAfter: Double? = nil) -> RefreshMachine.Event {
        .clockStepped(
            StoredRefreshState(
                lastCheck: lastCheck.map(instant), retryAfter: retryAfter.map(instant), hasGeneration: true))
    }

    @Test("ends the backoff for a certificate with unfit dates, and no other")
    func certificate() {
        var dialogue = Dialogue(RefreshPolicy(retry: RetryPolicy(from: .seconds(600), to: .seconds(600))))
        _ = dialogue.at(0, .receives("file", at: 0))
        _ = dialogue.at(1, .fails(1, .certificateDate))
        #expect(dialogue.at(2, step(nil)) == [.starts(2, ["file"])])
        dialogue = Dialogue(RefreshPolicy(retry: RetryPolicy(from: .seconds(600), to: .seconds(600))))
        _ = dialogue.at(0, .receives("file", at: 0))
        _ = dialogue.at(1, .fails(1, .transient))
        #expect(dialogue.at(2, step(nil)) == [])
    }

    @Test("a machine that was off for days with a clock that stood still: the check is due when the clock is right")
    func stoodStill() {
        let dialogue = Dialogue(RefreshPolicy(every: .seconds(86400)), plannedDelay: .seconds(5), lastCheck: -300)
        #expect(dialogue.wake == 86105)
        #expect(dialogue.at(10, step(-259_500)) == [])
        #expect(dialogue.freshness == .stale)
        #expect(dialogue.pass(until: 20) == [.init(at: 15, output: .starts(1, ["timer"]))])
    }

    @Test("a clock that ran ahead: a check that seemed overdue is not")
    func ranAhead() {
        let dialogue = Dialogue(RefreshPolicy(every: .seconds(3600)), lastCheck: -9000)
        #expect(dialogue.wake == 2)
        #expect(dialogue.at(1, step(-600)) == [])
        #expect(dialogue.wake == 3000)
    }

    @Test("checks since the start count by boot time, which no step changes")
    func sinceStart() {
        let dialogue = Dialogue(RefreshPolicy(every: .seconds(3600)), lastCheck: -300)
        _ = dialogue.at(0, .receives("file", at: 0))
        _ = dialogue.at(1, .succeeds(1))
        #expect(dialogue.at(2, step(-259_500)) == [])
        #expect(dialogue.wake == 3601)
    }

    @Test(
        "changes neither a backoff nor a Retry-After since the start, forward or back",
        arguments: [-86_400.0, 86_400])
    func duringBackoff(_ step: Double) {
        let policy = RefreshPolicy(
            quiet: .zero, freshFor: .zero, retry: RetryPolicy(from: .seconds(600), to: .seconds(600)))
        for kind in [RunFailure.Kind.connection, .transient, .refused, .content, .local, .deadline] {
            for asked in [nil, Duration.seconds(5000)] {
                let dialogue = Dialogue(policy, lastCheck: -300, retryAfter: nil)
                _ = dialogue.at(0, .receives("file", at: 0))
                _ = dialogue.at(1, .fails(1, kind, retryAfter: asked))
                let due = dialogue.nextRun
                #expect(dialogue.at(2, self.step(-300 - step, retryAfter: nil)) == [])
                #expect(dialogue.nextRun == due)
                #expect(dialogue.at(3, self.step(nil)) == [])
                #expect(dialogue.nextRun == due)
            }
        }
    }

    @Test("limits a stored wait to a week, however far the clock was set back")
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
        #expect(stage.status.waitsFor?.until == stage.clock.start.advanced(by: Backoff.longestRetryAfter))
        stage.clock.stepWall(by: .seconds(10 * 365 * 86_400))
        stage.engine.clockStepped()
        try stage.executor.runUntilIdle()
        #expect(stage.status.waitsFor?.until == stage.clock.start.advanced(by: .seconds(600)))
        try stage.advance(599)
        #expect(stage.origin.times == [])
        try stage.advance(1)
        #expect(stage.origin.times == [600])
    }

    @Test("a Retry-After from before the restart ends when the clock says so")
    func retryAfter() {
        let dialogue = Dialogue(retryAfter: 5000)
        #expect(dialogue.at(0, .receives("file", at: 0)) == [])
        #expect(dialogue.at(10, step(nil, retryAfter: 60)) == [])
        #expect(dialogue.wake == 60)
        #expect(dialogue.at(20, step(nil)) == [.starts(1, ["file"])])
    }
}
