import Testing

@testable import FreshetPipelines

@Suite("A run of which not all is new, or for which there is nothing yet")
struct PartialTests {
    let policy = RefreshPolicy(
        every: .seconds(600), freshFor: .seconds(60), retry: RetryPolicy(from: .seconds(8), to: .seconds(8)))

    private func partly(_ run: UInt64, _ kind: RunFailure.Kind, retryAfter: Duration? = nil) -> RefreshMachine.Event {
        .ended(
            run: run,
            .succeeded(
                changed: true, generation: 1, flaw: RunFailure(kind, "1 of 2 branches failed", retryAfter: retryAfter)))
    }

    @Test("it has made a copy, answers who waited, and is tried again like one that failed")
    func partial() throws {
        let talk = Dialogue(policy)
        _ = talk.at(0, .refresh(request: 1, force: false))
        #expect(talk.at(1, partly(1, .transient)) == [.answers(1, .changed)])
        #expect(talk.machine.activity(at: Dialogue.instant(1)) == .loaded)
        let next = try #require(talk.nextRun)
        #expect(next.reason == .retry)
        #expect(Dialogue.seconds(next.at) <= 9)
        #expect(talk.machine.failing?.isPartial == true)
        // It was no check by which all would be fresh.
        #expect(talk.machine.freshness(at: Dialogue.instant(2)) == .stale)
        #expect(talk.pass(until: 10).map(\.deed) == [.starts(2, ["operator"])])
        _ = talk.at(10.5, .succeeds(2))
        #expect(talk.machine.failing == nil)
        #expect(talk.nextRun?.reason == .timer)
    }

    @Test("what the origin refuses of it is not asked for again before the next check, and that is not put off")
    func refused() {
        let talk = Dialogue(policy)
        _ = talk.at(0, .hears("file", at: 0))
        _ = talk.at(1, partly(1, .refused))
        #expect(talk.pass(until: 601) == [.init(at: 601, deed: .starts(2, ["file"]))])
        // Without a check that is planned it waits as any refusal does.
        let other = Dialogue(RefreshPolicy(freshFor: .zero))
        _ = other.at(0, .hears("file", at: 0))
        _ = other.at(1, partly(1, .refused))
        #expect(other.pass(until: 3600) == [])
        #expect(other.pass(until: 10_000).map(\.deed).prefix(1) == [.starts(2, ["file"])])
    }

    @Test("a branch that cannot connect holds up nothing, though the network is away")
    func offline() {
        let talk = Dialogue(policy)
        _ = talk.at(0, .hears("file", at: 0))
        _ = talk.at(0.5, .network(Dialogue.offline(epoch: 2, since: 0.5)))
        _ = talk.at(1, partly(1, .connection))
        #expect(talk.summaries.last?.outcome == .changed)
        #expect(talk.machine.activity(at: Dialogue.instant(1)) != .idle)
    }

    @Test("without what it is made of it fails nothing, answers who asked, and runs when that is there")
    func absent() {
        let talk = Dialogue(policy, needsNetwork: false)
        _ = talk.at(0, .refresh(request: 1, force: false))
        #expect(talk.at(1, .fails(1, .absent)) == [.answers(1, .failed)])
        #expect(talk.machine.activity(at: Dialogue.instant(1)) == .idle)
        #expect(talk.machine.failing == nil)
        #expect(talk.summaries.last?.counts == false)
        #expect(talk.pass(until: 5000) == [])
        #expect(talk.at(5000, .hears("pipeline", at: 5000)) == [.starts(2, ["pipeline"])])
    }
}
