import FreshetModel
import FreshetSignals
import FreshetTestKit
import Testing
import WorldTestSupport

@testable import FreshetPipelines

@Suite("The time that the content of a copy states")
struct StatedExpiryTests {
    /// With a copy, and a check that reads the time in the content.
    private func stage() throws -> Stage {
        let policy = RefreshPolicy(freshFor: .seconds(3600))
        let stage = try Stage(policy)
        stage.origin.answers(.content("x"))
        try stage.start()
        try stage.fire("start")
        var check = CheckRules()
        check.validUntil = ".until"
        stage.runner.reconfigure(Stage.definition(policy, check: check))
        return stage
    }

    private func published(_ stage: Stage, number: UInt64, expiresIn seconds: Int64?) -> CurrentGeneration {
        var generation = CurrentGeneration(
            number: number, size: 1, digest: "\(number)", committedAt: stage.clock.wallNow, path: "data")
        generation.contentExpires = seconds.map { stage.clock.wallNow + $0 * 1_000_000 }
        generation.revision = number
        return generation
    }

    @Test("passes while nothing runs; a rollback to other content ends that")
    func passes() throws {
        let stage = try stage()
        stage.runner.publishes(published(stage, number: 7, expiresIn: 100))
        try stage.executor.runUntilIdle()
        #expect(stage.status.freshness != .expired && stage.status.contentExpires != nil)
        try stage.advance(101)
        #expect(stage.status.freshness == .expired)
        stage.runner.publishes(published(stage, number: 8, expiresIn: nil))
        try stage.executor.runUntilIdle()
        #expect(stage.status.freshness != .expired && stage.status.contentExpires == nil)
    }

    private func step(_ stage: Stage, by span: Duration) throws {
        stage.clock.stepWall(by: span)
        stage.engine.clockStepped()
        try stage.executor.runUntilIdle()
    }

    @Test("follows a wall clock that is set")
    func clockSet() throws {
        let stage = try stage()
        stage.runner.publishes(published(stage, number: 7, expiresIn: 100))
        try stage.executor.runUntilIdle()
        try step(stage, by: .seconds(200))
        #expect(stage.status.freshness == .expired)
        try step(stage, by: .seconds(-200))
        #expect(stage.status.freshness != .expired)
        try stage.advance(101)
        #expect(stage.status.freshness == .expired)
    }
}
