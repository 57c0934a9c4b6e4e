import Testing

@testable import FreshetPipelines

/// Whatever happens in whatever order, some things hold.
@Suite("In any course of events")
struct AnyCourseTests {
    /// Throws dice over what happens next, and keeps account of what must hold.
    private final class Course {
        let talk: Dialogue
        var dice: Jitter
        var running: UInt64?
        /// Its deadline may be found to have passed when its end is told.
        var ending: UInt64?
        var lastDemand: Double?
        var answered: Set<UInt64> = []
        var asked: UInt64 = 0
        var lastSuccessfulStart = -1.0
        var starts: [UInt64: Double] = [:]
        var reachable = true
        var epoch: UInt64 = 1
        var asleep = false
        var held = false
        /// When the origin may be asked again, as far as it said so.
        var aloneUntil = 0.0
        /// The places of further pages that are wanted.
        var wanted: Set<[String]> = []
        /// The values of the last check.
        var tried: ParameterValues?
        /// The place of the page that is being loaded.
        var loading: [String]?
        var values = Course.values(0)
        /// Of the last success.
        var loaded: ParameterValues?

        static func values(_ number: Int) -> ParameterValues { ParameterValues(["query": "\(number)"]) }

        init(_ policy: RefreshPolicy, splay: Duration, seed: UInt64) {
            dice = Jitter(seed: seed)
            talk = Dialogue(policy, splay: splay, parameters: values, seed: seed)
        }

        func account(_ deeds: [Dialogue.Permission], at second: Double) {
            for deed in deeds {
                switch deed {
                case .starts(let run, let causes):
                    #expect(running == nil, "two runs at once")
                    #expect(!causes.isEmpty, "a run without a cause")
                    #expect(!asleep, "a run while the machine is about to sleep")
                    #expect(!held, "a run while it is held")
                    running = run
                    if case .loadMore(let place)? = talk.orders.last?.reason {
                        startsMore(at: place, causes, second)
                    } else {
                        #expect(talk.orders.last?.parameters == values, "a run with values of the past")
                        tried = talk.orders.last?.parameters
                        starts[run] = second
                    }
                case .cancels(let run):
                    #expect(running == run || ending == run, "a cancelled run that is not under way")
                case .answers(let request, _), .refuses(let request, _), .stops(let request):
                    #expect(answered.insert(request).inserted, "answered twice")
                case .remembersRetryAfter(let until): aloneUntil = until ?? 0
                case .seeksProof: break
                case .withdraws, .putsBack: Issue.record("a pipeline that withdraws nothing")
                }
            }
        }

        /// A further page is asked for: by what holds for every request, of the copy that is there.
        private func startsMore(at place: [String], _ causes: [String], _ second: Double) {
            #expect(wanted.contains(place), "a page that nobody wants")
            #expect(causes == [SignalName.operation])
            #expect(reachable, "a page without a network")
            #expect(second >= aloneUntil, "a page although the origin wants to be left alone")
            #expect(talk.orders.last?.parameters == tried ?? Self.values(0), "a page of another copy")
            wanted.remove(place)
            loading = place
        }

        /// What tells when the next check comes.
        private struct Checks: Equatable {
            var lastSuccess, confirmed, lastStart: ContinuousClock.Instant?
            var failing: OngoingFailure?
            var superseded: Int

            init(_ machine: RefreshMachine) {
                lastSuccess = machine.lastSuccess
                confirmed = machine.confirmed
                lastStart = machine.lastStart
                failing = machine.failing
                superseded = machine.superseded
            }
        }

        func end(_ result: RunResult) {
            guard let run = running else { return }
            running = nil
            ending = run
            let (place, before, orders) = (loading, Checks(talk.machine), talk.orders.count)
            loading = nil
            if case .succeeded = result, place == nil {
                lastSuccessfulStart = starts[run] ?? -1
                loaded = talk.orders.last?.parameters
            }
            // Where the network was lost meanwhile the page is asked for once more.
            if let place { wanted.insert(place) }
            account(talk.at(talk.now, .ended(run: run, result)), at: talk.now)
            guard let place else { return }
            if loading != place, !talk.machine.more.contains(where: { $0.place == place }) { wanted.remove(place) }
            if talk.orders[orders...].allSatisfy(\.reason.isLoadMore) {
                #expect(Checks(talk.machine) == before, "a further page is taken for a check")
            }
        }

        func pass(_ seconds: Double) {
            for moment in talk.pass(until: talk.now + seconds) { account([moment.deed], at: moment.at) }
        }

        func say(_ events: Dialogue.Event...) {
            for event in events { account(talk.at(talk.now, event), at: talk.now) }
        }

        func throwDice() {
            let now = talk.now
            switch Int.random(in: 0..<26, using: &dice) {
            case 0: say(.hears("network", at: now))
            case 1: say(.hears("resume", at: now))
            case 2, 3:
                lastDemand = now
                say(.hears("file", at: now))
            case 4:
                asked += 1
                say(.refresh(request: asked, force: Bool.random(using: &dice)))
            case 5, 6:
                reachable.toggle()
                epoch += 1
                let path = Bool.random(using: &dice) ? "a" : "b"
                say(
                    .network(
                        NetworkState(
                            reachable: reachable, epoch: epoch, changedAt: Dialogue.instant(now), path: path)))
            case 7: end(.succeeded(changed: true, generation: 1))
            case 8: end(.failed(RunFailure(.connection, "no")))
            case 9: end(.failed(RunFailure(.transient, "no", retryAfter: .seconds(5))))
            case 10:
                let isCheck = Bool.random(using: &dice)
                end(.failed(isCheck ? RunFailure(.content, "no", refusal: .lasting) : RunFailure(.refused, "no")))
            case 11: end(.cancelled)
            case 12:
                held = Bool.random(using: &dice)
                say(.held(held))
            case 13:
                asleep = true
                say(.goesToSleep(true))
            case 14, 15: wake()
            case 16: say(.clockStepped(StoredRefreshState(lastCheck: Dialogue.instant(now - 100), hasGeneration: true)))
            case 17, 18:
                values = Self.values(Int.random(in: 0..<3, using: &dice))
                say(.parameters(values, quiet: .milliseconds(Int.random(in: 0..<3, using: &dice) * 400)))
            case 19, 20, 21: wantMore()
            default: pass(Double(Int.random(in: 0..<4000, using: &dice)) / 1000)
            }
        }

        /// By one or several at once, who want an answer or none.
        func wantMore() {
            for _ in 0..<Int.random(in: 1...3, using: &dice) {
                let place = [[], ["a"], ["b", "c"]][Int.random(in: 0..<3, using: &dice)]
                let isAsked = Bool.random(using: &dice)
                if isAsked { asked += 1 }
                wanted.insert(place)
                say(.loadMore(request: isAsked ? asked : nil, place: place))
                // Refused, or with others who wait already.
                if loading != place, !talk.machine.more.contains(where: { $0.place == place }) { wanted.remove(place) }
            }
        }

        /// As the daemon tells it: the wake, its signal, and the new epoch's fact.
        func wake() {
            asleep = false
            epoch += 1
            let now = talk.now
            let fact = NetworkState(
                reachable: reachable, epoch: epoch, changedAt: Dialogue.instant(now), path: "a")
            account(talk.at(now, .woke, .hears("resume", at: now)), at: now)
            say(.network(fact))
        }

        /// All is well from now on: whatever was asked for comes about.
        func settle() {
            held = false
            say(.held(false))
            asleep = false
            say(.goesToSleep(false))
            epoch += 1
            say(.network(Dialogue.online(epoch: epoch, since: talk.now)))
            for _ in 0..<100 {
                end(.succeeded(changed: true, generation: 1))
                pass(200)
            }
        }
    }

    @Test(
        "runs are one at a time, requests are answered once, demands are followed, and rest is rest", arguments: 0..<200
    )
    func holds(_ seed: Int) {
        let seed = UInt64(seed)
        let policy = RefreshPolicy(
            minInterval: seed % 3 == 0 ? .seconds(3) : .zero, whenRunning: seed % 2 == 0 ? .queue : .restart,
            freshFor: seed % 5 == 0 ? .seconds(60) : .zero, deadline: .seconds(30))
        let course = Course(policy, splay: seed % 7 == 0 ? .seconds(4) : .zero, seed: seed)
        for _ in 0..<400 { course.throwDice() }
        course.settle()
        #expect(course.running == nil)
        #expect(course.talk.machine.more.isEmpty)
        #expect(course.answered.count == Int(course.asked))
        if let lastDemand = course.lastDemand { #expect(course.lastSuccessfulStart >= lastDemand) }
        #expect(course.talk.activity == .loaded)
        #expect(course.loaded == course.values, "the copy is that of the values that are set")
        #expect(course.talk.wake == nil, "nothing is left to wake for")
        #expect(course.talk.slotRequests.count == course.talk.slotReleases.count)
    }
}
