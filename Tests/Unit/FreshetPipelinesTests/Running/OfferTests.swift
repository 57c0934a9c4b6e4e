import FreshetTestKit
import Testing
import WorldTestSupport

@testable import FreshetPipelines

@Suite("What readers see when the operator has chosen it")
struct OfferTests {
    private func generation(_ number: UInt64, turn: UInt64, isBehind: Bool = false) -> OfferedGeneration {
        var generation = OfferedGeneration(number: number, size: 4, digest: "", committedAt: 0, path: "data")
        generation.turn = turn
        generation.isBehind = isBehind
        return generation
    }

    @Test("is told as it is; what is told late of an earlier turn does not hide it")
    func order() throws {
        let stage = try Stage()
        try stage.start()
        try stage.fire("start")
        stage.runner.offers(generation(7, turn: 3))
        #expect(stage.status.generation?.number == 7)
        stage.runner.offers(generation(8, turn: 2))
        #expect(stage.status.generation?.number == 7)
        // The run's own commit was of no turn of that cache.
        try stage.advance(10)
        try stage.fire("reload")
        #expect(stage.status.generation?.number == 7)
        stage.runner.offers(generation(9, turn: 4))
        #expect(stage.status.generation?.number == 9)
    }

    @Test("is stale while the source has other content, however young the check")
    func freshness() throws {
        let stage = try Stage(RefreshPolicy(freshFor: .seconds(600)))
        try stage.start()
        try stage.fire("start")
        #expect(stage.status.freshness == .fresh)
        stage.runner.offers(generation(1, turn: 1, isBehind: true))
        #expect(stage.status.freshness == .stale)
        stage.runner.offers(generation(1, turn: 2))
        #expect(stage.status.freshness == .fresh)
    }
}
