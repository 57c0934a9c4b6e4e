import FreshetModel
import FreshetSignals
import FreshetTestKit
import Testing
import WorldTestSupport

@testable import FreshetPipelines

@Suite("Rejected content")
struct RejectionTests {
    /// With a copy, and a check that rejects content with fewer than four bytes.
    private func rejecting() throws -> Stage {
        let stage = try Stage(RefreshPolicy(every: .seconds(3600), freshFor: .zero), check: CheckRules(minBytes: 4))
        stage.origin.answers(.content("whole"), .content("cut"))
        try stage.start()
        try stage.fire("start")
        try stage.advance(60)
        try stage.fire("reload")
        return stage
    }

    @Test("is kept with the check's message, the copy stays, and the run has failed")
    func keptAside() throws {
        let stage = try rejecting()
        #expect(stage.store.text == "whole")
        let refused = try #require(stage.status.rejected)
        #expect(refused.digest == "cut" && refused.size == 3)
        #expect(refused.reason == "rejected by check.min-bytes: 3 bytes, at least 4 required")
        #expect(stage.status.failing?.failure.message == refused.reason)
    }

    @Test("after an acceptance nothing has failed any more, the age counts from its check, and there is no retry")
    func accepted() throws {
        let stage = try rejecting()
        let rejectedAt = try #require(stage.status.rejected).rejectedAt
        #expect(stage.status.next?.reason == .timer)
        let requests = stage.origin.asked.count
        try stage.advance(0.1)
        stage.runner.accepted(
            CurrentGeneration(number: 2, size: 3, digest: "cut", committedAt: stage.clock.wallNow, path: "data"))
        try stage.executor.runUntilIdle()
        let status = stage.status
        #expect(status.activity == .loaded && status.failing == nil && status.rejected == nil)
        #expect(status.generation?.number == 2 && status.lastCheck == rejectedAt)
        #expect(status.next?.reason == .timer)
        try stage.advance(600)
        #expect(stage.origin.asked.count == requests)
    }

    @Test("a run that rejects content which an operator accepts before the run ends has confirmed the copy")
    func acceptedBeforeTheEnd() throws {
        let stage = try rejecting()
        stage.store.state.withLock {
            $0.whenRejected = { [runner = stage.runner] in
                runner.accepted(
                    CurrentGeneration(number: 2, size: 3, digest: $0.digest, committedAt: $0.rejectedAt, path: "data"))
            }
        }
        stage.origin.answers(.content("cut"))
        stage.runner.requestRefresh(force: true)
        try stage.executor.runUntilIdle()
        let status = stage.status
        #expect(stage.store.state.withLock { $0.settingsAside } == 2, "the second run rejected it, too")
        #expect(status.activity == .loaded && status.failing == nil && status.rejected == nil)
        #expect(status.generation?.number == 2)
        #expect(status.next?.reason == .timer)
    }

    @Test("accepted content passes when it comes again")
    func comesAgain() throws {
        let stage = try rejecting()
        _ = stage.store.state.withLock { $0.accepted.insert("cut") }
        stage.origin.answers(.content("cut"))
        stage.runner.requestRefresh(force: true)
        try stage.executor.runUntilIdle()
        #expect(stage.store.text == "cut")
        #expect(stage.status.failing == nil)
    }

    @Test("a later failure stays after the acceptance")
    func otherFailure() throws {
        let stage = try rejecting()
        stage.origin.answers(.fails(RunFailure(.transient, "away")))
        stage.runner.requestRefresh(force: true)
        try stage.executor.runUntilIdle()
        stage.runner.accepted(CurrentGeneration(number: 2, size: 3, digest: "cut", committedAt: 0, path: "data"))
        try stage.executor.runUntilIdle()
        #expect(stage.status.failing?.failure.message == "away")
    }

    @Test("a rejection of other content by another check stays after an earlier content is accepted")
    func otherRejection() throws {
        let stage = try rejecting()
        stage.origin.answers(.content("no"))
        stage.runner.requestRefresh(force: true)
        try stage.executor.runUntilIdle()
        stage.runner.accepted(CurrentGeneration(number: 2, size: 3, digest: "cut", committedAt: 0, path: "data"))
        try stage.executor.runUntilIdle()
        #expect(stage.status.failing != nil && stage.status.rejected?.digest == "no")
        #expect(stage.status.next?.reason == .timer)
    }

    @Test("content that is accepted after a later check is not younger than its own check")
    func acceptedLate() throws {
        let stage = try rejecting()
        stage.origin.answers(.content("whole again"))
        stage.runner.requestRefresh(force: true)
        try stage.executor.runUntilIdle()
        let checked = try #require(stage.status.lastCheck)
        try stage.advance(5)
        stage.runner.accepted(CurrentGeneration(number: 3, size: 3, digest: "cut", committedAt: 0, path: "data"))
        try stage.executor.runUntilIdle()
        #expect(stage.status.lastCheck == checked && stage.status.rejected == nil)
    }

    @Test("is not shown when its week is over, or when it has become the copy")
    func over() throws {
        let stage = try rejecting()
        stage.origin.answers(.fails(RunFailure(.transient, "away")))
        try stage.advance(Double(MemoryStore.rejectedAge / 1_000_000))
        #expect(stage.status.rejected == nil)
        let other = try rejecting()
        other.runner.publishes(CurrentGeneration(number: 2, size: 3, digest: "cut", committedAt: 0, path: "data"))
        #expect(other.status.rejected == nil)
    }

    @Test("requests that wait for a run get one when the rejected content is accepted meanwhile")
    func waiting() throws {
        let stage = try rejecting()
        let requests = stage.origin.asked.count
        stage.origin.answers(.content("cut again"))
        stage.runner.requestRefresh(force: false)
        stage.runner.accepted(CurrentGeneration(number: 2, size: 3, digest: "cut", committedAt: 0, path: "data"))
        try stage.executor.runUntilIdle()
        #expect(stage.origin.asked.count == requests + 1)
    }

    @Test("a damaged copy is not published any more")
    func lost() throws {
        let stage = try rejecting()
        #expect(stage.runner.restorer.losesCopy(revision: 1))
        try stage.executor.runUntilIdle()
        #expect(stage.status.generation == nil && stage.status.freshness == nil)
        stage.origin.answers(.content("whole"))
        stage.runner.requestRefresh(force: true)
        try stage.executor.runUntilIdle()
        #expect(stage.status.generation != nil && stage.status.activity == .loaded)
    }

    @Test("a copy that was committed after a repair found none stays")
    func committedAfterTheRepair() throws {
        let stage = try rejecting()
        var newer = CurrentGeneration(number: 2, size: 3, digest: "new", committedAt: 0, path: "data")
        newer.revision = 8
        stage.runner.publishes(newer)
        #expect(!stage.runner.restorer.losesCopy(revision: 7))
        try stage.executor.runUntilIdle()
        #expect(stage.status.generation?.number == 2 && stage.status.freshness != nil)
        #expect(stage.runner.restorer.losesCopy(revision: 8))
        #expect(stage.status.generation == nil)
    }

    // MARK: Later checks

    /// The tags of the requests so far.
    private func tags(_ stage: Stage) -> [String?] { stage.origin.asked.map { $0.validators?.entityTag } }

    /// With a copy that its origin calls v1, and rejected content that it calls v2.
    private func rejectingTagged(
        _ rules: CheckRules = CheckRules(minBytes: 4), inspector: ScriptedInspector? = nil
    ) throws -> Stage {
        let stage = try Stage(
            Stage.definition(RefreshPolicy(every: .seconds(3600), freshFor: .zero), check: rules),
            helpers: CheckHelpers(inspector: inspector))
        stage.origin.answers(.version("whole", tag: "v1"))
        try stage.start()
        try stage.fire("start")
        try stage.advance(60)
        inspector?.state.withLock { $0.failure = RunFailure(.content, "no") }
        stage.origin.answers(.version("cut", tag: "v2"))
        try stage.fire("reload")
        #expect(stage.status.rejected?.digest == "cut")
        return stage
    }

    @Test("the next check comes soon, with a conditional request: unchanged content stays rejected, without a body")
    func stillThere() throws {
        let stage = try rejectingTagged()
        let first = try #require(stage.status.rejected)
        #expect(stage.status.next?.reason == .timer)
        try stage.advance(59)
        #expect(tags(stage) == [nil, "v1"])
        try stage.advance(1)
        #expect(tags(stage) == [nil, "v1", "v2"])
        #expect(stage.store.state.withLock { $0.settingsAside } == 1 && stage.store.text == "whole")
        let status = stage.status
        #expect(status.failing?.failure.message == first.reason && status.failing?.attempts == 2)
        #expect(status.rejected?.digest == "cut" && status.rejected?.rejectedAt == first.rejectedAt + 60_000_000)
        #expect(status.rejected?.keptUntil == first.keptUntil && status.next?.reason == .timer)
        #expect(stage.outcomes == [.changed, .failed, .failed])
        // Accepted now, it is as old as the check that confirmed it.
        stage.runner.accepted(CurrentGeneration(number: 2, size: 3, digest: "cut", committedAt: 0, path: "data"))
        try stage.executor.runUntilIdle()
        #expect(stage.status.failing == nil && stage.status.lastCheck == status.rejected?.rejectedAt)
    }

    @Test("other content is checked, and later requests use its own validators")
    func replaced() throws {
        let stage = try rejectingTagged()
        stage.origin.answers(.version("whole again", tag: "v3"))
        try stage.advance(3600)
        #expect(stage.store.text == "whole again" && stage.status.failing == nil)
        try stage.advance(3600)
        #expect(tags(stage) == [nil, "v1", "v2", "v3"])
        #expect(stage.outcomes == [.changed, .failed, .changed, .unchanged])
    }

    @Test("the copy's content coming back is unchanged")
    func back() throws {
        let stage = try rejectingTagged()
        stage.origin.answers(.version("whole", tag: "v1"))
        try stage.advance(3600)
        #expect(stage.outcomes == [.changed, .failed, .unchanged] && stage.status.failing == nil)
    }

    @Test(
        "a request is unconditional if the rejection may not hold: not kept, another configuration, another daemon")
    func whole() throws {
        let lost = try rejectingTagged()
        lost.store.state.withLock { $0.rejected = nil }
        try lost.advance(60)
        #expect(tags(lost) == [nil, "v1", "v1"] && lost.store.state.withLock { $0.settingsAside } == 2)
        let other = try rejectingTagged()
        var definition = other.definition
        definition.check.minBytes = 3
        other.runner.reconfigure(definition)
        try other.advance(60)
        #expect(other.store.text == "cut" && other.status.failing == nil)
        let restarted = try rejectingTagged()
        try restarted.restart()
        try restarted.fire("reload")
        #expect(tags(restarted) == [nil, "v1", "v1"] && restarted.status.rejected?.digest == "cut")
    }

    @Test("a rejection by a check that may pass another time has unconditional requests, and is accepted then")
    func passing() throws {
        let inspector = ScriptedInspector()
        var rules = CheckRules()
        rules.exec = InspectionRule(["/check"])
        let stage = try rejectingTagged(rules, inspector: inspector)
        #expect(stage.status.next?.reason == .timer)
        try stage.advance(60)
        #expect(tags(stage) == [nil, "v1", "v1"] && stage.outcomes == [.changed, .failed, .failed])
        inspector.state.withLock { $0.failure = nil }
        try stage.advance(120)
        #expect(stage.store.text == "cut" && stage.status.failing == nil)
    }

    @Test("time-dependent content has unconditional requests: programs with now, and answers with only a date")
    func time() throws {
        // The size check rejects it before the program runs, whose later result is not known.
        var rules = CheckRules(minBytes: 4)
        rules.items = "now"
        let stage = try rejectingTagged(rules)
        try stage.advance(60)
        #expect(tags(stage) == [nil, "v1", "v1"])
    }

    @Test("after the clock was set the request is unconditional and immediate")
    func clock() throws {
        let stage = try rejectingTagged()
        stage.origin.answers(.version("whole again", tag: "v3"))
        stage.clock.stepWall(by: .seconds(86_400))
        stage.engine.clockStepped()
        try stage.advance(60)
        #expect(tags(stage) == [nil, "v1", "v1"] && stage.store.text == "whole again")
    }

    @Test("an error page is replaced within twice its time, and one that stays costs almost nothing")
    func errorPage() throws {
        let day = 86_400.0
        let stage = try Stage(RefreshPolicy(every: .seconds(86_400), freshFor: .zero), check: CheckRules(minBytes: 4))
        stage.origin.answers(.content("whole"), .content("cut"))
        try stage.start()
        try stage.fire("start")
        try stage.advance(day)
        #expect(stage.origin.asked.count == 2 && stage.status.rejected?.digest == "cut")
        try stage.advance(20 * 60)
        stage.origin.answers(.content("whole again"))
        try stage.advance(20 * 60)
        #expect(stage.store.text == "whole again" && stage.origin.asked.count == 7)
        stage.origin.answers(.content("cut"))
        try stage.advance(30 * day)
        // Eleven checks until it is a day, and one each day.
        #expect((35...42).contains(stage.origin.asked.count - 7), "\(stage.origin.asked.count)")
    }

    @Test("accepted while a check is in progress, it is the copy, and that check's result is reported separately")
    func acceptedMeanwhile() throws {
        let stage = try rejecting()
        stage.origin.answers(.after(.seconds(5), .fails(RunFailure(.transient, "away"))))
        stage.runner.requestRefresh(force: true)
        try stage.executor.runUntilIdle()
        stage.runner.accepted(CurrentGeneration(number: 2, size: 3, digest: "cut", committedAt: 0, path: "data"))
        try stage.executor.runUntilIdle()
        #expect(stage.status.run != nil && stage.status.failing == nil && stage.status.generation?.number == 2)
        stage.origin.answers(.content("whole again"))
        try stage.advance(5)
        #expect(stage.status.failing?.failure.message == "away" && stage.status.next?.reason == .retry)
        try stage.advance(1)
        #expect(stage.store.text == "whole again" && stage.outcomes == [.changed, .failed, .failed, .changed])
    }

    // MARK: The copy itself

    /// With a copy that its origin calls v1, which a stricter check rejects now.
    private func rejectingCopy() throws -> Stage {
        let stage = try Stage(RefreshPolicy(every: .seconds(3600), freshFor: .zero))
        stage.origin.answers(.version("whole", tag: "v1"))
        try stage.start()
        try stage.fire("start")
        try stage.advance(60)
        var stricter = stage.definition
        stricter.check.minBytes = 6
        stage.runner.reconfigure(stricter)
        try stage.fire("reload")
        try stage.advance(10)
        #expect(tags(stage) == [nil, nil] && stage.outcomes == [.changed, .failed])
        return stage
    }

    @Test(
        "a copy that a stricter check rejects is fetched once, and then requests are conditional")
    func copyItself() throws {
        let stage = try rejectingCopy()
        let failure = try #require(stage.status.failing?.failure)
        #expect(failure.rejection == .lasting && stage.status.rejected == nil)
        try stage.advance(60)
        #expect(tags(stage) == [nil, nil, "v1"])
        #expect(stage.status.failing?.failure == failure && stage.status.failing?.attempts == 2)
        #expect(stage.status.rejected == nil && stage.store.text == "whole")
        stage.origin.answers(.version("whole again", tag: "v2"))
        try stage.advance(120)
        #expect(stage.store.text == "whole again" && stage.status.failing == nil)
        #expect(tags(stage) == [nil, nil, "v1", "v1"])
    }

    @Test("if it is not the copy any more the request is unconditional; with the old check again, it is accepted")
    func copyNoMore() throws {
        let other = try rejectingCopy()
        other.store.bytes = Array("other".utf8)
        try other.advance(60)
        #expect(tags(other) == [nil, nil, nil] && other.status.rejected?.digest == "whole")
        let repaired = try rejectingCopy()
        repaired.runner.reconfigure(repaired.definition)
        try repaired.advance(60)
        #expect(tags(repaired) == [nil, nil, "v1"] && repaired.outcomes == [.changed, .failed, .unchanged])
    }

    // MARK: Failures in between

    @Test("a failure of the origin in between counts separately, and does not change the rejection")
    func between() throws {
        let stage = try rejectingTagged()
        stage.origin.answers(.fails(RunFailure(.transient, "away")), .version("cut", tag: "v2"))
        try stage.advance(60)
        #expect(stage.status.failing?.failure.message == "away" && stage.status.failing?.attempts == 1)
        try stage.advance(2)
        #expect(tags(stage) == [nil, "v1", "v2", "v2"])
        #expect(stage.status.failing?.failure.rejection == .lasting)
        #expect(stage.status.next?.reason == .timer)
    }
}
