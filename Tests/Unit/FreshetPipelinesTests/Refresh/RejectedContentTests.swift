import FreshetModel
import Testing

@testable import FreshetPipelines

@Suite("After a check has rejected the origin's content")
struct RejectedContentTests {
    let policy = RefreshPolicy(
        every: .seconds(600), freshFor: .seconds(60), retry: RetryPolicy(from: .seconds(1), to: .seconds(300)))

    /// The first run has ended with rejected content, at second 10.
    private func refused(
        _ policy: RefreshPolicy? = nil, _ rejection: RunFailure.Rejection = .lasting, plannedDelay: Duration = .zero
    ) -> Dialogue {
        let dialogue = Dialogue(policy ?? self.policy, plannedDelay: plannedDelay)
        _ = dialogue.at(0, .receives("start", at: 0))
        _ = dialogue.at(10, .refuses(1, rejection))
        return dialogue
    }

    /// Rejects the content in each planned check, beginning with `run`, and returns after how many seconds each came.
    private func waits(_ dialogue: Dialogue, from run: UInt64 = 2, _ times: Int) -> [Double] {
        (0..<UInt64(times)).map { number in
            let before = dialogue.now
            guard let next = dialogue.nextRun, next.reason == .timer else { return -1 }
            let due = Dialogue.seconds(next.at)
            #expect(dialogue.pass(until: due).map(\.output) == [.starts(run + number, ["timer"])])
            _ = dialogue.at(due, .refuses(run + number, .lasting))
            return ((due - before) * 1000).rounded() / 1000
        }
    }

    @Test("the next check comes after a minute, doubled each time up to the interval after a success")
    func grows() {
        #expect(waits(refused(plannedDelay: .seconds(5)), 6) == [60, 120, 240, 480, 605, 605])
        // However short the longest backoff is.
        let retry = RetryPolicy(from: .seconds(100), to: .seconds(150))
        let slow = refused(RefreshPolicy(every: .seconds(86_400), freshFor: .zero, retry: retry))
        #expect(waits(slow, 12).suffix(3) == [51_200, 86_400, 86_400])
        #expect(waits(refused(RefreshPolicy(every: .seconds(20), freshFor: .zero)), 3) == [20, 20, 20])
        let forever = RefreshPolicy(every: .seconds(100 * 366 * 86_400), freshFor: .zero)
        // No more: an instant is at most 292 years after the clock's start.
        #expect(waits(refused(forever), 27).last == 3_162_240_000.0)
    }

    @Test("after a success it begins with a minute again; a failure in between, or a reload, does not reset it")
    func beginsAnew() throws {
        let dialogue = refused()
        #expect(waits(dialogue, 2) == [60, 120])
        _ = dialogue.at(200, .reconfigured(RefreshSettings(policy: policy, needsNetwork: true), sameProduct: true))
        #expect(dialogue.nextRun == PlannedRun(at: Dialogue.instant(430), reason: .timer))
        _ = dialogue.at(300, .receives("file", at: 300))
        _ = dialogue.at(300, .fails(4, .transient))
        #expect(dialogue.pass(until: 302).map(\.output) == [.starts(5, ["file"])])
        _ = dialogue.at(302, .refuses(5, .lasting))
        #expect(dialogue.nextRun == PlannedRun(at: Dialogue.instant(302 + 240), reason: .timer))
        _ = dialogue.at(310, .receives("file", at: 310))
        _ = dialogue.at(310, .succeeds(6))
        _ = dialogue.at(400, .receives("file", at: 400))
        _ = dialogue.at(400, .refuses(7, .lasting))
        #expect(waits(dialogue, from: 8, 1) == [60])
    }

    @Test("early checks, by the operator or by signals, do not lengthen the wait")
    func sooner() {
        let dialogue = refused()
        for run in 2...UInt64(30) {
            let second = 10 + Double(run)
            _ = dialogue.at(second, run % 2 == 0 ? .refresh(request: nil, force: true) : .receives("file", at: second))
            _ = dialogue.pass(until: second + 0.5)
            _ = dialogue.at(second + 0.5, .refuses(run, .lasting))
        }
        guard case .failed(_, _, let attempts) = dialogue.activity else {
            Issue.record("\(dialogue.activity)")
            return
        }
        #expect(attempts == dialogue.orders.count && attempts > 10)
        let last = dialogue.summaries.last?.ended
        #expect(last.flatMap { dialogue.nextRun?.at == $0.advanced(by: .seconds(60)) } == true)
    }

    @Test("the limits on every check apply: the network, a budget, min-interval")
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
        "the pipeline counts as failed until the next check",
        arguments: [
            RunFailure.Rejection.lasting, .passing,
        ])
    func planned(_ rejection: RunFailure.Rejection) throws {
        let dialogue = refused(nil, rejection, plannedDelay: .seconds(5))
        #expect(dialogue.nextRun == PlannedRun(at: Dialogue.instant(70), reason: .timer))
        guard case .failed(let failure, _, let attempts) = dialogue.activity else {
            Issue.record("\(dialogue.activity)")
            return
        }
        #expect(failure.rejection == rejection && attempts == 1)
        #expect(dialogue.pass(until: 69.9) == [])
        #expect(dialogue.pass(until: 70).map(\.output) == [.starts(2, ["timer"])])
        _ = dialogue.at(71, .succeeds(2))
        #expect(dialogue.activity == .loaded)
        #expect(dialogue.nextRun == PlannedRun(at: Dialogue.instant(676), reason: .timer))
    }

    @Test("content that may match in a moment is retried soon, and so is all content without planned checks")
    func soon() throws {
        for dialogue in [refused(nil, .brief), refused(RefreshPolicy(freshFor: .zero))] {
            let next = try #require(dialogue.nextRun)
            #expect(next.reason == .retry && next.at <= Dialogue.instant(11))
        }
    }

    @Test("environment signals are skipped for fresh-for, requests run immediately")
    func signals() {
        var policy = policy
        policy.freshFor = .seconds(40)
        let dialogue = refused(policy)
        #expect(dialogue.at(20, .receives("resume", at: 20)) == [])
        #expect(dialogue.at(30, .receives("file", at: 30)) == [.starts(2, ["file"])])
        _ = dialogue.at(31, .refuses(2, .lasting))
        #expect(dialogue.at(70, .receives("network", at: 70)) == [])
        #expect(dialogue.pass(until: 71) == [])
        #expect(dialogue.at(72, .receives("network", at: 72)) == [.starts(3, ["network"])])
    }

    @Test("earlier environment signals are answered by it")
    func answered() {
        let dialogue = Dialogue(policy)
        _ = dialogue.at(0, .receives("start", at: 0))
        #expect(dialogue.at(1, .receives("network", at: 1)) == [])
        _ = dialogue.at(10, .refuses(1, .lasting))
        #expect(dialogue.pass(until: 69) == [])
    }

    /// Ends the next attempt with this result.
    private func tryAgain(_ dialogue: Dialogue, _ end: (UInt64) -> Dialogue.Event) throws {
        let start = Dialogue.seconds(try #require(dialogue.nextRun).at) + 0.001
        _ = dialogue.pass(until: start)
        _ = dialogue.at(start, end(UInt64(dialogue.orders.count)))
    }

    @Test("a lasting mismatch is not retried soon, but like rejected content")
    func briefForLong() throws {
        let dialogue = refused(nil, .brief)
        for _ in 2...RefreshMachine.mostBriefRejections {
            #expect(dialogue.nextRun?.reason == .retry)
            try tryAgain(dialogue) { .refuses($0, .brief) }
        }
        #expect(dialogue.nextRun?.reason == .retry)
        try tryAgain(dialogue) { .refuses($0, .brief) }
        #expect(dialogue.nextRun == PlannedRun(at: Dialogue.instant(dialogue.now + 60), reason: .timer))
        try tryAgain(dialogue) { .refuses($0, .brief) }
        #expect(dialogue.nextRun == PlannedRun(at: Dialogue.instant(dialogue.now + 120), reason: .timer))
    }

    @Test(
        "neither an outage before it, however long, nor a lasting rejection makes a mismatch a lasting one"
    )
    func briefCountedApart() throws {
        let dialogue = Dialogue(policy)
        _ = dialogue.at(0, .receives("start", at: 0))
        _ = dialogue.at(1, .fails(1, .transient))
        for _ in 0...RefreshMachine.mostBriefRejections { try tryAgain(dialogue) { .fails($0, .transient) } }
        try tryAgain(dialogue) { .refuses($0, .brief) }
        guard case .failed(_, _, 1) = dialogue.activity else {
            Issue.record("\(dialogue.activity)")
            return
        }
        let next = try #require(dialogue.nextRun)
        #expect(next.reason == .retry && next.at <= Dialogue.instant(dialogue.now + 1))
        for _ in 0...RefreshMachine.mostBriefRejections { try tryAgain(dialogue) { .refuses($0, .lasting) } }
        try tryAgain(dialogue) { .refuses($0, .brief) }
        #expect(dialogue.nextRun?.reason == .retry)
        // The backoff of an outage continues where it was.
        try tryAgain(dialogue) { .fails($0, .transient) }
        guard case .failed(_, _, RefreshMachine.mostBriefRejections + 3) = dialogue.activity else {
            Issue.record("\(dialogue.activity)")
            return
        }
    }

    @Test("after an acceptance during the next check, the rejection is over, and only that check's result counts")
    func acceptedMeanwhile() throws {
        let dialogue = refused()
        #expect(dialogue.at(20, .receives("file", at: 20)) == [.starts(2, ["file"])])
        _ = dialogue.at(21, .accepted(run: 1))
        #expect(dialogue.machine.schedule.failing == nil && dialogue.machine.schedule.plan == nil)
        _ = dialogue.at(22, .fails(2, .transient))
        let next = try #require(dialogue.nextRun)
        #expect(next.reason == .retry && next.at <= Dialogue.instant(23) && dialogue.machine.schedule.plan == nil)
        #expect(dialogue.pass(until: 24).map(\.output) == [.starts(3, ["file"])])
        _ = dialogue.at(24, .succeeds(3))
        #expect(dialogue.nextRun == PlannedRun(at: Dialogue.instant(624), reason: .timer))
        #expect(dialogue.pass(until: 623) == [])
    }

    @Test("after any number of rejections, the origin's first failure counts as the first")
    func countedApart() throws {
        let dialogue = refused()
        _ = waits(dialogue, 8)
        guard case .failed(_, _, 9) = dialogue.activity else {
            Issue.record("\(dialogue.activity)")
            return
        }
        let start = dialogue.now + 600
        _ = dialogue.pass(until: start)
        _ = dialogue.at(start, .fails(10, .transient))
        let next = try #require(dialogue.nextRun)
        #expect(next.reason == .retry && next.at <= Dialogue.instant(start + 1))
        guard case .failed(_, let since, 1) = dialogue.activity else {
            Issue.record("\(dialogue.activity)")
            return
        }
        // There was no success since then, for whatever reason.
        #expect(since == Dialogue.instant(10))
    }

    @Test("the requesting client gets the result, and another configuration is fetched again")
    func others() {
        let dialogue = refused()
        #expect(dialogue.at(20, .refresh(request: 5, force: false)) == [.starts(2, ["operator"])])
        #expect(dialogue.at(21, .refuses(2, .lasting)) == [.answers(5, .failed)])
        _ = dialogue.at(
            22, .reconfigured(RefreshSettings(policy: policy, needsNetwork: true), sameProduct: false),
            .receives("resume", at: 22))
        #expect(dialogue.orders.count == 3)
    }
}

extension Dialogue.Event {
    fileprivate static func refuses(_ run: UInt64, _ rejection: RunFailure.Rejection) -> Self {
        .ended(run: run, .failed(RunFailure(.content, "it is refused", rejection: rejection)))
    }
}
