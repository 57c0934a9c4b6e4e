import FreshetModel
import FreshetSignals
import FreshetTestKit
import Testing
import WorldTestSupport

@testable import FreshetPipelines

@Suite("A metered connection")
struct MeteredTests {
    private let waits = RefreshPolicy(freshFor: .zero, whenMetered: .wait)
    private let fact = "metered (guessed)"

    /// A pipeline that waits for an unmetered connection, on a metered one.
    private func metered(_ policy: RefreshPolicy? = nil, needsNetwork: Bool = true, lastCheck: Double? = nil)
        -> Dialogue
    {
        let dialogue = Dialogue(policy ?? waits, needsNetwork: needsNetwork, lastCheck: lastCheck)
        _ = dialogue.at(0, .metered(fact))
        return dialogue
    }

    @Test("signals wait, with the fact in the status, and cause one run when the connection is not metered any more")
    func signals() {
        let dialogue = metered()
        #expect(dialogue.waitsFor == nil, "no run is requested")
        #expect(dialogue.at(1, .receives("file", at: 1)) == [])
        #expect(dialogue.activity == .waiting(Wait(.metered, detail: fact)))
        #expect(dialogue.nextRun == nil && dialogue.wake == nil)
        #expect(dialogue.at(30, .receives("network", "resume", at: 30)) == [])
        #expect(dialogue.pass(until: 90_000) == [])
        #expect(dialogue.at(90_000, .metered(nil)) == [.starts(1, ["file", "network", "resume"])])
        #expect(dialogue.at(90_001, .succeeds(1)) == [])
        #expect(dialogue.pass(until: 99_000) == [])
    }

    @Test("a signal that fires with the change, before or after it, is part of the same run")
    func signalOfTheChange() {
        for signalComesFirst in [true, false] {
            let dialogue = metered()
            _ = dialogue.at(1, .receives("file", at: 1))
            let signal = Dialogue.Event.receives("metered", at: 20)
            if signalComesFirst {
                #expect(dialogue.at(20, signal) == [])
                #expect(dialogue.at(20.001, .metered(nil)) == [.starts(1, ["file", "metered"])])
            } else {
                #expect(dialogue.at(20, .metered(nil)) == [.starts(1, ["file"])])
                #expect(dialogue.at(20.001, signal) == [])
            }
            _ = dialogue.at(21, .succeeds(1))
            #expect(dialogue.pass(until: 1000) == [])
        }
    }

    @Test("planned checks and retries wait")
    func timers() {
        var policy = waits
        policy.every = .seconds(600)
        let dialogue = metered(policy, lastCheck: -500)
        #expect(dialogue.pass(until: 2000) == [])
        #expect(dialogue.activity == .waiting(Wait(.metered, detail: fact)))
        #expect(dialogue.at(2000, .metered(nil)) == [.starts(1, ["timer"])])
        _ = dialogue.at(2001, .fails(1, .transient), .metered("metered"))
        #expect(dialogue.pass(until: 2600) == [])
        #expect(dialogue.activity == .waiting(Wait(.metered, detail: "metered")))
        #expect(dialogue.at(2600, .metered(nil)) == [.starts(2, ["timer"])])
    }

    @Test("requests of the operator, forced or not, and for a further page run immediately; their retries wait")
    func operators() {
        let dialogue = metered()
        #expect(dialogue.at(1, .refresh(request: 1, force: false)) == [.starts(1, ["operator"])])
        #expect(dialogue.at(2, .succeeds(1)) == [.answers(1, .changed)])
        #expect(dialogue.at(3, .receives("file", at: 3)) == [])
        #expect(dialogue.at(4, .refresh(request: 2, force: true)) == [.starts(2, ["file", "operator"])])
        #expect(dialogue.at(5, .succeeds(2)) == [.answers(2, .changed)])
        #expect(dialogue.at(6, .loadMore(request: 3, place: [])) == [.starts(3, ["operator"])])
        #expect(dialogue.at(7, .succeeds(3)) == [.answers(3, .changed)])
        #expect(dialogue.at(8, .refresh(request: nil, force: false)) == [.starts(4, ["operator"])])
        #expect(dialogue.at(9, .fails(4, .transient)) == [])
        #expect(dialogue.pass(until: 5000) == [])
        #expect(dialogue.activity == .waiting(Wait(.metered, detail: fact)))
    }

    @Test("a run in progress continues on a connection that becomes metered")
    func runInProgress() {
        for whenRunning in WhenRunning.allCases {
            var policy = waits
            policy.whenRunning = whenRunning
            let dialogue = Dialogue(policy)
            _ = dialogue.at(0, .receives("file", at: 0))
            #expect(dialogue.at(1, .metered(fact)) == [])
            #expect(dialogue.at(10, .receives("file", at: 10)) == [], "no other run could start")
            guard whenRunning != .ignore else {
                #expect(dialogue.at(20, .succeeds(1)) == [])
                #expect(dialogue.activity == .loaded, "the signal was ignored")
                continue
            }
            #expect(dialogue.pass(until: 20) == [])
            #expect(dialogue.at(20, .succeeds(1)) == [])
            #expect(dialogue.activity == .waiting(Wait(.metered, detail: fact)))
            #expect(dialogue.at(30, .metered(nil)) == [.starts(2, ["file"])])
        }
    }

    @Test("a run that the change to a metered network has ended waits; one of the operator starts again")
    func pathChanged() {
        for isOperators in [false, true] {
            let dialogue = Dialogue(waits)
            _ = dialogue.at(0, isOperators ? .refresh(request: 1, force: false) : .receives("file", at: 0))
            #expect(dialogue.at(1, .metered(fact), .network(Dialogue.online("b", epoch: 2, since: 1))) == [.cancels(1)])
            let outputs = dialogue.at(1.1, .ended(run: 1, .cancelled)) + dialogue.pass(until: 60).map(\.output)
            #expect(outputs == (isOperators ? [.starts(2, ["operator"])] : []))
        }
    }

    @Test("a permit that was requested before is released when it is granted too late")
    func permit() {
        let dialogue = Dialogue(waits)
        dialogue.grantsPermits = false
        _ = dialogue.at(0, .receives("file", at: 0))
        _ = dialogue.at(1, .metered(fact))
        #expect(dialogue.at(2, .permitGranted(1)) == [])
        #expect(dialogue.permitReleases == [1])
        dialogue.grantsPermits = true
        #expect(dialogue.at(3, .metered(nil)) == [.starts(1, ["file"])])
    }

    @Test("it holds back only pipelines that wait, with or without a network; a reload takes effect immediately")
    func policy() {
        var allows = waits
        allows.whenMetered = .allow
        #expect(metered(allows).at(1, .receives("file", at: 1)) == [.starts(1, ["file"])])
        let dialogue = metered(needsNetwork: false)
        #expect(dialogue.at(1, .receives("file", at: 1)) == [])
        let allowing = RefreshSettings(policy: allows, needsNetwork: false)
        #expect(dialogue.at(2, .reconfigured(allowing, sameProduct: true)) == [.starts(1, ["file"])])
        let waiting = RefreshSettings(policy: waits, needsNetwork: false)
        _ = dialogue.at(3, .succeeds(1))
        _ = dialogue.at(20, .reconfigured(waiting, sameProduct: true))
        #expect(dialogue.at(21, .receives("file", at: 21)) == [])
        #expect(dialogue.activity == .waiting(Wait(.metered, detail: fact)))
    }

    @Test("without a network the pipeline waits for the network first; while it is held, it does not wait")
    func otherWaits() {
        let dialogue = metered()
        _ = dialogue.at(1, .network(Dialogue.offline(epoch: 2, since: 1)), .receives("file", at: 1))
        #expect(dialogue.waitsFor?.reason == .network)
        _ = dialogue.at(60, .network(Dialogue.online("b", epoch: 3, since: 60)))
        #expect(dialogue.pass(until: 120) == [])
        #expect(dialogue.waitsFor == Wait(.metered, detail: fact))
        _ = dialogue.at(121, .held(true))
        #expect(dialogue.activity == .held && dialogue.waitsFor == nil)
        #expect(dialogue.at(122, .metered(nil)) == [])
        #expect(dialogue.at(123, .held(false)) == [.starts(1, ["file"])])
    }

    @Test("`metered` is an environment signal, which a fresh copy answers")
    func kind() {
        let dialogue = Dialogue(RefreshPolicy(on: [.metered]), lastCheck: -10)
        #expect(SignalKind(signal: SignalName.metered) == .environment)
        #expect(dialogue.at(1, .receives("metered", at: 1)) == [])
        #expect(dialogue.at(100, .receives("metered", at: 100)) == [.starts(1, ["metered"])])
    }

    @Test("the engine notifies each pipeline, also one that is added later")
    func engine() throws {
        let stage = try Stage(waits)
        try stage.start()
        stage.engine.meteredChanged(fact)
        let clock = stage.clock
        let signal = SignalSource("file", now: { clock.now.continuous })
        let later = stage.engine.add(
            PipelineDefinition(
                name: "later", source: .http(HTTPSource(url: "https://example.com/later", host: "example.com")),
                refresh: waits, cache: CacheRules(file: "later")),
            remembered: PersistentState(), signal: signal.signal,
            network: NetworkFeed(NetworkState(reachable: true, epoch: 1, changedAt: clock.now, path: "a"))
        ) { _ in }
        signal.fire()
        try stage.fire("file")
        for status in [stage.status, later.status] { #expect(status.waitsFor == Wait(.metered, detail: fact)) }
        stage.engine.meteredChanged(nil)
        try stage.executor.runUntilIdle()
        for status in [stage.status, later.status] { #expect(status.run != nil || status.lastRun != nil) }
    }
}
