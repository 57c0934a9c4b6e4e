import Testing

@testable import FreshetPipelines

@Suite("Checks by the clock, the operator, and what can be seen")
struct PlanTests {
    let policy = RefreshPolicy(every: .seconds(900), freshFor: .seconds(60))

    @Test("every counts from the last successful check, with this host's delay")
    func every() {
        let talk = Dialogue(policy, plannedDelay: .seconds(7))
        _ = talk.at(0, .hears("start", at: 0))
        _ = talk.at(3, .ended(run: 1, .succeeded(changed: false, generation: 1)))
        #expect(talk.nextRun == PlannedRun(at: Dialogue.instant(910), reason: .timer))
        #expect(talk.pass(until: 1000) == [.init(at: 910, deed: .starts(2, ["timer"]))])
    }

    @Test("a check of another cause moves the next one")
    func moves() {
        let talk = Dialogue(policy, lastCheck: 0)
        _ = talk.at(500, .hears("file", at: 500))
        _ = talk.at(501, .succeeds(1))
        #expect(talk.wake == 1401)
    }

    @Test("it counts across restarts, and overdue leaves the signal start the time to come first")
    func restart() {
        #expect(Dialogue(policy, lastCheck: -600).wake == 300)
        let overdue = Dialogue(policy, lastCheck: -5000)
        #expect(overdue.at(0.1, .hears("start", at: 0.1)) == [.starts(1, ["start"])])
        let silent = Dialogue(policy, lastCheck: -5000)
        #expect(silent.pass(until: 10) == [.init(at: 2, deed: .starts(1, ["timer"]))])
        let splayed = Dialogue(policy, splay: .seconds(100), lastCheck: -5000)
        #expect(splayed.pass(until: 200) == [.init(at: 102, deed: .starts(1, ["timer"]))])
    }

    @Test("overdue after a long sleep it fires once")
    func afterSleep() {
        let talk = Dialogue(policy, lastCheck: 0)
        #expect(talk.at(9000, .timer, .hears("resume", at: 9000)) == [.starts(1, ["timer", "resume"])])
        _ = talk.at(9001, .succeeds(1))
        #expect(talk.wake == 9901)
    }

    @Test("without every nothing is planned and nothing wakes")
    func never() {
        let talk = Dialogue(RefreshPolicy(), lastCheck: -5000)
        #expect(talk.wake == nil)
        #expect(talk.nextRun == nil)
    }

    @Test("every is prolonged by this pipeline's share of the random delay")
    func share() {
        let definition = PipelineDefinition(
            name: "p", source: .file("/x"), refresh: RefreshPolicy(randomDelay: .seconds(10)),
            cache: CacheRules(file: "p"))
        #expect(RefreshSettings(definition, share: 0).plannedDelay == .zero)
        #expect(RefreshSettings(definition, share: 0.25).plannedDelay == .seconds(2.5))
    }

    @Test("the operator passes quiet, min-interval, fresh-for and splay")
    func operation() {
        let talk = Dialogue(
            RefreshPolicy(minInterval: .seconds(60), freshFor: .seconds(60)), splay: .seconds(50), lastCheck: 0)
        _ = talk.at(0, .hears("file", at: 0))
        _ = talk.at(0.1, .succeeds(1))
        #expect(talk.at(0.2, .refresh(request: 1, force: false)) == [.starts(2, ["operator"])])
        #expect(talk.at(0.3, .ended(run: 2, .succeeded(changed: false, generation: 1))) == [.answers(1, .unchanged)])
    }

    @Test("the operator's signal does what the request does")
    func operatorSignal() {
        let talk = Dialogue(RefreshPolicy(freshFor: .seconds(60)), lastCheck: 0)
        #expect(talk.at(1, .hears("operator", at: 1)) == [.starts(1, ["operator"])])
    }

    @Test("a request waits for the first run that starts after it")
    func waitsForNext() {
        let talk = Dialogue(policy)
        _ = talk.at(0, .hears("start", at: 0))
        #expect(talk.at(1, .refresh(request: 1, force: false), .refresh(request: 2, force: false)) == [])
        #expect(talk.at(2, .succeeds(1)) == [.starts(2, ["operator"])])
        #expect(talk.at(3, .fails(2, .content)) == [.answers(1, .failed), .answers(2, .failed)])
    }

    @Test("or for the one that superseded it")
    func waitsForSuperseding() {
        let talk = Dialogue(RefreshPolicy(quiet: .zero, whenRunning: .restart))
        _ = talk.at(0, .refresh(request: 1, force: false))
        #expect(talk.at(1, .hears("query", at: 1)) == [.cancels(1)])
        #expect(talk.at(2, .ended(run: 1, .cancelled)) == [.starts(2, ["operator", "query"])])
        #expect(talk.at(3, .succeeds(2)) == [.answers(1, .changed)])
    }

    @Test("idle, loading, loaded, failed")
    func activities() {
        let talk = Dialogue(RefreshPolicy())
        #expect(talk.activity == .idle)
        _ = talk.at(0, .hears("start", at: 0))
        #expect(talk.activity == .loading(LoadProgress()))
        _ = talk.at(1, .succeeds(1))
        #expect(talk.activity == .loaded)
        #expect(Dialogue(RefreshPolicy(), lastCheck: -1).activity == .loaded)
    }

    @Test("stale is what is older than fresh-for and overdue, or failed")
    func freshness() {
        let talk = Dialogue(policy, lastCheck: 0)
        _ = talk.at(0)
        #expect(talk.freshness == .fresh)
        _ = talk.at(800)
        #expect(talk.freshness == .fresh)
        #expect(talk.pass(until: 901).count == 1)
        #expect(talk.freshness == .stale)
        _ = talk.at(902, .succeeds(1))
        #expect(talk.freshness == .fresh)
        _ = talk.at(1000, .hears("file", at: 1000))
        _ = talk.at(1001, .fails(2, .content))
        #expect(talk.freshness == .stale)
        #expect(Dialogue(policy).freshness == nil)
    }

    @Test("waiting is told when it begins and ends, and a state once")
    func told() {
        let talk = Dialogue(RefreshPolicy(freshFor: .zero), network: Dialogue.offline(), lastCheck: -500)
        _ = talk.at(1, .network(Dialogue.online(epoch: 2, since: 1)))
        #expect(talk.events == [.waitingEnded(.network), .stateChanged(.loaded)])
        _ = talk.at(2, .network(Dialogue.offline(epoch: 2, since: 2)))
        #expect(talk.events.suffix(2) == [.waitingBegan(Wait(.network)), .stateChanged(.waiting(Wait(.network)))])
        let count = talk.events.count
        _ = talk.at(3, .network(Dialogue.offline(epoch: 2, since: 3)))
        #expect(talk.events.count == count)
    }

    @Test("what was remembered by the wall clock is brought onto boot time")
    func memory() {
        let now = Dialogue.instant(0)
        func memory(_ remembered: PersistentState) -> StoredRefreshState {
            StoredRefreshState(remembered, now: now, wallNow: 1_000_000_000, tolerance: .seconds(60))
        }
        #expect(memory(PersistentState(lastCheck: 980_000_000)).lastCheck == Dialogue.instant(-20))
        #expect(memory(PersistentState(lastCheck: 1_060_000_000)).lastCheck == now)
        #expect(memory(PersistentState(lastCheck: 1_060_000_001)).lastCheck == nil)
        #expect(memory(PersistentState(lastCheck: .max)).lastCheck == nil)
        #expect(memory(PersistentState(retryAfter: 1_030_000_000)).retryAfter == Dialogue.instant(30))
        #expect(memory(PersistentState(retryAfter: 900_000_000)).retryAfter == nil)
        #expect(memory(PersistentState(retryAfter: .max)).retryAfter == now.advanced(by: Backoff.longestRetryAfter))
        #expect(memory(PersistentState(lastRun: 8)).lastRun == 8)
    }

    @Test("a reboot loop costs one request")
    func rebootLoop() {
        var requests = 0
        var lastCheck: Double?
        for boot in 0..<20 {
            let talk = Dialogue(
                policy, network: Dialogue.offline(), lastCheck: lastCheck.map { $0 - Double(boot) })
            var deeds = talk.at(0.1, .hears("start", at: 0.1))
            deeds += talk.at(0.3, .network(Dialogue.online(epoch: 2, since: 0.3)), .hears("network", at: 0.3))
            for case .starts(let run, _) in deeds {
                requests += 1
                _ = talk.at(0.4, .succeeds(run))
                lastCheck = Double(boot)
            }
            #expect(talk.pass(until: 1) == [])
        }
        #expect(requests == 1)
    }
}
