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
        #expect(stage.status.next?.reason == .timer)
        let requests = stage.origin.asked.count
        try stage.advance(0.1)
        stage.runner.accepted(
            CurrentGeneration(number: 2, size: 3, digest: "cut", committedAt: stage.clock.wallNow, path: "data"))
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
        stage.runner.accepted(CurrentGeneration(number: 2, size: 3, digest: "cut", committedAt: 0, path: "data"))
        try stage.executor.runUntilIdle()
        #expect(stage.status.failing?.failure.message == "away")
    }

    @Test("Other content that another check refuses stays a failure when the one before is accepted")
    func otherRefusal() throws {
        let stage = try refusing()
        stage.origin.answers(.content("no"))
        stage.runner.requestRefresh(force: true)
        try stage.executor.runUntilIdle()
        stage.runner.accepted(CurrentGeneration(number: 2, size: 3, digest: "cut", committedAt: 0, path: "data"))
        try stage.executor.runUntilIdle()
        #expect(stage.status.failing != nil && stage.status.refused?.digest == "no")
        #expect(stage.status.next?.reason == .timer)
    }

    @Test("Accepted after a later check, it is not younger than that")
    func acceptedLate() throws {
        let stage = try refusing()
        stage.origin.answers(.content("whole again"))
        stage.runner.requestRefresh(force: true)
        try stage.executor.runUntilIdle()
        let checked = try #require(stage.status.lastCheck)
        try stage.advance(5)
        stage.runner.accepted(CurrentGeneration(number: 3, size: 3, digest: "cut", committedAt: 0, path: "data"))
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
        other.runner.offers(CurrentGeneration(number: 2, size: 3, digest: "cut", committedAt: 0, path: "data"))
        #expect(other.status.refused == nil)
    }

    @Test("Readers who wait for a run get one when what was refused is accepted meanwhile")
    func waiting() throws {
        let stage = try refusing()
        let requests = stage.origin.asked.count
        stage.origin.answers(.content("cut again"))
        stage.runner.requestRefresh(force: false)
        stage.runner.accepted(CurrentGeneration(number: 2, size: 3, digest: "cut", committedAt: 0, path: "data"))
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

    // MARK: The checks after it

    /// The tags of the requests so far.
    private func tags(_ stage: Stage) -> [String?] { stage.origin.asked.map { $0.validators?.entityTag } }

    /// With a copy that its origin calls v1, and something refused that it calls v2.
    private func refusingTagged(
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
        #expect(stage.status.refused?.digest == "cut")
        return stage
    }

    @Test("The next check comes soon, and asks whether that is still there: it is refused still, without a body")
    func stillThere() throws {
        let stage = try refusingTagged()
        let first = try #require(stage.status.refused)
        #expect(stage.status.next?.reason == .timer)
        try stage.advance(59)
        #expect(tags(stage) == [nil, "v1"])
        try stage.advance(1)
        #expect(tags(stage) == [nil, "v1", "v2"])
        #expect(stage.store.state.withLock { $0.settingsAside } == 1 && stage.store.text == "whole")
        let status = stage.status
        #expect(status.failing?.failure.message == first.reason && status.failing?.attempts == 2)
        #expect(status.refused?.digest == "cut" && status.refused?.refusedAt == first.refusedAt + 60_000_000)
        #expect(status.refused?.keptUntil == first.keptUntil && status.next?.reason == .timer)
        #expect(stage.outcomes == [.changed, .failed, .failed])
        // Accepted now, it is as old as the check that found it still there.
        stage.runner.accepted(CurrentGeneration(number: 2, size: 3, digest: "cut", committedAt: 0, path: "data"))
        try stage.executor.runUntilIdle()
        #expect(stage.status.failing == nil && stage.status.lastCheck == status.refused?.refusedAt)
    }

    @Test("What comes in its place is checked, and what comes after that is asked for by its own name")
    func replaced() throws {
        let stage = try refusingTagged()
        stage.origin.answers(.version("whole again", tag: "v3"))
        try stage.advance(3600)
        #expect(stage.store.text == "whole again" && stage.status.failing == nil)
        try stage.advance(3600)
        #expect(tags(stage) == [nil, "v1", "v2", "v3"])
        #expect(stage.outcomes == [.changed, .failed, .changed, .unchanged])
    }

    @Test("The copy's content again is what it was")
    func back() throws {
        let stage = try refusingTagged()
        stage.origin.answers(.version("whole", tag: "v1"))
        try stage.advance(3600)
        #expect(stage.outcomes == [.changed, .failed, .unchanged] && stage.status.failing == nil)
    }

    @Test(
        "It is asked for whole where the refusal may not hold: not kept any more, another configuration, another life")
    func whole() throws {
        let lost = try refusingTagged()
        lost.store.state.withLock { $0.refused = nil }
        try lost.advance(60)
        #expect(tags(lost) == [nil, "v1", "v1"] && lost.store.state.withLock { $0.settingsAside } == 2)
        let other = try refusingTagged()
        var definition = other.definition
        definition.check.minBytes = 3
        other.runner.reconfigure(definition)
        try other.advance(60)
        #expect(other.store.text == "cut" && other.status.failing == nil)
        let restarted = try refusingTagged()
        try restarted.restart()
        try restarted.fire("reload")
        #expect(tags(restarted) == [nil, "v1", "v1"] && restarted.status.refused?.digest == "cut")
    }

    @Test("What another check may accept another time is asked for whole each time, and accepted then")
    func passing() throws {
        let inspector = ScriptedInspector()
        var rules = CheckRules()
        rules.exec = InspectionRule(["/check"])
        let stage = try refusingTagged(rules, inspector: inspector)
        #expect(stage.status.next?.reason == .timer)
        try stage.advance(60)
        #expect(tags(stage) == [nil, "v1", "v1"] && stage.outcomes == [.changed, .failed, .failed])
        inspector.state.withLock { $0.failure = nil }
        try stage.advance(120)
        #expect(stage.store.text == "cut" && stage.status.failing == nil)
    }

    @Test("What depends on the time is asked for whole: programs with now, and answers with a date alone")
    func time() throws {
        // The size refuses it before the program is asked, of which nobody knows what it would say later.
        var rules = CheckRules(minBytes: 4)
        rules.items = "now"
        let stage = try refusingTagged(rules)
        try stage.advance(60)
        #expect(tags(stage) == [nil, "v1", "v1"])
    }

    @Test("After the clock was set it is asked for whole, and at once")
    func clock() throws {
        let stage = try refusingTagged()
        stage.origin.answers(.version("whole again", tag: "v3"))
        stage.clock.stepWall(by: .seconds(86_400))
        stage.engine.clockStepped()
        try stage.advance(60)
        #expect(tags(stage) == [nil, "v1", "v1"] && stage.store.text == "whole again")
    }

    @Test("An error page that is taken away is gone within twice its time, and one that stays costs next to nothing")
    func errorPage() throws {
        let day = 86_400.0
        let stage = try Stage(RefreshPolicy(every: .seconds(86_400), freshFor: .zero), check: CheckRules(minBytes: 4))
        stage.origin.answers(.content("whole"), .content("cut"))
        try stage.start()
        try stage.fire("start")
        try stage.advance(day)
        #expect(stage.origin.asked.count == 2 && stage.status.refused?.digest == "cut")
        try stage.advance(20 * 60)
        stage.origin.answers(.content("whole again"))
        try stage.advance(20 * 60)
        #expect(stage.store.text == "whole again" && stage.origin.asked.count == 7)
        stage.origin.answers(.content("cut"))
        try stage.advance(30 * day)
        // Eleven until it is a day, and one each day.
        #expect((35...42).contains(stage.origin.asked.count - 7), "\(stage.origin.asked.count)")
    }

    @Test("Accepted while a check is under way, it is the copy, and what that check comes to is told for itself")
    func acceptedMeanwhile() throws {
        let stage = try refusing()
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

    /// With a copy that its origin calls v1, which a stricter check refuses since then.
    private func refusingCopy() throws -> Stage {
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
        "The copy itself, if a stricter check refuses it, is asked for whole once, and then whether it is there still")
    func copyItself() throws {
        let stage = try refusingCopy()
        let failure = try #require(stage.status.failing?.failure)
        #expect(failure.refusal == .lasting && stage.status.refused == nil)
        try stage.advance(60)
        #expect(tags(stage) == [nil, nil, "v1"])
        #expect(stage.status.failing?.failure == failure && stage.status.failing?.attempts == 2)
        #expect(stage.status.refused == nil && stage.store.text == "whole")
        stage.origin.answers(.version("whole again", tag: "v2"))
        try stage.advance(120)
        #expect(stage.store.text == "whole again" && stage.status.failing == nil)
        #expect(tags(stage) == [nil, nil, "v1", "v1"])
    }

    @Test("It is asked for whole where it is not the copy any more, and taken as it is when the check is as it was")
    func copyNoMore() throws {
        let other = try refusingCopy()
        other.store.bytes = Array("other".utf8)
        try other.advance(60)
        #expect(tags(other) == [nil, nil, nil] && other.status.refused?.digest == "whole")
        let mended = try refusingCopy()
        mended.runner.reconfigure(mended.definition)
        try mended.advance(60)
        #expect(tags(mended) == [nil, nil, "v1"] && mended.outcomes == [.changed, .failed, .unchanged])
    }

    // MARK: In between

    @Test("A failure of the origin in between is one of its own, and changes nothing of that")
    func between() throws {
        let stage = try refusingTagged()
        stage.origin.answers(.fails(RunFailure(.transient, "away")), .version("cut", tag: "v2"))
        try stage.advance(60)
        #expect(stage.status.failing?.failure.message == "away" && stage.status.failing?.attempts == 1)
        try stage.advance(2)
        #expect(tags(stage) == [nil, "v1", "v2", "v2"])
        #expect(stage.status.failing?.failure.refusal == .lasting)
        #expect(stage.status.next?.reason == .timer)
    }
}
