import Testing

@testable import FreshetPipelines

@Suite("Further pages on demand: when they are asked for, and what ends that")
struct LoadMoreTests {
    typealias Event = RefreshMachine.Event

    let policy = RefreshPolicy(
        every: .seconds(600), minInterval: .seconds(100), freshFor: .seconds(60), deadline: .seconds(30),
        retry: RetryPolicy(from: .seconds(8), to: .seconds(8)))

    private func more(_ request: UInt64?, _ place: String...) -> Event { .loadMore(request: request, place: place) }

    /// A pipeline that was checked at 1.
    private func checked(_ policy: RefreshPolicy? = nil) -> Dialogue {
        let talk = Dialogue(policy ?? self.policy)
        _ = talk.at(0, .refresh(request: nil, force: false))
        _ = talk.at(1, .succeeds(1))
        return talk
    }

    @Test("it runs at once, whatever min-interval says, and leaves alone what tells when the next check comes")
    func runs() {
        let talk = checked()
        let next = talk.nextRun
        #expect(talk.at(5, more(1, "comedy")) == [.starts(2, ["operator"])])
        #expect(talk.orders.last?.reason == .loadMore(["comedy"]))
        #expect(talk.orders.last?.causes.first?.detail == "load-more comedy")
        #expect(talk.activity == .loading(LoadProgress()))
        #expect(talk.at(7, .succeeds(2)) == [.answers(1, .changed)])
        #expect(talk.nextRun == next)
        #expect(talk.machine.lastSuccess == Dialogue.instant(1))
        #expect(talk.machine.lastStart == Dialogue.instant(0))
        #expect(talk.pass(until: 601).map(\.deed) == [.starts(3, ["timer"])])
    }

    @Test("who wants what is being loaded gets that; what is wanted before is one; another place comes after it")
    func coalesces() {
        let talk = checked()
        #expect(talk.at(5, more(1, "a")) == [.starts(2, ["operator"])])
        #expect(talk.at(6, more(2, "a"), more(3, "b"), more(4, "b"), more(nil, "b")) == [])
        #expect(
            talk.at(7, .succeeds(2)) == [.answers(1, .changed), .answers(2, .changed), .starts(3, ["operator"])])
        #expect(talk.orders.last?.reason == .loadMore(["b"]))
        #expect(talk.orders.last?.causes.first?.count == 3)
        #expect(talk.at(8, .succeeds(3)) == [.answers(3, .changed), .answers(4, .changed)])
    }

    @Test("so many places and no more can be wanted at once")
    func limit() {
        let talk = checked()
        talk.grantsSlots = false
        for place in 0..<RefreshMachine.mostMore { #expect(talk.at(5, more(UInt64(place), "\(place)")) == []) }
        #expect(talk.at(5, more(1000, "0")) == [])
        #expect(talk.at(5, more(1001, "x")) == [.refuses(1001, .crowded(limit: RefreshMachine.mostMore))])
    }

    @Test("a failure is told, begins no series, and is not tried again; Retry-After is heeded")
    func fails() {
        let talk = checked()
        let next = talk.nextRun
        _ = talk.at(5, more(1))
        #expect(talk.at(6, .fails(2, .transient)) == [.answers(1, .failed)])
        #expect(talk.machine.failing == nil)
        #expect(talk.activity == .loaded)
        #expect(talk.summaries.last?.counts == false)
        #expect(talk.nextRun == next)
        _ = talk.at(7, more(2))
        let deeds = talk.at(8, .fails(3, .transient, retryAfter: .seconds(100)))
        #expect(deeds.contains { if case .remembersRetryAfter = $0 { true } else { false } })
        guard case .refuses(3, .retryAfter)? = talk.at(9, more(3)).first else {
            Issue.record("Retry-After is not heeded")
            return
        }
    }

    @Test("a check that may start ends it; one that is under way is waited for")
    func superseded() {
        let talk = checked()
        _ = talk.at(5, more(1, "a"))
        #expect(talk.at(6, .refresh(request: 2, force: false)) == [.cancels(2)])
        #expect(talk.at(6, more(3, "a")) == [])
        #expect(talk.at(7, .ended(run: 2, .cancelled)) == [.answers(1, .superseded), .starts(3, ["operator"])])
        #expect(talk.orders.last?.reason == .signals)
        #expect(talk.at(8, .succeeds(3)) == [.answers(2, .changed), .starts(4, ["operator"])])
        #expect(talk.at(9, .succeeds(4)) == [.answers(3, .changed)])
        // Also the one by the clock.
        _ = talk.at(607, more(5, "a"))
        #expect(talk.pass(until: 608).map(\.deed) == [.cancels(5)])
        #expect(talk.at(609, .ended(run: 5, .cancelled)) == [.answers(5, .superseded), .starts(6, ["timer"])])
    }

    @Test("when-running: restart does not end it for what may not start yet")
    func restart() {
        var policy = self.policy
        policy.whenRunning = .restart
        policy.deadline = .zero
        // For want of min-interval.
        let early = checked(policy)
        _ = early.at(5, more(1))
        #expect(early.at(6, .hears("file", at: 6)) == [])
        #expect(early.pass(until: 99).map(\.deed).contains(.cancels(2)) == false)
        #expect(early.at(99.5, .succeeds(2)) == [.answers(1, .changed)])
        #expect(early.pass(until: 101).map(\.deed) == [.starts(3, ["file"])])
        // While it is held; and a check that is under way then is left alone, too.
        let held = checked(policy)
        _ = held.at(5, more(1))
        #expect(held.at(200, .held(true)) == [])
        #expect(held.at(201, .hears("file", at: 201)) == [])
        #expect(held.pass(until: 240) == [])
        #expect(held.at(241, .succeeds(2)) == [.answers(1, .changed)])
        #expect(held.at(242, .held(false)) == [.starts(3, ["file"])])
        #expect(held.at(243, .held(true)) == [])
        #expect(held.at(244, .hears("file", at: 244)) == [])
        #expect(held.pass(until: 260) == [])
        // What may start ends it.
        let free = checked(policy)
        _ = free.at(150, more(1))
        #expect(free.at(151, .hears("file", at: 151)) == [.cancels(2)])
        #expect(free.at(152, .ended(run: 2, .cancelled)) == [.answers(1, .superseded), .starts(3, ["file"])])
    }

    @Test("one that is begun anew and what was asked for the same place meanwhile are one")
    func again() {
        let talk = checked()
        _ = talk.at(5, more(1, "a"))
        #expect(talk.at(6, .network(Dialogue.online("b", epoch: 2, since: 6))) == [.cancels(2)])
        #expect(talk.at(7, more(2, "b"), more(3, "a")) == [])
        #expect(talk.at(8, .ended(run: 2, .cancelled)) == [.starts(3, ["operator"])])
        #expect(talk.orders.last?.reason == .loadMore(["a"]))
        #expect(talk.orders.last?.causes.first?.count == 2)
        #expect(
            talk.at(9, .succeeds(3)) == [.answers(1, .changed), .answers(3, .changed), .starts(4, ["operator"])])
        #expect(talk.at(10, .succeeds(4)) == [.answers(2, .changed)])
        #expect(talk.machine.more.isEmpty)
    }

    @Test("one that would be begun anew while it is held is refused")
    func heldAgain() {
        let talk = checked()
        _ = talk.at(5, more(1, "a"))
        #expect(talk.at(6, .network(Dialogue.online("b", epoch: 2, since: 6))) == [.cancels(2)])
        #expect(talk.at(7, .held(true)) == [])
        #expect(talk.at(8, .ended(run: 2, .cancelled)) == [.refuses(1, .held)])
        #expect(talk.at(9, .held(false)) == [])
    }

    @Test("a retry that is due ends it, and its back-off is as it was")
    func backOff() throws {
        let talk = Dialogue(
            RefreshPolicy(freshFor: .zero, retry: RetryPolicy(from: .seconds(8), to: .seconds(8))))
        _ = talk.at(0, .hears("file", at: 0))
        _ = talk.at(1, .fails(1, .transient))
        let due = try #require(talk.nextRun).at
        _ = talk.at(1, more(1, "a"))
        #expect(talk.orders.last?.run == 2)
        #expect(talk.machine.failing?.attempts == 1)
        let moments = talk.pass(until: 10)
        #expect(moments == [.init(at: Dialogue.seconds(due), deed: .cancels(2))])
        #expect(talk.at(10, .ended(run: 2, .cancelled)) == [.answers(1, .superseded), .starts(3, ["file"])])
    }

    @Test("without a network it is refused at once; one that loses it is refused, one whose path changes is begun anew")
    func network() {
        let talk = checked()
        _ = talk.at(5, .network(Dialogue.offline(epoch: 2, since: 5)))
        #expect(talk.at(6, more(1)) == [.refuses(1, .network(nil))])
        _ = talk.at(70, .network(Dialogue.online(epoch: 3, since: 70)))
        #expect(talk.at(71, more(2)) == [.starts(2, ["operator"])])
        #expect(talk.at(72, .network(Dialogue.online("b", epoch: 4, since: 72))) == [.cancels(2)])
        #expect(talk.at(73, .ended(run: 2, .cancelled)) == [.starts(3, ["operator"])])
        #expect(talk.orders.last?.epoch == 4)
        #expect(talk.at(74, .network(Dialogue.offline(epoch: 5, since: 74))) == [.cancels(3)])
        #expect(talk.at(75, .ended(run: 3, .cancelled)) == [.refuses(2, .network(nil))])
    }

    @Test("held, over budget, late or stopped: each has its answer")
    func others() {
        let held = checked()
        held.grantsSlots = false
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
        #expect(late.pass(until: 35).map(\.deed) == [.cancels(2)])
        #expect(late.at(36, .ended(run: 2, .cancelled)) == [.answers(1, .failed)])
        #expect(late.summaries.last?.failure?.kind == .deadline)

        let stopped = checked()
        _ = stopped.at(5, more(1, "a"), more(2, "b"))
        #expect(stopped.at(6, .stopped) == [.stops(2), .cancels(2)])
        #expect(stopped.at(7, .ended(run: 2, .cancelled)) == [.stops(1)])
        #expect(stopped.at(8, more(3)) == [.stops(3)])
    }

    @Test("it is asked for with the values that the copy was made with")
    func parameters() {
        let values = ParameterValues(["q": "jazz"])
        let talk = Dialogue(RefreshPolicy(freshFor: .zero), lastCheck: -5, parameters: values)
        _ = talk.at(1, .parameters(ParameterValues(["q": "rock"]), quiet: .seconds(5)))
        _ = talk.at(2, more(1))
        #expect(talk.orders.last?.parameters == values)
        #expect(talk.pass(until: 6).map(\.deed) == [.cancels(1)])
        #expect(talk.at(7, .succeeds(1)) == [.answers(1, .superseded), .starts(2, ["parameter"])])
    }

    @Test("another configuration is as it would be without one under way")
    func reconfigured() {
        let talk = checked()
        _ = talk.at(5, more(1))
        var policy = self.policy
        policy.every = .seconds(100)
        _ = talk.at(6, .reconfigured(RefreshSettings(policy: policy, needsNetwork: true), sameProduct: true))
        #expect(talk.at(7, .succeeds(2)) == [.answers(1, .changed)])
        #expect(talk.nextRun?.at == Dialogue.instant(101))
    }

    @Test("a proof is sought for it, and it is refused with what came instead")
    func proof() {
        let probe = NetworkProbe(url: "http://probe.example/", host: "probe.example")
        var policy = self.policy
        policy.needsNetwork = .probe(probe)
        let talk = Dialogue(policy, lastCheck: -5)
        #expect(talk.at(1, more(1)) == [.seeksProof(epoch: 1)])
        let deeds = talk.at(2, .proof(.refused("a portal answered")))
        #expect(deeds.contains(.refuses(1, .network("a portal answered"))))
        #expect(talk.at(3, more(2)) == [.seeksProof(epoch: 1)])
        #expect(
            talk.at(4, .proof(.proven(epoch: 1, until: Dialogue.instant(30)))).contains(.starts(1, ["operator"])))
    }
}
