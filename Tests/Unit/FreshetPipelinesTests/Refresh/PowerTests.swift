import FreshetModel
import Testing

@testable import FreshetPipelines

@Suite("A machine on battery")
struct PowerTests {
    private let fact = "on battery"

    private func dialogue(_ onBattery: WhenOnBattery = .wait) -> Dialogue {
        var policy = RefreshPolicy(quiet: .zero, freshFor: .zero)
        policy.onBattery = onBattery
        let dialogue = Dialogue(policy)
        _ = dialogue.at(0, .power(fact))
        return dialogue
    }

    @Test("signals wait, with the fact in the status, and cause one run on mains power")
    func signals() {
        let dialogue = dialogue()
        #expect(dialogue.waitsFor == nil, "no run is requested")
        #expect(dialogue.at(1, .receives("file", at: 1)) == [])
        #expect(dialogue.activity == .waiting(Wait(.power, detail: fact)))
        #expect(dialogue.at(2, .receives("resume", at: 2)) == [])
        #expect(dialogue.pass(until: 10_000) == [])
        #expect(dialogue.at(10_000, .power(nil)) == [.starts(1, ["file", "resume"])])
        #expect(dialogue.at(10_001, .power(fact)) == [], "a run in progress continues")
        #expect(dialogue.at(10_002, .succeeds(1)) == [])
    }

    @Test("a request of the operator runs, and takes the waiting signals along")
    func requested() {
        let dialogue = dialogue()
        _ = dialogue.at(1, .receives("file", at: 1))
        #expect(dialogue.at(2, .refresh(request: 1, force: false)) == [.starts(1, ["file", "operator"])])
    }

    @Test("without on-battery: wait, the battery does not matter")
    func allowed() {
        #expect(dialogue(.allow).at(1, .receives("file", at: 1)) == [.starts(1, ["file"])])
    }

    @Test("a metered connection is named before the battery")
    func both() {
        var policy = RefreshPolicy(quiet: .zero, freshFor: .zero, whenMetered: .wait)
        policy.onBattery = .wait
        let dialogue = Dialogue(policy)
        _ = dialogue.at(0, .power(fact), .metered("metered"))
        _ = dialogue.at(1, .receives("file", at: 1))
        #expect(dialogue.waitsFor?.reason == .metered)
        #expect(dialogue.at(2, .metered(nil)) == [])
        #expect(dialogue.waitsFor?.reason == .power)
        #expect(dialogue.at(3, .power(nil)) == [.starts(1, ["file"])])
    }
}
