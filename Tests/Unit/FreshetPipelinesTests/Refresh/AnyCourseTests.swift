import FreshetModel
import Testing

@testable import FreshetPipelines

/// Some invariants hold for any order of events.
@Suite("In any course of events")
struct AnyCourseTests {
    /// Chooses random events, and tracks what must hold.
    private final class Course {
        let dialogue: Dialogue
        var dice: Jitter
        var running: UInt64?
        /// Its deadline may have passed when its end is reported.
        var ending: UInt64?
        var lastRequestSignal: Double?
        var answered: Set<UInt64> = []
        var lastRequest: UInt64 = 0
        var lastSuccessfulStart = -1.0
        var starts: [UInt64: Double] = [:]
        var reachable = true
        var epoch: UInt64 = 1
        var asleep = false
        var held = false
        /// When the origin may get requests again, as it said.
        var retryAfter = 0.0
        /// The places of requested further pages.
        var requestedPlaces: Set<[String]> = []
        /// The values of the last check.
        var tried: ParameterValues?
        /// The place of the page that is being loaded.
        var loading: [String]?
        var values = Course.values(0)
        /// The time of the last success.
        var loaded: ParameterValues?

        static func values(_ number: Int) -> ParameterValues { ParameterValues(["query": "\(number)"]) }

        init(_ policy: RefreshPolicy, splay: Duration, seed: UInt64) {
            dice = Jitter(seed: seed)
            dialogue = Dialogue(policy, splay: splay, parameters: values, seed: seed)
        }

        func account(_ outputs: [Dialogue.Output], at second: Double) {
            for output in outputs {
                switch output {
                case .starts(let run, let causes):
                    #expect(running == nil, "two runs at the same time")
                    #expect(!causes.isEmpty, "a run without a cause")
                    #expect(!asleep, "a run while the machine is about to sleep")
                    #expect(!held, "a run while it is held")
                    running = run
                    if case .loadMore(let place)? = dialogue.orders.last?.reason {
                        startsMore(at: place, causes, second)
                    } else {
                        #expect(dialogue.orders.last?.parameters == values, "a run with values of the past")
                        tried = dialogue.orders.last?.parameters
                        starts[run] = second
                    }
                case .cancels(let run):
                    #expect(running == run || ending == run, "a cancelled run that is not in progress")
                case .answers(let request, _), .refuses(let request, _), .stops(let request):
                    #expect(answered.insert(request).inserted, "answered twice")
                case .remembersRetryAfter(let until): retryAfter = until ?? 0
                case .seeksProof: break
                case .withdraws, .putsBack: Issue.record("a pipeline that withdraws nothing")
                }
            }
        }

        /// A further page is requested: by the rules for every request, and for the existing copy.
        private func startsMore(at place: [String], _ causes: [String], _ second: Double) {
            #expect(requestedPlaces.contains(place), "a page without a request")
            #expect(causes == [SignalName.operation])
            #expect(reachable, "a page without a network")
            #expect(second >= retryAfter, "a page in spite of Retry-After")
            #expect(dialogue.orders.last?.parameters == tried ?? Self.values(0), "a page of another copy")
            requestedPlaces.remove(place)
            loading = place
        }

        /// The state that decides when the next check comes.
        private struct Checks: Equatable {
            var lastSuccess, confirmed, lastStart: BootInstant?
            var failing: OngoingFailure?
            var superseded: Int

            init(_ machine: RefreshMachine) {
                lastSuccess = machine.schedule.lastSuccess
                confirmed = machine.schedule.confirmed
                lastStart = machine.runs.lastStart
                failing = machine.schedule.failing
                superseded = machine.runs.superseded
            }
        }

        func end(_ result: RunResult) {
            guard let run = running else { return }
            running = nil
            ending = run
            let (place, before, orders) = (loading, Checks(dialogue.machine), dialogue.orders.count)
            loading = nil
            if case .succeeded = result, place == nil {
                lastSuccessfulStart = starts[run] ?? -1
                loaded = dialogue.orders.last?.parameters
            }
            // If the network was lost meanwhile, the page is requested again.
            if let place { requestedPlaces.insert(place) }
            account(dialogue.at(dialogue.now, .ended(run: run, result)), at: dialogue.now)
            guard let place else { return }
            if loading != place, !dialogue.machine.more.waiting.contains(where: { $0.place == place }) {
                requestedPlaces.remove(place)
            }
            if dialogue.orders[orders...].allSatisfy(\.reason.isLoadMore) {
                #expect(Checks(dialogue.machine) == before, "a further page is taken for a check")
            }
        }

        func pass(_ seconds: Double) {
            for moment in dialogue.pass(until: dialogue.now + seconds) { account([moment.output], at: moment.at) }
        }

        func send(_ events: Dialogue.Event...) {
            for event in events { account(dialogue.at(dialogue.now, event), at: dialogue.now) }
        }

        func throwDice() {
            let now = dialogue.now
            switch Int.random(in: 0..<26, using: &dice) {
            case 0: send(.receives("network", at: now))
            case 1: send(.receives("resume", at: now))
            case 2, 3:
                lastRequestSignal = now
                send(.receives("file", at: now))
            case 4:
                lastRequest += 1
                send(.refresh(request: lastRequest, force: Bool.random(using: &dice)))
            case 5, 6:
                reachable.toggle()
                epoch += 1
                let path = Bool.random(using: &dice) ? "a" : "b"
                send(
                    .network(
                        NetworkState(
                            reachable: reachable, epoch: epoch, changedAt: Dialogue.instant(now), path: path)))
            case 7: end(.succeeded(changed: true, generation: 1))
            case 8: end(.failed(RunFailure(.connection, "no")))
            case 9: end(.failed(RunFailure(.transient, "no", retryAfter: .seconds(5))))
            case 10:
                let isCheck = Bool.random(using: &dice)
                end(.failed(isCheck ? RunFailure(.content, "no", rejection: .lasting) : RunFailure(.refused, "no")))
            case 11: end(.cancelled)
            case 12:
                held = Bool.random(using: &dice)
                send(.held(held))
            case 13:
                asleep = true
                send(.goesToSleep(true))
            case 14, 15: wake()
            case 16:
                send(.clockStepped(StoredRefreshState(lastCheck: Dialogue.instant(now - 100), hasGeneration: true)))
            case 17, 18:
                values = Self.values(Int.random(in: 0..<3, using: &dice))
                send(.parameters(values, quiet: .milliseconds(Int.random(in: 0..<3, using: &dice) * 400)))
            case 19, 20, 21: requestMore()
            default: pass(Double(Int.random(in: 0..<4000, using: &dice)) / 1000)
            }
        }

        /// By one or several clients at the same time, with or without an answer.
        func requestMore() {
            for _ in 0..<Int.random(in: 1...3, using: &dice) {
                let place = [[], ["a"], ["b", "c"]][Int.random(in: 0..<3, using: &dice)]
                let expectsAnswer = Bool.random(using: &dice)
                if expectsAnswer { lastRequest += 1 }
                requestedPlaces.insert(place)
                send(.loadMore(request: expectsAnswer ? lastRequest : nil, place: place))
                // Refused, or merged with waiting requests.
                if loading != place, !dialogue.machine.more.waiting.contains(where: { $0.place == place }) {
                    requestedPlaces.remove(place)
                }
            }
        }

        /// As the daemon does: the state with the new epoch, the wake, and its signal.
        func wake() {
            asleep = false
            epoch += 1
            let now = dialogue.now
            let fact = NetworkState(
                reachable: reachable, epoch: epoch, changedAt: Dialogue.instant(now), path: "a")
            account(dialogue.at(now, .network(fact), .woke, .receives("resume", at: now)), at: now)
        }

        /// All is well from now on: each request is fulfilled.
        func settle() {
            held = false
            send(.held(false))
            asleep = false
            send(.goesToSleep(false))
            epoch += 1
            send(.network(Dialogue.online(epoch: epoch, since: dialogue.now)))
            for _ in 0..<100 {
                end(.succeeded(changed: true, generation: 1))
                pass(200)
            }
        }
    }

    @Test(
        "runs do not overlap, each request is answered once, and an idle pipeline stays idle",
        arguments: 0..<200
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
        #expect(course.dialogue.machine.more.isEmpty)
        #expect(course.answered.count == Int(course.lastRequest))
        if let lastRequestSignal = course.lastRequestSignal { #expect(course.lastSuccessfulStart >= lastRequestSignal) }
        #expect(course.dialogue.activity == .loaded)
        #expect(course.loaded == course.values, "the copy is that of the values that are set")
        #expect(course.dialogue.wake == nil, "nothing is left to wake for")
        #expect(course.dialogue.permitRequests.count == course.dialogue.permitReleases.count)
    }
}
