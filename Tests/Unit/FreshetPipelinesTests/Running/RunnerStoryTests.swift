import FreshetModel
import FreshetSignals
import FreshetTestKit
import Testing
import WorldTestSupport

@testable import FreshetPipelines

@Suite("A pipeline in an unreliable world")
struct RunnerStoryTests {
    let always = RefreshPolicy(freshFor: .zero)

    @Test("fifty flaps in five seconds: two requests, the first immediately")
    func flaps() throws {
        let stage = try Stage(RefreshPolicy(atMost: .seconds(10), freshFor: .zero), reachable: false)
        try stage.start()
        for _ in 0..<50 {
            try stage.network(true)
            try stage.advance(0.05)
            try stage.network(false)
            try stage.advance(0.05)
        }
        try stage.network(true)
        try stage.advance(100)
        #expect(stage.origin.times == [0, 7])
        #expect(stage.causes.last == "network (50)")
    }

    @Test("fifty flaps with an origin that takes longer than the link is up")
    func flapsSlow() throws {
        let stage = try Stage(RefreshPolicy(atMost: .seconds(10), freshFor: .zero), reachable: false)
        stage.origin.answers(.after(.milliseconds(80), .content("data")))
        try stage.start()
        for _ in 0..<50 {
            try stage.network(true)
            try stage.advance(0.05)
            try stage.network(false)
            try stage.advance(0.05)
        }
        try stage.network(true)
        try stage.advance(100)
        #expect(stage.origin.times == [0, 7])
        #expect(stage.outcomes == [.superseded, .changed])
    }

    @Test("a reboot loop costs one request")
    func rebootLoop() throws {
        let stage = try Stage(RefreshPolicy(every: .seconds(900), freshFor: .seconds(60)))
        try stage.start()
        try stage.fire("start")
        for _ in 0..<10 {
            try stage.advance(3)
            try stage.restart()
            try stage.fire("start")
            try stage.fire("network")
        }
        #expect(stage.origin.times == [0])
        let skipped = stage.events.filter { if case .skipped = $0 { true } else { false } }
        #expect(skipped.count == 20)
    }

    @Test("a pipeline with changed subscriptions still handles earlier signals")
    func otherSignals() throws {
        let stage = try Stage(RefreshPolicy(freshFor: .zero))
        stage.origin.answers(.after(.seconds(1), .content("data")))
        try stage.start()
        try stage.fire("start")
        // Held by the burst of the first signal; the second signal has not even been taken.
        try stage.fire("file")
        stage.fireWithoutRunning("file")
        try stage.subscribe(to: "reload")
        try stage.fire("file")
        try stage.advance(60)
        #expect(stage.causes == ["start", "file (2)"])
        try stage.fire("reload")
        try stage.advance(60)
        #expect(stage.causes.last == "reload")
    }

    @Test("a budget holds across restarts")
    func budget() throws {
        let stage = try Stage(
            RefreshPolicy(every: .seconds(600), freshFor: .zero, budget: RequestBudget(3, per: .hour)))
        try stage.start()
        for _ in 0..<5 {
            try stage.advance(601)
            try stage.restart()
        }
        #expect(stage.origin.times.count == 3)
        try stage.advance(3_600)
        #expect(stage.origin.times.count == 6)
    }

    @Test("requests during a run lead to exactly one more run")
    func requestSignal() throws {
        let stage = try Stage(RefreshPolicy(quiet: .zero, freshFor: .zero))
        stage.origin.answers(.after(.seconds(5), .content("data")))
        try stage.start()
        try stage.fire("start")
        try stage.advance(1)
        for _ in 0..<20 { try stage.fire("reload") }
        try stage.advance(100)
        #expect(stage.origin.times == [0, 5])
        #expect(stage.causes == ["start", "reload (20)"])
    }

    @Test("restart: the run is cancelled and awaited before the next one starts")
    func restart() throws {
        let stage = try Stage(RefreshPolicy(quiet: .zero, whenRunning: .restart, freshFor: .zero))
        stage.origin.answers(.hangs(cleanUp: .seconds(2)), .content("data"))
        try stage.start()
        try stage.fire("file")
        try stage.advance(1)
        try stage.fire("file")
        #expect(stage.origin.open == 1)
        try stage.advance(1)
        #expect(stage.origin.times == [0])
        try stage.advance(1)
        #expect(stage.origin.times == [0, 3])
        #expect(stage.outcomes == [.superseded, .changed])
        #expect(stage.causes.last == "file (2)")
    }

    @Test("a cancelled run commits nothing, even if its source answers nevertheless")
    func stubborn() throws {
        let stage = try Stage(RefreshPolicy(quiet: .zero, whenRunning: .restart, freshFor: .zero))
        stage.origin.answers(.stubborn(.seconds(1), .content("old")), .hangs())
        try stage.start()
        try stage.fire("file")
        try stage.fire("file")
        try stage.advance(1)
        #expect(stage.outcomes == [.superseded])
        #expect(stage.store.text == nil)
        #expect(stage.origin.times == [0, 1])
    }

    @Test("stopping cancels the run, awaits it, releases the permit and answers waiting requests")
    func stop() throws {
        let stage = try Stage(requestLimiter: 1)
        stage.origin.answers(.hangs(cleanUp: .seconds(3)))
        try stage.start()
        let pending = try stage.refresh()
        #expect(stage.requestLimiter.counts == (1, 0))
        let service = try #require(stage.service)
        let isOver = Lock(false)
        let executor = stage.executor
        Task(executorPreference: executor) {
            await service.value
            isOver.withLock { $0 = true }
        }
        service.cancel()
        try stage.advance(2.9)
        #expect(!isOver.withLock { $0 })
        #expect(stage.origin.open == 1)
        try stage.advance(0.1)
        #expect(isOver.withLock { $0 })
        #expect(stage.origin.open == 0)
        #expect(stage.requestLimiter.counts == (0, 0))
        #expect(pending.now == .stopped)
        #expect(stage.outcomes == [.cancelled])
        #expect(stage.store.records.map(\.outcome) == [.cancelled])
        #expect(try stage.refresh().now == .stopped)
        #expect(stage.clock.manual.sleeperCount == 0)
    }

    @Test("the deadline ends a run that hangs")
    func deadline() throws {
        let stage = try Stage(RefreshPolicy(freshFor: .zero, deadline: .seconds(30)))
        stage.origin.answers(.hangs())
        try stage.start()
        try stage.fire("file")
        try stage.advance(29.9)
        #expect(stage.origin.open == 1)
        try stage.advance(0.1)
        #expect(stage.outcomes == [.failed])
        #expect(stage.store.records.first?.error?.contains("deadline") == true)
    }

    @Test("an origin that answers 500 gets ever fewer requests")
    func backsOff() throws {
        let stage = try Stage(RefreshPolicy(freshFor: .zero, retry: RetryPolicy(from: .seconds(1), to: .seconds(300))))
        stage.origin.answers(.fails(RunFailure(.transient, "500")))
        try stage.start()
        try stage.fire("file")
        try stage.advance(3600)
        let times = stage.origin.times
        let waits = zip(times.dropFirst(), times).map { $0.0 - $0.1 }
        #expect(times.count > 12 && times.count < 200)
        for (index, wait) in waits.enumerated() {
            #expect(wait <= min(300, Double(1 << min(index, 20))) + 0.001)
        }
        stage.origin.answers(.content("data"))
        try stage.advance(301)
        #expect(stage.status.activity == .loaded)
    }

    @Test("Retry-After holds across a restart, refuses the operator, and is ignored by force")
    func retryAfter() throws {
        let stage = try Stage(RefreshPolicy(freshFor: .zero, retry: RetryPolicy(from: .zero, to: .zero)))
        stage.origin.answers(
            .fails(RunFailure(.transient, "429", retryAfter: .seconds(600))), .content("data"))
        try stage.start()
        try stage.fire("start")
        #expect(stage.store.rememberedNow.retryAfter == stage.clock.wallStart + 600_000_000)
        try stage.advance(60)
        try stage.restart()
        try stage.fire("start")
        #expect(
            stage.status.activity
                == .waiting(
                    Wait(.retryAfter, until: stage.clock.start.advanced(by: .seconds(600)))))
        guard case .refused(.retryAfter) = try stage.refresh().now else {
            Issue.record("not refused")
            return
        }
        #expect(stage.runner.requestRefresh(force: false) != nil)
        #expect(stage.origin.times == [0])
        try stage.advance(40)
        #expect(try stage.refresh(force: true).outcome == .changed)
        #expect(stage.origin.times == [0, 100])
        #expect(stage.store.rememberedNow.retryAfter == nil)
    }

    @Test("Retry-After ends by itself")
    func retryAfterPasses() throws {
        let stage = try Stage(RefreshPolicy(freshFor: .zero, retry: RetryPolicy(from: .zero, to: .zero)))
        stage.origin.answers(
            .fails(RunFailure(.transient, "429", retryAfter: .seconds(600))), .content("data"))
        try stage.start()
        try stage.fire("start")
        try stage.advance(5000)
        #expect(stage.origin.times == [0, 600])
    }

    @Test("grace period: a run waits while the network settles, and does not fail")
    func grace() throws {
        let stage = try Stage(always, reachable: false)
        let fails = ScriptedOrigin.Answer.fails(RunFailure(.connection, "no name server"))
        stage.origin.answers(fails, fails, fails, fails, .content("data"))
        try stage.start()
        try stage.advance(5)
        try stage.network(true)
        try stage.advance(100)
        #expect(stage.origin.times == [5, 5.25, 5.75, 6.75, 8.75])
        let failed = stage.events.contains {
            if case .stateChanged(.failed) = $0 { true } else { false }
        }
        #expect(!failed)
        #expect(stage.status.activity == .loaded)
    }

    @Test("a lost link cancels the run within the same step, and its return starts one with the new epoch")
    func lostLink() throws {
        let stage = try Stage(always)
        stage.origin.answers(.hangs(), .after(.milliseconds(1), .content("data")))
        try stage.start()
        try stage.fire("file")
        try stage.advance(10)
        try stage.network(false)
        #expect(stage.origin.open == 0)
        #expect(stage.status.activity == .waiting(Wait(.network)))
        try stage.advance(10)
        try stage.network(true)
        #expect(stage.origin.times == [0, 20])
        #expect(stage.origin.asked.map(\.epoch) == [1, 2])
        try stage.advance(100)
        #expect(stage.origin.times == [0, 20])
    }

    @Test("a removed pipeline ends its run first; the others continue")
    func removed() throws {
        let stage = try Stage(always)
        stage.origin.answers(.hangs(cleanUp: .seconds(1)), .content("data"))
        try stage.start()
        try stage.fire("file")
        let pending = try stage.refresh()
        let isRemoved = Lock(false)
        let (engine, runner) = (stage.engine, stage.runner)
        Task(executorPreference: stage.executor) {
            await engine.remove(runner)
            isRemoved.withLock { $0 = true }
        }
        try stage.advance(0.9)
        #expect(!isRemoved.withLock { $0 })
        #expect(pending.now == .stopped)
        try stage.advance(0.1)
        #expect(isRemoved.withLock { $0 })
        #expect(stage.store.records.map(\.outcome) == [.cancelled])
        try stage.fire("file")
        #expect(stage.origin.times == [0])
        #expect(try stage.refresh().now == .stopped)
        #expect(stage.clock.manual.sleeperCount == 0)
    }

    @Test("a pipeline that is added while the service runs works immediately")
    func added() throws {
        let stage = try Stage(always)
        try stage.start()
        let engine = stage.engine
        let source = SignalSource("file")
        let network = stage.feed
        var definition = stage.definition
        definition.name = "other"
        let other = try stage.executor.run { [definition] in
            await engine.add(definition, signal: source.signal, network: network, share: 0) { _ in }
        }
        source.fire()
        try stage.executor.runUntilIdle()
        #expect(other.status.activity == .loaded)
        #expect(stage.status.activity == .idle)
    }

    @Test("a changed source cancels the run of the old one")
    func reconfigured() throws {
        let stage = try Stage(always)
        stage.origin.answers(.hangs(), .content("data"))
        try stage.start()
        try stage.fire("file")
        stage.runner.reconfigure(Stage.definition(always, transform: "upper"), share: 0)
        try stage.advance(1)
        #expect(stage.store.text == "DATA")
        #expect(stage.outcomes == [.superseded, .changed])
    }

    @Test("a refresh awaits the first run that started after it")
    func refresh() throws {
        let stage = try Stage(always)
        stage.origin.answers(.after(.seconds(1), .content("data")))
        try stage.start()
        try stage.fire("file")
        let pending = try stage.refresh()
        try stage.advance(1)
        #expect(pending.now == nil)
        try stage.advance(1)
        #expect(pending.outcome == .unchanged)
        guard case .ended(let summary) = pending.now else { return }
        #expect(summary.run == 2)
        #expect(summary.causes.map(\.signal) == ["operator"])
    }

    @Test("a cancelled wait for a refresh ends, and the run continues")
    func abandoned() throws {
        let stage = try Stage(always)
        stage.origin.answers(.after(.seconds(1), .content("data")))
        try stage.start()
        let pending = try stage.refresh()
        pending.cancel()
        try stage.executor.runUntilIdle()
        #expect(pending.now == .stopped)
        try stage.advance(1)
        #expect(stage.outcomes == [.changed])
    }

    @Test("a held pipeline does nothing until it is released")
    func held() throws {
        let stage = try Stage(always)
        try stage.start()
        stage.runner.hold(since: 1)
        try stage.fire("file")
        #expect(stage.status.activity == .held)
        #expect(try stage.refresh().now == .refused(.held))
        stage.runner.hold(since: nil)
        try stage.executor.runUntilIdle()
        #expect(stage.origin.times == [0])
    }

    @Test("a pipeline without a permit waits visibly, and gets a permit in order")
    func permits() throws {
        let stage = try Stage(always, requestLimiter: 1)
        guard case .granted(let ticket) = stage.requestLimiter.request(for: 99, at: nil, {}) else {
            Issue.record("no permit")
            return
        }
        try stage.start()
        try stage.fire("file")
        #expect(stage.status.activity == .waiting(Wait(.permit, detail: "1 request is in progress")))
        let wait = Wait(.permit, detail: "1 request is in progress")
        #expect(stage.events.contains(.waitingBegan(wait)) && stage.events.contains(.stateChanged(.waiting(wait))))
        #expect(stage.origin.times == [])
        stage.requestLimiter.release(ticket)
        try stage.executor.runUntilIdle()
        #expect(stage.outcomes == [.changed])
        #expect(stage.requestLimiter.counts == (0, 0))
    }

    @Test("a pipeline whose source changes while it waits, waits for the new source's origin")
    func permitsOfAnotherOrigin() throws {
        let stage = try Stage(always, requestLimiter: 1)
        guard case .granted(let ticket) = stage.requestLimiter.request(for: 99, at: nil, {}) else {
            Issue.record("no permit")
            return
        }
        try stage.start()
        try stage.fire("file")
        stage.requestLimiter.change(RequestLimiter.Limits(total: 3, perOrigin: 1))
        #expect(stage.requestLimiter.counts == (2, 0))
        try stage.executor.runUntilIdle()
        #expect(stage.outcomes == [.changed])
        // Another pipeline takes the origin's only permit.
        let origin = HTTPOrigin(of: "https://example.com/")
        _ = stage.requestLimiter.request(for: 98, at: origin, {})
        try stage.advance(10)
        try stage.fire("file")
        #expect(stage.status.waitsFor?.detail == "1 request is in progress at https://example.com")
        var other = stage.definition
        other.source = .http(HTTPSource(url: "http://other.example/data", host: "other.example"))
        stage.runner.reconfigure(other, share: 0)
        try stage.executor.runUntilIdle()
        #expect(stage.outcomes.count == 2)
        #expect(stage.requestLimiter.counts == (2, 0))
        stage.requestLimiter.release(ticket)
    }

    @Test("a pipeline that is stopped while it waits for a permit withdraws its request")
    func permitsStopped() throws {
        let stage = try Stage(always, requestLimiter: 1)
        _ = stage.requestLimiter.request(for: 99, at: nil) {}
        try stage.start()
        try stage.fire("file")
        #expect(stage.requestLimiter.counts == (1, 1))
        stage.service?.cancel()
        try stage.executor.runUntilIdle()
        #expect(stage.requestLimiter.counts == (1, 0))
    }
}
