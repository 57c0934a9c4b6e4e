import Testing

@testable import FreshetPipelines

@Suite("After a check has refused what the origin has")
struct RefusedContentTests {
    let policy = RefreshPolicy(
        every: .seconds(600), freshFor: .seconds(60), retry: RetryPolicy(from: .seconds(1), to: .seconds(300)))

    /// The first run has ended with something refused, at second 10.
    private func refused(
        _ policy: RefreshPolicy? = nil, _ refusal: RunFailure.Refusal = .lasting, plannedDelay: Duration = .zero
    ) -> Dialogue {
        let talk = Dialogue(policy ?? self.policy, plannedDelay: plannedDelay)
        _ = talk.at(0, .hears("start", at: 0))
        _ = talk.at(10, .refuses(1, refusal))
        return talk
    }

    /// Refuses in each check by the clock, the first of which is `run`, and says after how many seconds each came.
    private func waits(_ talk: Dialogue, from run: UInt64 = 2, _ times: Int) -> [Double] {
        (0..<UInt64(times)).map { number in
            let before = talk.now
            guard let next = talk.nextRun, next.reason == .timer else { return -1 }
            let due = Dialogue.seconds(next.at)
            #expect(talk.pass(until: due).map(\.deed) == [.starts(run + number, ["timer"])])
            _ = talk.at(due, .refuses(run + number, .lasting))
            return ((due - before) * 1000).rounded() / 1000
        }
    }

    @Test("the next check comes after a minute, and after twice as long each time, until that is as after a success")
    func grows() {
        #expect(waits(refused(plannedDelay: .seconds(5)), 6) == [60, 120, 240, 480, 605, 605])
        // However few seconds the back-off may have at most.
        let retry = RetryPolicy(from: .seconds(100), to: .seconds(150))
        let slow = refused(RefreshPolicy(every: .seconds(86_400), freshFor: .zero, retry: retry))
        #expect(waits(slow, 12).suffix(3) == [51_200, 86_400, 86_400])
        #expect(waits(refused(RefreshPolicy(every: .seconds(20), freshFor: .zero)), 3) == [20, 20, 20])
        let forever = RefreshPolicy(every: .seconds(100 * 366 * 86_400), freshFor: .zero)
        #expect(waits(refused(forever), 30).last == 3_162_240_000.0)
    }

    @Test("once all was well it begins with a minute again; a failure in between, or a reload, changes nothing of it")
    func beginsAnew() throws {
        let talk = refused()
        #expect(waits(talk, 2) == [60, 120])
        _ = talk.at(200, .reconfigured(RefreshSettings(policy: policy, needsNetwork: true), sameProduct: true))
        #expect(talk.nextRun == PlannedRun(at: Dialogue.instant(430), reason: .timer))
        _ = talk.at(300, .hears("file", at: 300))
        _ = talk.at(300, .fails(4, .transient))
        #expect(talk.pass(until: 302).map(\.deed) == [.starts(5, ["file"])])
        _ = talk.at(302, .refuses(5, .lasting))
        #expect(talk.nextRun == PlannedRun(at: Dialogue.instant(302 + 240), reason: .timer))
        _ = talk.at(310, .hears("file", at: 310))
        _ = talk.at(310, .succeeds(6))
        _ = talk.at(400, .hears("file", at: 400))
        _ = talk.at(400, .refuses(7, .lasting))
        #expect(waits(talk, from: 8, 1) == [60])
    }

    @Test("checks that come sooner, by the operator or by signals, make it no longer: it is waited for once more")
    func sooner() {
        let talk = refused()
        for run in 2...UInt64(30) {
            let second = 10 + Double(run)
            _ = talk.at(second, run % 2 == 0 ? .refresh(request: nil, force: true) : .hears("file", at: second))
            _ = talk.pass(until: second + 0.5)
            _ = talk.at(second + 0.5, .refuses(run, .lasting))
        }
        guard case .failed(_, _, let attempts) = talk.activity else {
            Issue.record("\(talk.activity)")
            return
        }
        #expect(attempts == talk.orders.count && attempts > 10)
        let last = talk.summaries.last?.ended
        #expect(last.flatMap { talk.nextRun?.at == $0.advanced(by: .seconds(60)) } == true)
    }

    @Test("what holds back every check holds back this one: the network, a budget, min-interval")
    func heldBack() throws {
        let offline = refused()
        _ = offline.at(20, .network(Dialogue.offline(epoch: 1, since: 20)))
        #expect(offline.pass(until: 300) == [])
        #expect(offline.waitsFor?.reason == .network)
        var policy = policy
        policy.budget = RequestBudget(1, per: .hour)
        let poor = refused(policy)
        #expect(poor.pass(until: 300) == [])
        #expect(poor.waitsFor?.reason == .budget)
        policy.budget = nil
        policy.minInterval = .seconds(200)
        #expect(refused(policy).pass(until: 300).map(\.at) == [200])
    }

    @Test(
        "it is told as failed until the next check",
        arguments: [
            RunFailure.Refusal.lasting, .passing,
        ])
    func planned(_ refusal: RunFailure.Refusal) throws {
        let talk = refused(nil, refusal, plannedDelay: .seconds(5))
        #expect(talk.nextRun == PlannedRun(at: Dialogue.instant(70), reason: .timer))
        guard case .failed(let failure, _, let attempts) = talk.activity else {
            Issue.record("\(talk.activity)")
            return
        }
        #expect(failure.refusal == refusal && attempts == 1)
        #expect(talk.pass(until: 69.9) == [])
        #expect(talk.pass(until: 70).map(\.deed) == [.starts(2, ["timer"])])
        _ = talk.at(71, .succeeds(2))
        #expect(talk.activity == .loaded)
        #expect(talk.nextRun == PlannedRun(at: Dialogue.instant(676), reason: .timer))
    }

    @Test("what may fit in a moment is tried again soon, and so is all where nothing is planned")
    func soon() throws {
        for talk in [refused(nil, .brief), refused(RefreshPolicy(freshFor: .zero))] {
            let next = try #require(talk.nextRun)
            #expect(next.reason == .retry && next.at <= Dialogue.instant(11))
        }
    }

    @Test("signals of the surroundings fetch nothing for fresh-for, demands do at once")
    func signals() {
        var policy = policy
        policy.freshFor = .seconds(40)
        let talk = refused(policy)
        #expect(talk.at(20, .hears("resume", at: 20)) == [])
        #expect(talk.at(30, .hears("file", at: 30)) == [.starts(2, ["file"])])
        _ = talk.at(31, .refuses(2, .lasting))
        #expect(talk.at(70, .hears("network", at: 70)) == [])
        #expect(talk.pass(until: 71) == [])
        #expect(talk.at(72, .hears("network", at: 72)) == [.starts(3, ["network"])])
    }

    @Test("what the surroundings asked for by then is answered by it")
    func answered() {
        let talk = Dialogue(policy)
        _ = talk.at(0, .hears("start", at: 0))
        #expect(talk.at(1, .hears("network", at: 1)) == [])
        _ = talk.at(10, .refuses(1, .lasting))
        #expect(talk.pass(until: 69) == [])
    }

    /// Ends the next attempt so.
    private func tryAgain(_ talk: Dialogue, _ end: (UInt64) -> Dialogue.Event) throws {
        let start = Dialogue.seconds(try #require(talk.nextRun).at) + 0.001
        _ = talk.pass(until: start)
        _ = talk.at(start, end(UInt64(talk.orders.count)))
    }

    @Test("what does not fit for long is no matter of a moment, and is asked for like what is refused for good")
    func briefForLong() throws {
        let talk = refused(nil, .brief)
        for _ in 2...RefreshMachine.mostBriefRefusals {
            #expect(talk.nextRun?.reason == .retry)
            try tryAgain(talk) { .refuses($0, .brief) }
        }
        #expect(talk.nextRun?.reason == .retry)
        try tryAgain(talk) { .refuses($0, .brief) }
        #expect(talk.nextRun == PlannedRun(at: Dialogue.instant(talk.now + 60), reason: .timer))
        try tryAgain(talk) { .refuses($0, .brief) }
        #expect(talk.nextRun == PlannedRun(at: Dialogue.instant(talk.now + 120), reason: .timer))
    }

    @Test(
        "neither an outage before it, however long, nor what is refused for good makes what does not fit a matter of long"
    )
    func briefCountedApart() throws {
        let talk = Dialogue(policy)
        _ = talk.at(0, .hears("start", at: 0))
        _ = talk.at(1, .fails(1, .transient))
        for _ in 0...RefreshMachine.mostBriefRefusals { try tryAgain(talk) { .fails($0, .transient) } }
        try tryAgain(talk) { .refuses($0, .brief) }
        guard case .failed(_, _, 1) = talk.activity else {
            Issue.record("\(talk.activity)")
            return
        }
        let next = try #require(talk.nextRun)
        #expect(next.reason == .retry && next.at <= Dialogue.instant(talk.now + 1))
        for _ in 0...RefreshMachine.mostBriefRefusals { try tryAgain(talk) { .refuses($0, .lasting) } }
        try tryAgain(talk) { .refuses($0, .brief) }
        #expect(talk.nextRun?.reason == .retry)
        // And the back-off of an outage goes on where it was.
        try tryAgain(talk) { .fails($0, .transient) }
        guard case .failed(_, _, RefreshMachine.mostBriefRefusals + 3) = talk.activity else {
            Issue.record("\(talk.activity)")
            return
        }
    }

    @Test("Accepted while the next check is under way, it has not failed, and what that check finds counts alone")
    func acceptedMeanwhile() throws {
        let talk = refused()
        #expect(talk.at(20, .hears("file", at: 20)) == [.starts(2, ["file"])])
        _ = talk.at(21, .accepted(run: 1))
        #expect(talk.machine.failing == nil && talk.machine.plan == nil)
        _ = talk.at(22, .fails(2, .transient))
        let next = try #require(talk.nextRun)
        #expect(next.reason == .retry && next.at <= Dialogue.instant(23) && talk.machine.plan == nil)
        #expect(talk.pass(until: 24).map(\.deed) == [.starts(3, ["file"])])
        _ = talk.at(24, .succeeds(3))
        #expect(talk.nextRun == PlannedRun(at: Dialogue.instant(624), reason: .timer))
        #expect(talk.pass(until: 623) == [])
    }

    @Test("however often that was, the origin's first failure after it is the first")
    func countedApart() throws {
        let talk = refused()
        _ = waits(talk, 8)
        guard case .failed(_, _, 9) = talk.activity else {
            Issue.record("\(talk.activity)")
            return
        }
        let start = talk.now + 600
        _ = talk.pass(until: start)
        _ = talk.at(start, .fails(10, .transient))
        let next = try #require(talk.nextRun)
        #expect(next.reason == .retry && next.at <= Dialogue.instant(start + 1))
        guard case .failed(_, let since, 1) = talk.activity else {
            Issue.record("\(talk.activity)")
            return
        }
        // It has not been well since then, for whatever reason.
        #expect(since == Dialogue.instant(10))
    }

    @Test("who asked for the run is told, and what is configured anew is asked for anew")
    func others() {
        let talk = refused()
        #expect(talk.at(20, .refresh(request: 5, force: false)) == [.starts(2, ["operator"])])
        #expect(talk.at(21, .refuses(2, .lasting)) == [.answers(5, .failed)])
        _ = talk.at(
            22, .reconfigured(RefreshSettings(policy: policy, needsNetwork: true), sameProduct: false),
            .hears("resume", at: 22))
        #expect(talk.orders.count == 3)
    }
}

extension Dialogue.Event {
    fileprivate static func refuses(_ run: UInt64, _ refusal: RunFailure.Refusal) -> Self {
        .ended(run: run, .failed(RunFailure(.content, "it is refused", refusal: refusal)))
    }
}
