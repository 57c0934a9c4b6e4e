import FreshetModel
import FreshetSignals
import FreshetTestKit
import Testing
import WorldTestSupport

@testable import FreshetPipelines

@Suite("A running pipeline")
struct RunnerTests {
    @Test("a signal leads to a fetch, a commit and a report with its cause")
    func fetches() throws {
        let stage = try Stage()
        try stage.start()
        #expect(stage.status.activity == .idle)
        try stage.fire("start")
        #expect(stage.origin.times == [0])
        #expect(stage.store.text == "data")
        #expect(stage.causes == ["start"])
        #expect(stage.outcomes == [.changed])
        let status = stage.status
        #expect(status.activity == .loaded)
        #expect(status.generation?.number == 1)
        #expect(status.freshness == .fresh)
        #expect(status.lastCheck == stage.clock.wallStart)
        #expect(status.lastCauses.map(\.signal) == ["start"])
        #expect(status.lastRun?.outcome == .changed)
    }

    @Test("a signal that fires before the service runs is received")
    func early() throws {
        let stage = try Stage()
        stage.fireWithoutRunning("start")
        try stage.start()
        #expect(stage.causes == ["start"])
    }

    @Test("an idle engine has no ready and no sleeping task; a planned check is one timer")
    func rest() throws {
        let stage = try Stage(RefreshPolicy(freshFor: .zero))
        try stage.start()
        try stage.fire("start")
        try stage.advance(3600)
        #expect(try stage.executor.runUntilIdle() == 0)
        #expect(stage.clock.manual.sleeperCount == 0)
        let planned = try Stage(RefreshPolicy(every: .seconds(900)))
        try planned.start()
        try planned.fire("start")
        #expect(planned.clock.manual.sleeperCount == 1)
        #expect(planned.clock.manual.nextDeadline == planned.clock.manual.start.advanced(by: .seconds(900)))
        try planned.advance(2000)
        #expect(planned.origin.times == [0, 900, 1800])
    }

    @Test("a pipeline without signals is checked by the clock")
    func silent() throws {
        let stage = try Stage(RefreshPolicy(every: .seconds(900)))
        try stage.start()
        try stage.advance(1000)
        #expect(stage.origin.times == [2, 902])
    }

    @Test("a request is conditional if the copy has the same source and transform; a 304 makes no generation")
    func conditional() throws {
        let stage = try Stage()
        stage.origin.answers(.content("data", tag: "\"1\""), .notModified)
        try stage.start()
        try stage.fire("start")
        try stage.advance(10)
        try stage.fire("reload")
        #expect(stage.origin.asked.map(\.validators?.entityTag) == [nil, "\"1\""])
        #expect(stage.outcomes == [.changed, .unchanged])
        #expect(stage.status.generation?.number == 1)
        #expect(stage.status.lastCheck == stage.clock.wallStart + 10_000_000)
        // The validators were of the untransformed copy.
        stage.origin.answers(.content("data", tag: "\"1\""))
        let other = Stage.definition(RefreshPolicy(freshFor: .zero), transform: "upper")
        stage.runner.reconfigure(other, share: 0)
        try stage.advance(10)
        try stage.fire("reload")
        #expect(stage.origin.asked.last?.validators == nil)
        #expect(stage.store.text == "DATA")
    }

    @Test("a copy that disappears while the origin confirms it is fetched again, unconditionally, in the same run")
    func removedMeanwhile() throws {
        let stage = try Stage()
        stage.origin.answers(.content("data", tag: "\"1\""), .notModified, .content("data", tag: "\"1\""))
        try stage.start()
        try stage.fire("start")
        stage.store.state.withLock { $0.isRemoved = true }
        try stage.advance(10)
        try stage.fire("reload")
        #expect(stage.origin.asked.map(\.validators?.entityTag) == [nil, "\"1\"", nil])
        #expect(stage.outcomes.last == .unchanged)
    }

    @Test("a 304 answer to an unconditional request is a failure")
    func unexpectedNotModified() throws {
        let stage = try Stage()
        stage.origin.answers(.notModified)
        try stage.start()
        try stage.fire("start")
        #expect(stage.outcomes == [.failed])
    }

    @Test("the record of a run that the store takes without a wait needs no task", arguments: [true, false])
    func recordWithoutTask(_ isTaken: Bool) throws {
        let stage = try Stage()
        stage.store.state.withLock { $0.takesRecordsNow = isTaken }
        try stage.start()
        try stage.fire("start")
        try stage.advance(10)
        try stage.fire("reload")
        #expect(stage.store.records.map(\.number) == [1, 2])
        #expect(stage.store.state.withLock { $0.waitedRecords } == (isTaken ? 0 : 2))
    }

    @Test("the same content is unchanged")
    func unchanged() throws {
        let stage = try Stage()
        try stage.start()
        try stage.fire("start")
        try stage.advance(10)
        try stage.fire("reload")
        #expect(stage.outcomes == [.changed, .unchanged])
        #expect(stage.store.records.map(\.outcome) == [.changed, .unchanged])
        #expect(stage.store.records.map(\.number) == [1, 2])
        #expect(stage.store.records.map(\.generation) == [1, 1])
        #expect(stage.store.records.last?.causes == "reload")
        #expect(stage.store.records.last?.started == stage.clock.wallStart + 10_000_000)
    }

    @Test("a run is recorded with its duration, even if time passes between two readings of the clocks")
    func recordedDuration() throws {
        let stage = try Stage()
        stage.origin.answers(.after(.milliseconds(2500), .content("data")))
        try stage.start()
        stage.clock.lookTakes = 36
        try stage.fire("start")
        try stage.advance(10)
        let record = try #require(stage.store.records.first)
        #expect(record.ended.microseconds - record.started.microseconds == 2_500_000)
    }

    @Test(
        "content that fails the checks never replaces the copy",
        arguments: [
            CheckRules(minBytes: 4), CheckRules(maxBytes: 2), CheckRules(types: ["application/json"]),
            CheckRules(jq: "false"),
        ])
    func checks(_ rules: CheckRules) throws {
        let stage = try Stage(check: rules)
        stage.origin.answers(.content("bad", type: "text/html"))
        try stage.start()
        try stage.fire("start")
        #expect(stage.store.text == nil)
        guard case .failed(let failure, _, attempts: 1) = stage.status.activity else {
            Issue.record("\(stage.status.activity)")
            return
        }
        #expect(failure.kind == .content)
        #expect(failure.message.contains("check."))
    }

    @Test("content that passes the checks does, at the limits too")
    func passesChecks() throws {
        let rules = CheckRules(jq: "true", minBytes: 3, maxBytes: 3, types: ["text/plain", "Application/JSON"])
        let stage = try Stage(transform: "upper", check: rules)
        stage.origin.answers(.content("abc", type: "application/json"))
        try stage.start()
        try stage.fire("start")
        #expect(stage.store.text == "ABC")
    }

    @Test("an empty answer is rejected unless it is allowed, and so is a missing media type if one is required")
    func edges() {
        #expect(CheckRules().rejection(ofSnapshot: 0)?.kind == .content)
        #expect(CheckRules(minBytes: 0).rejection(ofSnapshot: 0) == nil)
        #expect(CheckRules(types: ["text/plain"]).rejection(ofType: nil)?.kind == .content)
        #expect(CheckRules().rejection(ofType: nil) == nil)
        #expect(CheckRules(maxBytes: 5).rejection(ofAnswer: 5) == nil)
        #expect(CheckRules(maxBytes: 5).rejection(ofAnswer: 6)?.kind == .content)
    }

    @Test("a failed commit is a failure of this machine, and the copy stays")
    func commitFails() throws {
        let stage = try Stage()
        try stage.start()
        try stage.fire("start")
        stage.store.state.withLock { $0.failsCommits = true }
        stage.origin.answers(.content("new"))
        try stage.advance(10)
        try stage.fire("reload")
        #expect(stage.store.text == "data")
        #expect(stage.status.generation?.number == 1)
        guard case .failed(let failure, _, _) = stage.status.activity else {
            Issue.record("\(stage.status.activity)")
            return
        }
        #expect(failure == RunFailure(.local, "the disk is full"))
    }

    @Test("while a run loads, the copy is published and the bytes are shown")
    func loading() throws {
        let stage = try Stage()
        try stage.start()
        try stage.fire("start")
        stage.origin.answers(.hangs())
        try stage.advance(10)
        try stage.fire("reload")
        let status = stage.status
        #expect(status.activity == .loading(LoadProgress(bytes: 3)))
        #expect(status.generation?.number == 1)
        #expect(status.run?.run == 2)
        #expect(status.lastCauses.map(\.signal) == ["reload"])
    }

    @Test("runs are numbered on after a restart")
    func numbers() throws {
        let stage = try Stage()
        try stage.start()
        try stage.fire("reload")
        try stage.restart()
        try stage.advance(10)
        try stage.fire("reload")
        #expect(stage.store.records.map(\.number) == [1, 2])
    }

    @Test("a copy of another source or transform is not fresh after a restart")
    func otherProduct() throws {
        let stage = try Stage(RefreshPolicy(freshFor: .seconds(60)))
        stage.store.state.withLock {
            $0.remembered = PersistentState(lastCheck: stage.clock.wallStart, binding: "another")
        }
        try stage.restart()
        try stage.fire("start")
        #expect(stage.origin.times.count == 1)
    }
}
