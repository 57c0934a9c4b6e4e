import FreshetModel
import FreshetSignals
import FreshetTestKit
import Testing
import WorldTestSupport

@testable import FreshetPipelines

@Suite("Pipelines behind a captive portal")
struct ProbeCoordinatorTests {
    /// The log messages.
    final class EventLogRecorder: Sendable {
        private let events = Lock<[ProbeEvent]>([])
        func add(_ one: ProbeEvent) { events.withLock { $0.append(one) } }
        var all: [ProbeEvent] { events.withLock { $0 } }
    }

    /// The results of single requests, in order.
    final class Answers: Sendable {
        private let answers = Lock<[String?]>([])
        func add(_ one: String?) { answers.withLock { $0.append(one) } }
        func take() -> [String?] {
            answers.withLock { answers in
                defer { answers = [] }
                return answers
            }
        }
    }

    /// Pipelines with one probe, in a scripted world.
    final class Stage {
        let executor = SerialTestExecutor()
        let clock: ScriptedClock
        let internet: ScriptedInternet
        let disk: MemoryDisk
        let engine: PipelineEngine
        let file: SignalSource
        let events = EventLogRecorder()
        let reported = EventLog()
        private(set) var runners: [PipelineRunner] = []
        private(set) var service: Task<Void, Never>?
        private let network: NetworkFeed

        var portal: ScriptedPortal { internet.portal }

        init(_ count: Int = 1, hasProber: Bool = true) throws {
            let clock = ScriptedClock(executor: executor)
            self.clock = clock
            internet = ScriptedInternet(clock: clock)
            disk = MemoryDisk(clock: clock)
            file = SignalSource("file", now: { clock.now.continuous })
            network = NetworkFeed(
                NetworkState(
                    reachable: true, epoch: 1, changedAt: clock.now.advanced(by: .seconds(-1000)), path: "a"))
            let world = EngineDependencies(
                fetcher: internet, transformer: ScriptedTransformer(), store: disk, clock: clock,
                requestLimiter: RequestLimiter(RequestLimiter.Limits(total: 64, perOrigin: 64)),
                prober: hasProber ? internet.portal : nil)
            engine = PipelineEngine(world) { [events] one in events.add(one) }
            for index in 0..<count {
                let definition = PipelineDefinition(
                    name: "p\(index)",
                    source: .http(HTTPSource(url: "https://example.com/\(index)", host: "example.com")),
                    refresh: RefreshPolicy(freshFor: .zero, needsNetwork: .probe(.scripted)),
                    cache: CacheRules(file: "p\(index)"))
                runners.append(
                    engine.add(
                        definition, remembered: PersistentState(), signal: file.signal, network: network
                    ) { [reported] in reported.add($0) })
            }
            service = Task(executorPreference: executor) { [engine] in await engine.run() }
            try executor.runUntilIdle()
        }

        func fire() throws {
            file.fire()
            try executor.runUntilIdle()
        }

        func advance(_ seconds: Double) throws {
            try clock.manual.advance(by: .milliseconds(Int64((seconds * 1000).rounded())), draining: executor)
        }

        /// Another path with another epoch.
        func moves() throws {
            network.publish { [clock] before in
                NetworkState(reachable: true, epoch: before.epoch + 1, changedAt: clock.now, path: "b")
            }
            try executor.runUntilIdle()
        }

        func end() throws {
            service?.cancel()
            try executor.runUntilIdle()
        }

        var outcomes: [RunOutcome] {
            reported.all.compactMap { if case .runEnded(let summary, _) = $0 { summary.outcome } else { nil } }
        }

        deinit {
            service?.cancel()
            _ = try? executor.runUntilIdle()
        }
    }

    @Test("one signal for a thousand pipelines makes one probe; while it fails no run starts, and then all do")
    func thousand() throws {
        let stage = try Stage(1000)
        stage.portal.answers(.redirects)
        try stage.fire()
        #expect(stage.portal.times == [0])
        #expect(stage.internet.mostOpen == 0)
        let refused = PipelineActivity.waiting(Wait(.network, detail: NetworkProbe.scriptedRefusal))
        #expect(stage.runners.allSatisfy { $0.status.activity == refused })
        try stage.advance(20)
        #expect(stage.portal.times == [0, 1, 3, 7, 15])
        stage.portal.answers(.lets)
        try stage.advance(11)
        #expect(stage.portal.times == [0, 1, 3, 7, 15, 31])
        #expect(stage.portal.mostOpen == 1)
        #expect(stage.outcomes == Array(repeating: .changed, count: 1000))
        #expect(stage.runners.allSatisfy { $0.status.activity == .loaded })
        let expected: [ProbeEvent] = [
            .refused(.scripted, NetworkProbe.scriptedRefusal), .proven(.scripted, after: .seconds(31)),
        ]
        #expect(stage.events.all == expected)
        #expect(stage.clock.manual.sleeperCount == 0)
    }

    @Test("the operator's request makes an attempt immediately, and waits for its result like everything else")
    func operation() throws {
        let stage = try Stage(2)
        stage.portal.answers(.redirects)
        try stage.fire()
        try stage.advance(20)
        stage.portal.answers(.lets)
        try stage.advance(0.5)
        #expect(stage.outcomes == [])
        stage.runners[0].requestRefresh(force: false)
        try stage.executor.runUntilIdle()
        #expect(stage.portal.times.last == 20.5)
        #expect(stage.outcomes == [.changed, .changed])
    }

    @Test("another path makes an attempt immediately in the new epoch, and ends the attempt on the old path")
    func epochs() throws {
        let stage = try Stage(3)
        stage.portal.answers(.hangs)
        try stage.fire()
        #expect(stage.portal.open == 1)
        stage.portal.answers(.lets)
        try stage.moves()
        #expect(stage.portal.asked.map(\.epoch) == [1, 2])
        #expect(stage.portal.open == 0)
        #expect(stage.portal.mostOpen == 1)
        try stage.advance(10)
        #expect(stage.outcomes == [.changed, .changed, .changed])
    }

    @Test("an attempt without an answer ends after 10 s, and is repeated")
    func silent() throws {
        let stage = try Stage()
        stage.portal.answers(.hangs)
        try stage.fire()
        try stage.advance(10)
        #expect(stage.portal.open == 0)
        #expect(
            stage.runners[0].status.waitsFor?.detail
                == "the network does not reach http://probe.example/204: no answer within 10 s")
        try stage.advance(1)
        #expect(stage.portal.times == [0, 11])
    }

    @Test("removing a pipeline removes its probe, and so does the end of the service")
    func ends() throws {
        let stage = try Stage(2)
        stage.portal.answers(.hangs)
        try stage.fire()
        for runner in stage.runners {
            #expect(stage.portal.open == 1)
            try stage.executor.run { [engine = stage.engine] in await engine.remove(runner) }
        }
        try stage.executor.runUntilIdle()
        #expect(stage.portal.open == 0)
        #expect(stage.clock.manual.sleeperCount == 0)
        let other = try Stage()
        other.portal.answers(.hangs)
        try other.fire()
        try other.end()
        #expect(other.portal.open == 0)
        #expect(other.clock.manual.sleeperCount == 0)
    }

    @Test("single requests get the first result, all from one attempt; at the end of the service they get a message")
    func once() throws {
        let stage = try Stage()
        let answers = Answers()
        func ask() {
            _ = Task(executorPreference: stage.executor) { [engine = stage.engine] in
                answers.add(await engine.refusal(of: .scripted, epoch: 1))
            }
        }
        stage.portal.answers(.after(.seconds(1), .redirects))
        for _ in 0..<10 { ask() }
        try stage.executor.runUntilIdle()
        try stage.advance(60)
        #expect(answers.take() == Array(repeating: NetworkProbe.scriptedRefusal, count: 10))
        #expect(stage.portal.times == [0])
        stage.portal.answers(.lets)
        ask()
        try stage.executor.runUntilIdle()
        #expect(answers.take() == [nil])
        try stage.advance(60)
        stage.portal.answers(.hangs)
        ask()
        try stage.executor.runUntilIdle()
        try stage.end()
        ask()
        try stage.executor.runUntilIdle()
        #expect(answers.take().count == 2)
        #expect(stage.portal.open == 0)
    }

    @Test("without a prober, a pipeline with a probe waits and shows the reason")
    func nobody() throws {
        let stage = try Stage(hasProber: false)
        try stage.fire()
        try stage.advance(100)
        #expect(stage.outcomes == [])
        #expect(stage.runners[0].status.waitsFor?.detail?.hasSuffix(": probes are not available") == true)
    }
}
