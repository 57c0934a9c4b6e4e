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
        var values = Course.values(0)
        /// Of the last success.
        var loaded: ParameterValues?

        static func values(_ number: Int) -> ParameterValues { ParameterValues(["query": "\(number)"]) }

        init(_ policy: RefreshPolicy, splay: Duration, seed: UInt64) {
            dice = Jitter(seed: seed)
            talk = Dialogue(policy, splay: splay, parameters: values, seed: seed)
        }

        func account(_ deeds: [Dialogue.Deed], at second: Double) {
            for deed in deeds {
                switch deed {
                case .starts(let run, let causes):
                    #expect(running == nil, "two runs at once")
                    #expect(!causes.isEmpty, "a run without a cause")
                    #expect(!asleep, "a run while the machine is about to sleep")
                    #expect(talk.orders.last?.parameters == values, "a run with values of the past")
                    running = run
                    starts[run] = second
                case .cancels(let run):
                    #expect(running == run || ending == run, "a cancelled run that is not under way")
                case .answers(let request, _), .refuses(let request, _), .stops(let request):
                    #expect(answered.insert(request).inserted, "answered twice")
                case .remembersRetryAfter, .seeksProof:
                    break
                }
            }
        }

        func end(_ result: RunResult) {
            guard let run = running else { return }
            running = nil
            ending = run
            if case .succeeded = result {
                lastSuccessfulStart = starts[run] ?? -1
                loaded = talk.orders.last?.parameters
            }
            account(talk.at(talk.now, .ended(run: run, result)), at: talk.now)
        }

        func pass(_ seconds: Double) {
            for moment in talk.pass(until: talk.now + seconds) { account([moment.deed], at: moment.at) }
        }

        func say(_ events: Dialogue.Event...) {
            for event in events { account(talk.at(talk.now, event), at: talk.now) }
        }

        func throwDice() {
            let now = talk.now
            switch Int.random(in: 0..<23, using: &dice) {
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
            case 10: end(.failed(RunFailure(.refused, "no")))
            case 11: end(.cancelled)
            case 12: say(.held(Bool.random(using: &dice)))
            case 13:
                asleep = true
                say(.goesToSleep(true))
            case 14, 15: wake()
            case 16: say(.clockStepped(RefreshMemory(lastCheck: Dialogue.instant(now - 100), hasGeneration: true)))
            case 17, 18:
                values = Self.values(Int.random(in: 0..<3, using: &dice))
                say(.parameters(values, quiet: .milliseconds(Int.random(in: 0..<3, using: &dice) * 400)))
            default: pass(Double(Int.random(in: 0..<4000, using: &dice)) / 1000)
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
        #expect(course.answered.count == Int(course.asked))
        if let lastDemand = course.lastDemand { #expect(course.lastSuccessfulStart >= lastDemand) }
        #expect(course.talk.activity == .loaded)
        #expect(course.loaded == course.values, "the copy is that of the values that are set")
        #expect(course.talk.wake == nil, "nothing is left to wake for")
        #expect(course.talk.slotRequests.count == course.talk.slotReleases.count)
    }
}
