import FreshetModel
import Testing

@testable import FreshetPipelines

@Suite("A partly failed run, or a run without its input")
struct PartialTests {
    let policy = RefreshPolicy(
        every: .seconds(600), freshFor: .seconds(60), retry: RetryPolicy(from: .seconds(8), to: .seconds(8)))

    private func partly(_ run: UInt64, _ kind: RunFailure.Kind, retryAfter: Duration? = nil) -> RefreshMachine.Event {
        .ended(
            run: run,
            .succeeded(
                changed: true, generation: 1, flaw: RunFailure(kind, "1 of 2 branches failed", retryAfter: retryAfter)))
    }

    @Test("a partly failed run made a copy, answers requests, and is retried like a failed run")
    func partial() throws {
        let dialogue = Dialogue(policy)
        _ = dialogue.at(0, .refresh(request: 1, force: false))
        #expect(dialogue.at(1, partly(1, .transient)) == [.answers(1, .changed)])
        #expect(dialogue.machine.activity(at: Dialogue.instant(1)) == .loaded)
        let next = try #require(dialogue.nextRun)
        #expect(next.reason == .retry)
        #expect(Dialogue.seconds(next.at) <= 9)
        #expect(dialogue.machine.schedule.failing?.isPartial == true)
        // It was not a check after which everything is fresh.
        #expect(dialogue.machine.freshness(at: Dialogue.instant(2)) == .stale)
        #expect(dialogue.pass(until: 10).map(\.output) == [.starts(2, ["operator"])])
        _ = dialogue.at(10.5, .succeeds(2))
        #expect(dialogue.machine.schedule.failing == nil)
        #expect(dialogue.nextRun?.reason == .timer)
    }

    @Test("branches that the origin refuses are not requested before the next check, which is not delayed")
    func refused() {
        let dialogue = Dialogue(policy)
        _ = dialogue.at(0, .receives("file", at: 0))
        _ = dialogue.at(1, partly(1, .refused))
        #expect(dialogue.pass(until: 601) == [.init(at: 601, output: .starts(2, ["file"]))])
        // Without a planned check it waits like any refusal.
        let other = Dialogue(RefreshPolicy(freshFor: .zero))
        _ = other.at(0, .receives("file", at: 0))
        _ = other.at(1, partly(1, .refused))
        #expect(other.pass(until: 3600) == [])
        #expect(other.pass(until: 10_000).map(\.output).prefix(1) == [.starts(2, ["file"])])
    }

    @Test("a branch that cannot connect delays nothing, even without a network")
    func offline() {
        let dialogue = Dialogue(policy)
        _ = dialogue.at(0, .receives("file", at: 0))
        _ = dialogue.at(0.5, .network(Dialogue.offline(epoch: 2, since: 0.5)))
        _ = dialogue.at(1, partly(1, .connection))
        #expect(dialogue.summaries.last?.outcome == .changed)
        #expect(dialogue.machine.activity(at: Dialogue.instant(1)) != .idle)
    }

    @Test("without its input a run does not count as failed, answers requests, and runs when the input exists")
    func absent() {
        let dialogue = Dialogue(policy, needsNetwork: false)
        _ = dialogue.at(0, .refresh(request: 1, force: false))
        #expect(dialogue.at(1, .fails(1, .absent)) == [.answers(1, .failed)])
        #expect(dialogue.machine.activity(at: Dialogue.instant(1)) == .idle)
        #expect(dialogue.machine.schedule.failing == nil)
        #expect(dialogue.summaries.last?.counts == false)
        #expect(dialogue.pass(until: 5000) == [])
        #expect(dialogue.at(5000, .receives("pipeline", at: 5000)) == [.starts(2, ["pipeline"])])
    }
}
