import FreshetModel
import Testing
import WorldTestSupport

@testable import FreshetPipelines

@Suite("Planned checks, the operator, and the visible state")
struct PlanTests {
    let policy = RefreshPolicy(every: .seconds(900), freshFor: .seconds(60))

    @Test("every counts from the last successful check, with this host's delay")
    func every() {
        let dialogue = Dialogue(policy, plannedDelay: .seconds(7))
        _ = dialogue.at(0, .receives("start", at: 0))
        _ = dialogue.at(3, .ended(run: 1, .succeeded(changed: false, generation: 1)))
        #expect(dialogue.nextRun == PlannedRun(at: Dialogue.instant(910), reason: .timer))
        #expect(dialogue.pass(until: 1000) == [.init(at: 910, output: .starts(2, ["timer"]))])
    }

    @Test("a check for another cause moves the next planned one")
    func moves() {
        let dialogue = Dialogue(policy, lastCheck: 0)
        _ = dialogue.at(500, .receives("file", at: 500))
        _ = dialogue.at(501, .succeeds(1))
        #expect(dialogue.wake == 1401)
    }

    @Test("the plan counts across restarts, and an overdue check lets the signal start come first")
    func restart() {
        #expect(Dialogue(policy, lastCheck: -600).wake == 300)
        let overdue = Dialogue(policy, lastCheck: -5000)
        #expect(overdue.at(0.1, .receives("start", at: 0.1)) == [.starts(1, ["start"])])
        let silent = Dialogue(policy, lastCheck: -5000)
        #expect(silent.pass(until: 10) == [.init(at: 2, output: .starts(1, ["timer"]))])
        let splayed = Dialogue(policy, splay: .seconds(100), lastCheck: -5000)
        #expect(splayed.pass(until: 200) == [.init(at: 102, output: .starts(1, ["timer"]))])
    }

    @Test("a planned check in a burst runs with the signals that are held, and does not prolong the burst")
    func burst() {
        let dialogue = Dialogue(policy, lastCheck: 0)
        _ = dialogue.at(10, .receives("file", at: 10))
        _ = dialogue.at(10.1, .succeeds(1))
        let settings = RefreshSettings(policy: policy, needsNetwork: true)
        _ = dialogue.at(11, .reconfigured(settings, sameProduct: false))
        #expect(dialogue.at(11.5, .receives("reload", at: 11.5)) == [])
        #expect(dialogue.pass(until: 30) == [.init(at: 13.5, output: .starts(2, ["reload", "timer"]))])
    }

    @Test("an overdue check after a long sleep fires once")
    func afterSleep() {
        let dialogue = Dialogue(policy, lastCheck: 0)
        #expect(dialogue.at(9000, .timer, .receives("resume", at: 9000)) == [.starts(1, ["timer", "resume"])])
        _ = dialogue.at(9001, .succeeds(1))
        #expect(dialogue.wake == 9901)
    }

    @Test("without every no check is planned and no timer is set")
    func never() {
        let dialogue = Dialogue(RefreshPolicy(), lastCheck: -5000)
        #expect(dialogue.wake == nil)
        #expect(dialogue.nextRun == nil)
    }

    @Test("every is prolonged by this pipeline's share of the random delay")
    func share() {
        let definition = PipelineDefinition(
            name: "p", source: .file("/x"), refresh: RefreshPolicy(randomDelay: .seconds(10)),
            cache: CacheRules(file: "p"))
        #expect(RefreshSettings(definition, share: 0).plannedDelay == .zero)
        #expect(RefreshSettings(definition, share: 0.25).plannedDelay == .seconds(2.5))
    }

    @Test("a request of the operator ignores the quiet period, min-interval, fresh-for and splay")
    func operation() {
        let dialogue = Dialogue(
            RefreshPolicy(minInterval: .seconds(60), freshFor: .seconds(60)), splay: .seconds(50), lastCheck: 0)
        _ = dialogue.at(0, .receives("file", at: 0))
        _ = dialogue.at(0.1, .succeeds(1))
        #expect(dialogue.at(0.2, .refresh(request: 1, force: false)) == [.starts(2, ["operator"])])
        #expect(
            dialogue.at(0.3, .ended(run: 2, .succeeded(changed: false, generation: 1))) == [.answers(1, .unchanged)])
    }

    @Test("the operator's signal acts like the request")
    func operatorSignal() {
        let dialogue = Dialogue(RefreshPolicy(freshFor: .seconds(60)), lastCheck: 0)
        #expect(dialogue.at(1, .receives("operator", at: 1)) == [.starts(1, ["operator"])])
    }

    @Test("a request waits for the first run that starts after it")
    func waitsForNext() {
        let dialogue = Dialogue(policy)
        _ = dialogue.at(0, .receives("start", at: 0))
        #expect(dialogue.at(1, .refresh(request: 1, force: false), .refresh(request: 2, force: false)) == [])
        #expect(dialogue.at(2, .succeeds(1)) == [.starts(2, ["operator"])])
        #expect(dialogue.at(3, .fails(2, .content)) == [.answers(1, .failed), .answers(2, .failed)])
    }

    @Test("a request waits for the run that superseded the first one")
    func waitsForSuperseding() {
        let dialogue = Dialogue(RefreshPolicy(quiet: .zero, whenRunning: .restart))
        _ = dialogue.at(0, .refresh(request: 1, force: false))
        #expect(dialogue.at(1, .receives("query", at: 1)) == [.cancels(1)])
        #expect(dialogue.at(2, .ended(run: 1, .cancelled)) == [.starts(2, ["operator", "query"])])
        #expect(dialogue.at(3, .succeeds(2)) == [.answers(1, .changed)])
    }

    @Test("the states idle, loading, loaded and failed")
    func activities() {
        let dialogue = Dialogue(RefreshPolicy())
        #expect(dialogue.activity == .idle)
        _ = dialogue.at(0, .receives("start", at: 0))
        #expect(dialogue.activity == .loading(LoadProgress()))
        _ = dialogue.at(1, .succeeds(1))
        #expect(dialogue.activity == .loaded)
        #expect(Dialogue(RefreshPolicy(), lastCheck: -1).activity == .loaded)
    }

    @Test("a copy is stale if it is older than fresh-for and its check is overdue or failed")
    func freshness() {
        let dialogue = Dialogue(policy, lastCheck: 0)
        _ = dialogue.at(0)
        #expect(dialogue.freshness == .fresh)
        _ = dialogue.at(800)
        #expect(dialogue.freshness == .fresh)
        #expect(dialogue.pass(until: 901).count == 1)
        #expect(dialogue.freshness == .stale)
        _ = dialogue.at(902, .succeeds(1))
        #expect(dialogue.freshness == .fresh)
        _ = dialogue.at(1000, .receives("file", at: 1000))
        _ = dialogue.at(1001, .fails(2, .content))
        #expect(dialogue.freshness == .stale)
        #expect(Dialogue(policy).freshness == nil)
    }

    @Test("the beginning and end of a wait are reported, and each state once")
    func reported() {
        let dialogue = Dialogue(RefreshPolicy(freshFor: .zero), network: Dialogue.offline(), lastCheck: -500)
        _ = dialogue.at(1, .network(Dialogue.online(epoch: 2, since: 1)))
        #expect(dialogue.events == [.waitingEnded(.network), .stateChanged(.loaded)])
        _ = dialogue.at(2, .network(Dialogue.offline(epoch: 2, since: 2)))
        #expect(dialogue.events.suffix(2) == [.waitingBegan(Wait(.network)), .stateChanged(.waiting(Wait(.network)))])
        let count = dialogue.events.count
        _ = dialogue.at(3, .network(Dialogue.offline(epoch: 2, since: 3)))
        #expect(dialogue.events.count == count)
    }

    @Test("stored wall-clock times are converted to boot time")
    func memory() {
        let now = Dialogue.instant(0)
        func memory(_ remembered: PersistentState) -> StoredRefreshState {
            StoredRefreshState(StoredTimes(remembered), now: now, wallNow: 1_000_000_000, tolerance: .seconds(60))
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
            let dialogue = Dialogue(
                policy, network: Dialogue.offline(), lastCheck: lastCheck.map { $0 - Double(boot) })
            var outputs = dialogue.at(0.1, .receives("start", at: 0.1))
            outputs += dialogue.at(0.3, .network(Dialogue.online(epoch: 2, since: 0.3)), .receives("network", at: 0.3))
            for case .starts(let run, _) in outputs {
                requests += 1
                _ = dialogue.at(0.4, .succeeds(run))
                lastCheck = Double(boot)
            }
            #expect(dialogue.pass(until: 1) == [])
        }
        #expect(requests == 1)
    }
}
