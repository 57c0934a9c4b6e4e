import FreshetSignals
import FreshetTestKit
import Testing
import WorldTestSupport

@testable import FreshetPipelines

@Suite("What a check refuses")
struct RefusalTests {
    /// With a copy, and a check that refuses whatever has fewer than four bytes.
    private func refusing() throws -> Stage {
        let stage = try Stage(RefreshPolicy(every: .seconds(3600), freshFor: .zero), check: CheckRules(minBytes: 4))
        stage.origin.answers(.content("whole"), .content("cut"))
        try stage.start()
        try stage.fire("start")
        try stage.advance(60)
        try stage.fire("reload")
        return stage
    }

    @Test("is kept aside with the check's words, the copy stays, and the run has failed")
    func keptAside() throws {
        let stage = try refusing()
        #expect(stage.store.text == "whole")
        let refused = try #require(stage.status.refused)
        #expect(refused.digest == "cut" && refused.size == 3)
        #expect(refused.reason == "the snapshot has 3 bytes, less than check.min-bytes wants (4)")
        #expect(stage.status.failing?.failure.message == refused.reason)
    }

    @Test("Accepted, it has not failed any more, is as old as its check, and nothing is tried again")
    func accepted() throws {
        let stage = try refusing()
        let refusedAt = try #require(stage.status.refused).refusedAt
        #expect(stage.status.next?.reason == .retry)
        let requests = stage.origin.asked.count
        try stage.advance(0.1)
        stage.runner.accepted(
            OfferedGeneration(number: 2, size: 3, digest: "cut", committedAt: stage.clock.wallNow, path: "data"))
        try stage.executor.runUntilIdle()
        let status = stage.status
        #expect(status.activity == .loaded && status.failing == nil && status.refused == nil)
        #expect(status.generation?.number == 2 && status.lastCheck == refusedAt)
        #expect(status.next?.reason == .timer)
        try stage.advance(600)
        #expect(stage.origin.asked.count == requests)
    }

    @Test("Content that was accepted passes when it comes again")
    func comesAgain() throws {
        let stage = try refusing()
        _ = stage.store.state.withLock { $0.accepted.insert("cut") }
        stage.origin.answers(.content("cut"))
        stage.runner.requestRefresh(force: true)
        try stage.executor.runUntilIdle()
        #expect(stage.store.text == "cut")
        #expect(stage.status.failing == nil)
    }

    @Test("A failure that came after it stays one when it is accepted")
    func otherFailure() throws {
        let stage = try refusing()
        stage.origin.answers(.fails(RunFailure(.transient, "away")))
        stage.runner.requestRefresh(force: true)
        try stage.executor.runUntilIdle()
        stage.runner.accepted(OfferedGeneration(number: 2, size: 3, digest: "cut", committedAt: 0, path: "data"))
        try stage.executor.runUntilIdle()
        #expect(stage.status.failing?.failure.message == "away")
    }

    @Test("Other content that another check refuses stays a failure when the one before is accepted")
    func otherRefusal() throws {
        let stage = try refusing()
        stage.origin.answers(.content("no"))
        stage.runner.requestRefresh(force: true)
        try stage.executor.runUntilIdle()
        stage.runner.accepted(OfferedGeneration(number: 2, size: 3, digest: "cut", committedAt: 0, path: "data"))
        try stage.executor.runUntilIdle()
        #expect(stage.status.failing != nil && stage.status.refused?.digest == "no")
        #expect(stage.status.next?.reason == .retry)
    }

    @Test("Accepted after a later check, it is not younger than that")
    func acceptedLate() throws {
        let stage = try refusing()
        stage.origin.answers(.content("whole again"))
        stage.runner.requestRefresh(force: true)
        try stage.executor.runUntilIdle()
        let checked = try #require(stage.status.lastCheck)
        try stage.advance(5)
        stage.runner.accepted(OfferedGeneration(number: 3, size: 3, digest: "cut", committedAt: 0, path: "data"))
        try stage.executor.runUntilIdle()
        #expect(stage.status.lastCheck == checked && stage.status.refused == nil)
    }

    @Test("is not told of when its week is over, nor when it has become the copy")
    func over() throws {
        let stage = try refusing()
        stage.origin.answers(.fails(RunFailure(.transient, "away")))
        try stage.advance(Double(MemoryStore.refusedAge / 1_000_000))
        #expect(stage.status.refused == nil)
        let other = try refusing()
        other.runner.offers(OfferedGeneration(number: 2, size: 3, digest: "cut", committedAt: 0, path: "data"))
        #expect(other.status.refused == nil)
    }

    @Test("Readers who wait for a run get one when what was refused is accepted meanwhile")
    func waiting() throws {
        let stage = try refusing()
        let requests = stage.origin.asked.count
        stage.origin.answers(.content("cut again"))
        stage.runner.requestRefresh(force: false)
        stage.runner.accepted(OfferedGeneration(number: 2, size: 3, digest: "cut", committedAt: 0, path: "data"))
        try stage.executor.runUntilIdle()
        #expect(stage.origin.asked.count == requests + 1)
    }

    @Test("A copy of which nothing was whole is offered no more")
    func lost() throws {
        let stage = try refusing()
        stage.runner.offersNothing()
        try stage.executor.runUntilIdle()
        #expect(stage.status.generation == nil && stage.status.freshness == nil)
        stage.origin.answers(.content("whole"))
        stage.runner.requestRefresh(force: true)
        try stage.executor.runUntilIdle()
        #expect(stage.status.generation != nil && stage.status.activity == .loaded)
    }
}
