import FreshetModel
import FreshetSignals
import FreshetTestKit
import Testing
import WorldTestSupport

@testable import FreshetPipelines

@Suite("The generation that the operator has chosen")
struct PublicationTests {
    private func generation(_ number: UInt64, revision: UInt64, isBehind: Bool = false) -> CurrentGeneration {
        var generation = CurrentGeneration(number: number, size: 4, digest: "", committedAt: 0, path: "data")
        generation.revision = revision
        generation.isBehind = isBehind
        return generation
    }

    @Test("is reported as it is; a late event of an earlier revision does not hide it")
    func order() throws {
        let stage = try Stage()
        try stage.start()
        try stage.fire("start")
        stage.runner.publishes(generation(7, revision: 3))
        #expect(stage.status.generation?.number == 7)
        stage.runner.publishes(generation(8, revision: 2))
        #expect(stage.status.generation?.number == 7)
        // The run's own commit has no revision of that cache.
        try stage.advance(10)
        try stage.fire("reload")
        #expect(stage.status.generation?.number == 7)
        stage.runner.publishes(generation(9, revision: 4))
        #expect(stage.status.generation?.number == 9)
    }

    @Test("is restored if its file was removed when the run had committed, but not yet recorded it")
    func removedMeanwhile() throws {
        let stage = try Stage()
        try stage.start()
        stage.store.state.withLock { state in
            state.whenCommitted = { [runner = stage.runner] in
                #expect(runner.state.withLock { $0.copy.generation } == nil)
                await runner.restorer.restore()
            }
        }
        try stage.fire("start")
        #expect(stage.outcomes.last == .changed)
        #expect(stage.store.state.withLock { $0.restorations } == 1)
    }

    @Test("is reported as gone once when it has expired and was damaged, and is fetched by the next signal")
    func damaged() throws {
        var definition = Stage.definition(RefreshPolicy(freshFor: .zero))
        (definition.cache.maxAge, definition.cache.withdraws) = (.seconds(100), true)
        let stage = try Stage(definition)
        try stage.start()
        try stage.fire("start")
        let number = try #require(stage.status.generation).number
        stage.store.state.withLock { $0.isDamaged = true }
        try stage.advance(1000)
        let reported = stage.events.compactMap {
            if case .withdrawnDamaged(let generation, _) = $0 { generation } else { nil as CurrentGeneration? }
        }
        #expect(reported.map(\.number) == [number])
        #expect(reported.first?.withdrawnSince != nil)
        #expect(stage.status.kept == nil)
        stage.store.state.withLock { $0.isDamaged = false }
        try stage.fire("reload")
        #expect(stage.outcomes.last == .changed)
        #expect(stage.status.generation != nil && stage.status.freshness != .expired)
        let returns = stage.events.count { if case .returned(isSame: true, _) = $0 { true } else { false } }
        #expect(returns == 1, "after a reported loss the return is reported")
        // The new copy is withdrawn in its turn.
        try stage.advance(1000)
        #expect(stage.status.withdrawn != nil)
    }

    @Test("is stale while the source has other content, however recent the check was")
    func freshness() throws {
        let stage = try Stage(RefreshPolicy(freshFor: .seconds(600)))
        try stage.start()
        try stage.fire("start")
        #expect(stage.status.freshness == .fresh)
        stage.runner.publishes(generation(1, revision: 1, isBehind: true))
        #expect(stage.status.freshness == .stale)
        stage.runner.publishes(generation(1, revision: 2))
        #expect(stage.status.freshness == .fresh)
    }
}
