import FreshetModel
import Testing

@testable import FreshetPipelines

@Suite("Further pages on demand: when they are requested, and what ends a request")
struct LoadMoreTests {
    typealias Event = RefreshMachine.Event

    let policy = RefreshPolicy(
        every: .seconds(600), minInterval: .seconds(100), freshFor: .seconds(60), deadline: .seconds(30),
        retry: RetryPolicy(from: .seconds(8), to: .seconds(8)))

    private func more(_ request: UInt64?, _ place: String...) -> Event { .loadMore(request: request, place: place) }

    /// A pipeline that was checked at 1.
    private func checked(_ policy: RefreshPolicy? = nil) -> Dialogue {
        let dialogue = Dialogue(policy ?? self.policy)
        _ = dialogue.at(0, .refresh(request: nil, force: false))
        _ = dialogue.at(1, .succeeds(1))
        return dialogue
    }

    @Test("it runs immediately, ignores min-interval, and does not change when the next check comes")
    func runs() {
        let dialogue = checked()
        let next = dialogue.nextRun
        #expect(dialogue.at(5, more(1, "comedy")) == [.starts(2, ["operator"])])
        #expect(dialogue.orders.last?.reason == .loadMore(["comedy"]))
        #expect(dialogue.orders.last?.causes.first?.detail == "load-more comedy")
        #expect(dialogue.activity == .loading(LoadProgress()))
        #expect(dialogue.at(7, .succeeds(2)) == [.answers(1, .changed)])
        #expect(dialogue.nextRun == next)
        #expect(dialogue.machine.schedule.lastSuccess == Dialogue.instant(1))
        #expect(dialogue.machine.runs.lastStart == Dialogue.instant(0))
        #expect(dialogue.pass(until: 601).map(\.output) == [.starts(3, ["timer"])])
    }

    @Test(
        "a request for the page in progress shares its result; equal requests merge; another place comes later"
    )
    func coalesces() {
        let dialogue = checked()
        #expect(dialogue.at(5, more(1, "a")) == [.starts(2, ["operator"])])
        #expect(dialogue.at(6, more(2, "a"), more(3, "b"), more(4, "b"), more(nil, "b")) == [])
        #expect(
            dialogue.at(7, .succeeds(2)) == [.answers(1, .changed), .answers(2, .changed), .starts(3, ["operator"])])
        #expect(dialogue.orders.last?.reason == .loadMore(["b"]))
        #expect(dialogue.orders.last?.causes.first?.count == 3)
        #expect(dialogue.at(8, .succeeds(3)) == [.answers(3, .changed), .answers(4, .changed)])
    }

    @Test("a limited number of places can be requested at the same time")
    func limit() {
        let dialogue = checked()
        dialogue.grantsPermits = false
        for place in 0..<LoadMoreMachine.limit { #expect(dialogue.at(5, more(UInt64(place), "\(place)")) == []) }
        #expect(dialogue.at(5, more(1000, "0")) == [])
        #expect(
            dialogue.at(5, more(1001, "x")) == [.refuses(1001, .tooManyRequests(limit: LoadMoreMachine.limit))])
    }

    @Test("a failure is reported, begins no backoff, and is not retried; Retry-After is honoured")
    func fails() {
        let dialogue = checked()
        let next = dialogue.nextRun
        _ = dialogue.at(5, more(1))
        #expect(dialogue.at(6, .fails(2, .transient)) == [.answers(1, .failed)])
        #expect(dialogue.machine.schedule.failing == nil)
        #expect(dialogue.activity == .loaded)
        #expect(dialogue.summaries.last?.counts == false)
        #expect(dialogue.nextRun == next)
        _ = dialogue.at(7, more(2))
        let outputs = dialogue.at(8, .fails(3, .transient, retryAfter: .seconds(100)))
        #expect(outputs.contains { if case .remembersRetryAfter = $0 { true } else { false } })
        guard case .refuses(3, .retryAfter)? = dialogue.at(9, more(3)).first else {
            Issue.record("Retry-After is not heeded")
            return
        }
    }

    @Test("a check that may start ends it; a check in progress is awaited")
    func superseded() {
        let dialogue = checked()
        _ = dialogue.at(5, more(1, "a"))
        #expect(dialogue.at(6, .refresh(request: 2, force: false)) == [.cancels(2)])
        #expect(dialogue.at(6, more(3, "a")) == [])
        #expect(dialogue.at(7, .ended(run: 2, .cancelled)) == [.answers(1, .superseded), .starts(3, ["operator"])])
        #expect(dialogue.orders.last?.reason == .signals)
        #expect(dialogue.at(8, .succeeds(3)) == [.answers(2, .changed), .starts(4, ["operator"])])
        #expect(dialogue.at(9, .succeeds(4)) == [.answers(3, .changed)])
        // The planned check too.
        _ = dialogue.at(607, more(5, "a"))
        #expect(dialogue.pass(until: 608).map(\.output) == [.cancels(5)])
        #expect(dialogue.at(609, .ended(run: 5, .cancelled)) == [.answers(5, .superseded), .starts(6, ["timer"])])
    }

    @Test("when-running: restart does not end it for a check that may not start yet")
    func restart() {
        var policy = self.policy
        policy.whenRunning = .restart
        policy.deadline = .zero
        // Because of min-interval.
        let early = checked(policy)
        _ = early.at(5, more(1))
        #expect(early.at(6, .receives("file", at: 6)) == [])
        #expect(early.pass(until: 99).map(\.output).contains(.cancels(2)) == false)
        #expect(early.at(99.5, .succeeds(2)) == [.answers(1, .changed)])
        #expect(early.pass(until: 101).map(\.output) == [.starts(3, ["file"])])
        // While the pipeline is held; a check in progress is not ended either.
        let held = checked(policy)
        _ = held.at(5, more(1))
        #expect(held.at(200, .held(true)) == [])
        #expect(held.at(201, .receives("file", at: 201)) == [])
        #expect(held.pass(until: 240) == [])
        #expect(held.at(241, .succeeds(2)) == [.answers(1, .changed)])
        #expect(held.at(242, .held(false)) == [.starts(3, ["file"])])
        #expect(held.at(243, .held(true)) == [])
        #expect(held.at(244, .receives("file", at: 244)) == [])
        #expect(held.pass(until: 260) == [])
        // A check that may start ends it.
        let free = checked(policy)
        _ = free.at(150, more(1))
        #expect(free.at(151, .receives("file", at: 151)) == [.cancels(2)])
        #expect(free.at(152, .ended(run: 2, .cancelled)) == [.answers(1, .superseded), .starts(3, ["file"])])
    }

    @Test("a repeated request and later requests for the same place are merged")
    func again() {
        let dialogue = checked()
        _ = dialogue.at(5, more(1, "a"))
        #expect(dialogue.at(6, .network(Dialogue.online("b", epoch: 2, since: 6))) == [.cancels(2)])
        #expect(dialogue.at(7, more(2, "b"), more(3, "a")) == [])
        #expect(dialogue.at(8, .ended(run: 2, .cancelled)) == [.starts(3, ["operator"])])
        #expect(dialogue.orders.last?.reason == .loadMore(["a"]))
        #expect(dialogue.orders.last?.causes.first?.count == 2)
        #expect(
            dialogue.at(9, .succeeds(3)) == [.answers(1, .changed), .answers(3, .changed), .starts(4, ["operator"])])
        #expect(dialogue.at(10, .succeeds(4)) == [.answers(2, .changed)])
        #expect(dialogue.machine.more.isEmpty)
    }

    @Test("a request that would be repeated while the pipeline is held is refused")
    func heldAgain() {
        let dialogue = checked()
        _ = dialogue.at(5, more(1, "a"))
        #expect(dialogue.at(6, .network(Dialogue.online("b", epoch: 2, since: 6))) == [.cancels(2)])
        #expect(dialogue.at(7, .held(true)) == [])
        #expect(dialogue.at(8, .ended(run: 2, .cancelled)) == [.refuses(1, .held)])
        #expect(dialogue.at(9, .held(false)) == [])
    }

    @Test("a due retry ends it, and the retry's backoff is unchanged")
    func backoff() throws {
        let dialogue = Dialogue(
            RefreshPolicy(freshFor: .zero, retry: RetryPolicy(from: .seconds(8), to: .seconds(8))))
        _ = dialogue.at(0, .receives("file", at: 0))
        _ = dialogue.at(1, .fails(1, .transient))
        let due = try #require(dialogue.nextRun).at
        _ = dialogue.at(1, more(1, "a"))
        #expect(dialogue.orders.last?.run == 2)
        #expect(dialogue.machine.schedule.failing?.attempts == 1)
        let moments = dialogue.pass(until: 10)
        #expect(moments == [.init(at: Dialogue.seconds(due), output: .cancels(2))])
        #expect(dialogue.at(10, .ended(run: 2, .cancelled)) == [.answers(1, .superseded), .starts(3, ["file"])])
    }

    @Test("without a network it is refused immediately; on a loss it is refused, on another path it is repeated")
    func network() {
        let dialogue = checked()
        _ = dialogue.at(5, .network(Dialogue.offline(epoch: 2, since: 5)))
        #expect(dialogue.at(6, more(1)) == [.refuses(1, .network(nil))])
        _ = dialogue.at(70, .network(Dialogue.online(epoch: 3, since: 70)))
        #expect(dialogue.at(71, more(2)) == [.starts(2, ["operator"])])
        #expect(dialogue.at(72, .network(Dialogue.online("b", epoch: 4, since: 72))) == [.cancels(2)])
        #expect(dialogue.at(73, .ended(run: 2, .cancelled)) == [.starts(3, ["operator"])])
        #expect(dialogue.orders.last?.epoch == 4)
        #expect(dialogue.at(74, .network(Dialogue.offline(epoch: 5, since: 74))) == [.cancels(3)])
        #expect(dialogue.at(75, .ended(run: 3, .cancelled)) == [.refuses(2, .network(nil))])
    }

    @Test("held, over budget, late or stopped: each request has its answer")
    func others() {
        let held = checked()
        held.grantsPermits = false
        #expect(held.at(5, more(1, "a")) == [])
        #expect(held.at(6, .held(true)) == [.refuses(1, .held)])
        #expect(held.at(6, more(2, "a")) == [.refuses(2, .held)])

        var policy = self.policy
        policy.budget = RequestBudget(2, per: .hour)
        let spent = checked(policy)
        #expect(spent.at(5, more(1)) == [.starts(2, ["operator"])])
        #expect(spent.orders.last?.allowance == 1)
        #expect(spent.at(6, .succeeds(2)) == [.answers(1, .changed)])
        guard case .refuses(2, .budget)? = spent.at(7, more(2)).first else {
            Issue.record("the budget does not hold")
            return
        }

        let late = checked()
        _ = late.at(5, more(1))
        #expect(late.pass(until: 35).map(\.output) == [.cancels(2)])
        #expect(late.at(36, .ended(run: 2, .cancelled)) == [.answers(1, .failed)])
        #expect(late.summaries.last?.failure?.kind == .deadline)

        let stopped = checked()
        _ = stopped.at(5, more(1, "a"), more(2, "b"))
        #expect(stopped.at(6, .stopped) == [.stops(2), .cancels(2)])
        #expect(stopped.at(7, .ended(run: 2, .cancelled)) == [.stops(1)])
        #expect(stopped.at(8, more(3)) == [.stops(3)])
    }

    @Test("it uses the values that the copy was made with")
    func parameters() {
        let values = ParameterValues(["q": "jazz"])
        let dialogue = Dialogue(RefreshPolicy(freshFor: .zero), lastCheck: -5, parameters: values)
        _ = dialogue.at(1, .parameters(ParameterValues(["q": "rock"]), quiet: .seconds(5)))
        _ = dialogue.at(2, more(1))
        #expect(dialogue.orders.last?.parameters == values)
        #expect(dialogue.pass(until: 6).map(\.output) == [.cancels(1)])
        #expect(dialogue.at(7, .succeeds(1)) == [.answers(1, .superseded), .starts(2, ["parameter"])])
    }

    @Test("another configuration acts as it would without a request")
    func reconfigured() {
        let dialogue = checked()
        _ = dialogue.at(5, more(1))
        var policy = self.policy
        policy.every = .seconds(100)
        _ = dialogue.at(6, .reconfigured(RefreshSettings(policy: policy, needsNetwork: true), sameProduct: true))
        #expect(dialogue.at(7, .succeeds(2)) == [.answers(1, .changed)])
        #expect(dialogue.nextRun?.at == Dialogue.instant(101))
    }

    @Test("a proof is requested for it, and it is refused with the reason")
    func proof() {
        let probe = NetworkProbe(url: "http://probe.example/", host: "probe.example")
        var policy = self.policy
        policy.needsNetwork = .probe(probe)
        let dialogue = Dialogue(policy, lastCheck: -5)
        #expect(dialogue.at(1, more(1)) == [.seeksProof(epoch: 1)])
        let outputs = dialogue.at(2, .proof(.refused("a portal answered")))
        #expect(outputs.contains(.refuses(1, .network("a portal answered"))))
        #expect(dialogue.at(3, more(2)) == [.seeksProof(epoch: 1)])
        #expect(
            dialogue.at(4, .proof(.proven(epoch: 1, until: Dialogue.instant(30)))).contains(.starts(1, ["operator"])))
    }
}
