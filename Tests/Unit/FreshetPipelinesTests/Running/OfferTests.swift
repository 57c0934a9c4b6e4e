import FreshetSignals
import FreshetTestKit
import Testing
import WorldTestSupport

@testable import FreshetPipelines

@Suite("What readers see when the operator has chosen it")
struct OfferTests {
    private func generation(_ number: UInt64, turn: UInt64, isBehind: Bool = false) -> CurrentGeneration {
        var generation = CurrentGeneration(number: number, size: 4, digest: "", committedAt: 0, path: "data")
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

    @Test("is told to be gone once when it has expired and was not whole, and is fetched by the next signal")
    func damaged() throws {
        var definition = Stage.definition(RefreshPolicy(freshFor: .zero))
        (definition.cache.maxAge, definition.cache.withdraws) = (.seconds(100), true)
        let stage = try Stage(definition)
        try stage.start()
        try stage.fire("start")
        let number = try #require(stage.status.generation).number
        stage.store.state.withLock { $0.isDamaged = true }
        try stage.advance(1000)
        let told = stage.events.compactMap {
            if case .withdrawnDamaged(let generation, _) = $0 { generation } else { nil as CurrentGeneration? }
        }
        #expect(told.map(\.number) == [number])
        #expect(told.first?.withdrawnSince != nil)
        #expect(stage.status.kept == nil)
        stage.store.state.withLock { $0.isDamaged = false }
        try stage.fire("reload")
        #expect(stage.outcomes.last == .changed)
        #expect(stage.status.generation != nil && stage.status.freshness != .expired)
        let returns = stage.events.count { if case .returned(isSame: true, _) = $0 { true } else { false } }
        #expect(returns == 1, "who was told that it is gone is told that it is back")
        // And that one is withdrawn in its turn.
        try stage.advance(1000)
        #expect(stage.status.withdrawn != nil)
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
