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

    @Test(
        "the next check comes as after one that succeeded, and it is told as failed until then",
        arguments: [
            RunFailure.Refusal.lasting, .passing,
        ])
    func planned(_ refusal: RunFailure.Refusal) throws {
        let talk = refused(nil, refusal, plannedDelay: .seconds(5))
        #expect(talk.nextRun == PlannedRun(at: Dialogue.instant(615), reason: .timer))
        guard case .failed(let failure, _, let attempts) = talk.activity else {
            Issue.record("\(talk.activity)")
            return
        }
        #expect(failure.refusal == refusal && attempts == 1)
        #expect(talk.pass(until: 614.9) == [])
        #expect(talk.pass(until: 615).map(\.deed) == [.starts(2, ["timer"])])
        _ = talk.at(616, .succeeds(2))
        #expect(talk.activity == .loaded)
        #expect(talk.nextRun == PlannedRun(at: Dialogue.instant(1221), reason: .timer))
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
        let talk = refused()
        #expect(talk.at(20, .hears("resume", at: 20)) == [])
        #expect(talk.at(30, .hears("file", at: 30)) == [.starts(2, ["file"])])
        _ = talk.at(31, .refuses(2, .lasting))
        #expect(talk.at(90, .hears("network", at: 90)) == [])
        #expect(talk.pass(until: 91) == [])
        #expect(talk.at(92, .hears("network", at: 92)) == [.starts(3, ["network"])])
    }

    @Test("what the surroundings asked for by then is answered by it")
    func answered() {
        let talk = Dialogue(policy)
        _ = talk.at(0, .hears("start", at: 0))
        #expect(talk.at(1, .hears("network", at: 1)) == [])
        _ = talk.at(10, .refuses(1, .lasting))
        #expect(talk.pass(until: 609) == [])
    }

    @Test(
        "what does not fit for long is no matter of a moment, and waits for every; with failures it is counted as one")
    func briefForLong() throws {
        let talk = refused(nil, .brief)
        for run in 2...UInt64(RefreshMachine.mostBriefRefusals) {
            let due = try #require(talk.nextRun)
            #expect(due.reason == .retry)
            let start = Dialogue.instant(0).duration(to: due.at) / .seconds(1) + 0.001
            _ = talk.pass(until: start)
            _ = talk.at(start, run == 3 ? .fails(run, .transient) : .refuses(run, .brief))
        }
        let due = try #require(talk.nextRun)
        let start = (Dialogue.instant(0).duration(to: due.at) / .seconds(1)).rounded(.up)
        _ = talk.pass(until: start)
        _ = talk.at(start, .refuses(UInt64(RefreshMachine.mostBriefRefusals) + 1, .brief))
        #expect(talk.nextRun == PlannedRun(at: Dialogue.instant(start + 600), reason: .timer))
    }

    @Test("however often that was, the origin's first failure after it is the first")
    func countedApart() throws {
        let talk = refused()
        for run in 2...UInt64(9) {
            let start = Double(run - 1) * 600 + 10
            #expect(talk.pass(until: start).map(\.deed) == [.starts(run, ["timer"])])
            _ = talk.at(start, .refuses(run, .lasting))
        }
        guard case .failed(_, _, 9) = talk.activity else {
            Issue.record("\(talk.activity)")
            return
        }
        let start = 9.0 * 600 + 10
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
