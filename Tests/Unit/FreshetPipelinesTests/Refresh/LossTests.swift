import FreshetModel
import Testing

@testable import FreshetPipelines

@Suite("A copy that is lost")
struct LossTests {
    private let policy = RefreshPolicy(quiet: .zero, minInterval: .seconds(100))

    @Test("is fetched again by a run with its own cause")
    func fetched() {
        let dialogue = Dialogue(policy, lastCheck: -500)
        #expect(dialogue.at(1, .lost) == [.starts(1, ["loss"])])
    }

    @Test("is fetched no sooner than the shortest interval after the last run")
    func interval() {
        let dialogue = Dialogue(policy, lastCheck: -500)
        #expect(dialogue.at(1, .receives("reload", at: 1)) == [.starts(1, ["reload"])])
        #expect(dialogue.at(2, .succeeds(1)) == [])
        #expect(dialogue.at(10, .lost) == [])
        #expect(dialogue.freshness == nil)
        #expect(dialogue.pass(until: 100) == [])
        #expect(dialogue.pass(until: 101).map(\.output) == [.starts(2, ["loss"])])
    }

    @Test("while the pipeline is held is fetched after the release")
    func held() {
        let dialogue = Dialogue(policy, lastCheck: -500)
        #expect(dialogue.at(1, .held(true)) == [])
        #expect(dialogue.at(2, .lost) == [])
        #expect(dialogue.at(3, .held(false)) == [.starts(1, ["loss"])])
    }

    @Test("during a check, or before a retry, needs no additional run")
    func covered() {
        let dialogue = Dialogue(
            RefreshPolicy(quiet: .zero, minInterval: .zero, retry: RetryPolicy(from: .seconds(60), to: .seconds(60))),
            lastCheck: -500)
        #expect(dialogue.at(1, .receives("reload", at: 1)) == [.starts(1, ["reload"])])
        #expect(dialogue.at(2, .lost) == [])
        #expect(dialogue.at(3, .fails(1, .transient)) == [])
        #expect(dialogue.at(4, .lost) == [])
        let retries = dialogue.pass(until: 63).map(\.output)
        #expect(retries == [.starts(2, ["reload"])])
        #expect(dialogue.at(64, .succeeds(2)) == [])
        #expect(dialogue.pass(until: 400) == [])
    }

    @Test("after the stop requests nothing")
    func stopped() {
        let dialogue = Dialogue(policy, lastCheck: -500)
        #expect(dialogue.at(1, .stopped) == [])
        #expect(dialogue.at(2, .lost) == [])
        #expect(dialogue.pass(until: 400) == [])
    }

    @Test("again and again is fetched once for each burst")
    func bursts() {
        let dialogue = Dialogue(RefreshPolicy(quiet: .seconds(2), minInterval: .zero), lastCheck: -500)
        #expect(dialogue.at(1, .lost) == [.starts(1, ["loss"])])
        #expect(dialogue.at(1.5, .succeeds(1)) == [])
        for second in 2...5 { #expect(dialogue.at(Double(second), .lost) == []) }
        #expect(dialogue.pass(until: 6.9) == [])
        #expect(dialogue.pass(until: 7).map(\.output) == [.starts(2, ["loss"])])
    }
}
