import FreshetModel
import TestSupport
import Testing

@testable import FreshetPipelines

/// Any event comes at any moment, also those that the engine never sends in that order.
///
/// `FRESHET_SEEDS=1-20000` tries these seeds. With `FRESHET_DIGESTS=FILE` the digest of all actions and of the visible
/// state of each seed is appended to the file, to compare two versions of the machine.
@Suite("After any event")
struct AnyEventTests {
    private struct Course {
        var dice: SeededGenerator
        var machine: RefreshMachine
        var digest = HistoryDigest()
        /// A fixed beginning of time, so that digests do not depend on the clock.
        var now = BootInstant(nanoseconds: 0).advanced(by: .seconds(1_000_000))
        var wake: BootInstant?
        var running: UInt64?
        var lastRun: UInt64 = 0
        var permits: [UInt64] = []
        var requests: Set<UInt64> = []
        var lastRequest: UInt64 = 0
        var proof: ProofRequest?
        var change: Bool?
        var epoch: UInt64 = 1
        var changedAt: BootInstant
        var wrong: [String] = []

        init(_ seed: UInt64) {
            var dice = SeededGenerator(seed: seed)
            let settings = Self.settings(&dice)
            let network = NetworkState(
                reachable: Self.chance(3, &dice) ? false : true, epoch: 1, changedAt: now.advanced(by: .seconds(-60)),
                path: "a")
            changedAt = network.changedAt
            let memory = Self.memory(now, &dice)
            machine = RefreshMachine(
                settings, network: network, memory: memory,
                parameters: Self.chance(2, &dice) ? ParameterValues() : Self.values(&dice), jitter: Jitter(seed: seed),
                now: now)
            self.dice = dice
        }

        static func chance(_ count: Int, _ dice: inout SeededGenerator) -> Bool {
            Int.random(in: 0..<count, using: &dice) == 0
        }

        static func span(_ values: [Int], _ dice: inout SeededGenerator) -> Duration {
            .milliseconds(values.randomElement(using: &dice) ?? 0)
        }

        static func values(_ dice: inout SeededGenerator) -> ParameterValues {
            ParameterValues(["query": "\(Int.random(in: 0..<3, using: &dice))"])
        }

        static func settings(_ dice: inout SeededGenerator) -> RefreshSettings {
            let probe = NetworkProbe(
                url: "http://\(Int.random(in: 0..<2, using: &dice)).example/", host: "probe.example")
            let policy = RefreshPolicy(
                every: chance(2, &dice) ? span([20_000, 600_000], &dice) : nil,
                quiet: span([0, 1000, 2000], &dice), atMost: span([3000, 10_000], &dice),
                minInterval: chance(2, &dice) ? .zero : .seconds(3),
                whenRunning: chance(2, &dice) ? .queue : chance(2, &dice) ? .ignore : .restart,
                freshFor: span([0, 5000, 60_000], &dice),
                honoursOrigin: chance(3, &dice), deadline: span([0, 5000, 30_000], &dice),
                budget: chance(3, &dice) ? RequestBudget(Int.random(in: 1...6, using: &dice), per: .hour) : nil,
                needsNetwork: chance(3, &dice) ? .probe(probe) : .yes,
                whenMetered: chance(2, &dice) ? .wait : .allow)
            return RefreshSettings(
                policy: policy, needsNetwork: !chance(4, &dice), splay: chance(5, &dice) ? .seconds(4) : .zero,
                plannedDelay: chance(3, &dice) ? .seconds(7) : .zero,
                maxAge: chance(2, &dice) ? span([10_000, 100_000], &dice) : nil, withdraws: chance(2, &dice))
        }

        static func memory(_ now: BootInstant, _ dice: inout SeededGenerator) -> StoredRefreshState {
            func past(_ dice: inout SeededGenerator) -> BootInstant? {
                chance(2, &dice) ? nil : now.advanced(by: .zero - span([1000, 50_000, 700_000], &dice))
            }
            var memory = StoredRefreshState(
                lastCheck: past(&dice), confirmed: past(&dice), expires: past(&dice),
                retryAfter: chance(5, &dice) ? now.advanced(by: .seconds(9)) : nil,
                hasGeneration: !chance(3, &dice), copy: copy(now, &dice),
                requests: past(&dice).map { [RequestMeter.Spent(first: $0, last: $0, count: 2)] } ?? [])
            memory.isHeld = chance(9, &dice)
            return memory
        }

        static func copy(_ now: BootInstant, _ dice: inout SeededGenerator) -> CopyState? {
            guard !chance(4, &dice) else { return nil }
            return CopyState(
                number: .random(in: 1...3, using: &dice), isWithdrawn: chance(3, &dice), isPinned: chance(6, &dice),
                written: chance(3, &dice) ? nil : now.advanced(by: .zero - span([0, 5000, 50_000], &dice)))
        }

        mutating func chance(_ count: Int) -> Bool { Self.chance(count, &dice) }

        mutating func failure() -> RunFailure {
            let kinds: [RunFailure.Kind] = [
                .connection, .connection, .transient, .certificateDate, .refused, .content, .local, .absent, .budget,
            ]
            let kind = kinds.randomElement(using: &dice) ?? .local
            var failure = RunFailure(
                kind, "no", retryAfter: chance(6) ? Self.span([2000, 60_000], &dice) : nil,
                rejection: kind == .content ? [.lasting, .passing, .brief].randomElement(using: &dice) : nil)
            failure.isRouted = chance(2)
            return failure
        }

        mutating func result() -> RunResult {
            switch Int.random(in: 0..<10, using: &dice) {
            case 0..<5:
                .succeeded(
                    changed: chance(2), generation: chance(4) ? nil : .random(in: 1...3, using: &dice),
                    at: chance(2) ? nil : now.advanced(by: .zero - Self.span([0, 500], &dice)),
                    flaw: chance(4) ? failure() : nil,
                    expires: chance(3) ? now.advanced(by: Self.span([1000, 90_000], &dice)) : nil)
            case 5..<9: .failed(failure())
            default: .cancelled
            }
        }

        mutating func request() -> UInt64? {
            guard !chance(3) else { return nil }
            lastRequest += 1
            requests.insert(lastRequest)
            return lastRequest
        }

        mutating func network() -> NetworkState {
            if chance(2) { (epoch, changedAt) = (epoch + 1, now) }
            return NetworkState(
                reachable: !chance(3), epoch: epoch, changedAt: changedAt, path: chance(2) ? "a" : "b")
        }

        mutating func received() -> RefreshMachine.Event {
            let names = [
                SignalName.start, SignalName.network, SignalName.resume, SignalName.reload, SignalName.foreground,
                SignalName.metered, SignalName.pipeline, "file", SignalName.operation,
            ]
            let count = Int.random(in: 1...3, using: &dice)
            return .received(
                (0..<count).map { _ in
                    RunCause(
                        names.randomElement(using: &dice) ?? "file",
                        first: now.advanced(by: .zero - Self.span([0, 0, 400], &dice)))
                })
        }

        mutating func event() -> RefreshMachine.Event {
            switch Int.random(in: 0..<40, using: &dice) {
            case 0..<8: received()
            case 8..<12:
                .network(network(), cause: chance(2) ? nil : RunCause(SignalName.network, first: now))
            case 12: .directNetworks(chance(3) ? nil : .random(in: 1...2, using: &dice))
            case 13, 14: .refresh(request: request(), force: chance(3), unconditional: chance(3))
            case 15, 16: .loadMore(request: request(), place: chance(2) ? [] : ["a"])
            case 17:
                .reconfigured(
                    Self.settings(&dice), sameProduct: chance(2),
                    parameters: chance(3) ? ParameterValues() : Self.values(&dice))
            case 18, 19: .parameters(Self.values(&dice), quiet: Self.span([0, 400, 1500], &dice))
            case 20: .held(chance(3))
            case 21: .accepted(run: chance(3) ? nil : lastRun)
            case 22: chance(2) ? .lost : .copyLost
            case 23, 24: .copy(Self.copy(now, &dice))
            case 25: .contentExpires(chance(3) ? nil : now.advanced(by: Self.span([0, 2000, 40_000], &dice)))
            case 26: .goesToSleep(chance(3))
            case 27: .woke
            case 28: .clockStepped(Self.memory(now, &dice))
            case 29: .permitGranted(.random(in: 1...9, using: &dice))
            case 30, 31:
                chance(2)
                    ? .refused(&dice)
                    : .proof(.proven(epoch: epoch, until: now.advanced(by: Self.span([1000, 30_000], &dice))))
            case 32: .stalled(run: lastRun, chance(2))
            case 34: chance(2) ? .metered(chance(2) ? nil : "metered") : .power(chance(2) ? nil : "on battery")
            case 33: .ended(run: lastRun + 9, result())
            case 35:
                if let request = request() {
                    .awaitRun(request: request, after: chance(2) ? lastRun : lastRun + 1)
                } else {
                    .timer
                }
            default: .timer
            }
        }

        /// The results of what the machine has requested, often.
        mutating func replies() -> [RefreshMachine.Event] {
            var events: [RefreshMachine.Event] = []
            if let run = running, chance(4) {
                running = nil
                events.append(.ended(run: run, result(), requests: .random(in: 0...3, using: &dice)))
            }
            if let change, chance(2) {
                self.change = nil
                let results: [CopyChangeResult] = [.done, .done, .left, .failed]
                let result = results.randomElement(using: &dice) ?? .done
                if result == .done, chance(4) == false {
                    events.append(.copy(CopyState(number: 1, isWithdrawn: change, written: now)))
                }
                events.append(.copySettled(result))
            }
            if let proof, chance(3) {
                events.append(.proof(.proven(epoch: proof.epoch, until: now.advanced(by: .seconds(30)))))
            }
            if let permit = permits.last, chance(2) {
                permits.removeLast()
                events.append(.permitGranted(permit))
            }
            return events
        }

        mutating func step() {
            switch Int.random(in: 0..<3, using: &dice) {
            case 0: now = max(now, min(wake ?? now, now.advanced(by: .seconds(900))))
            case 1: now = now.advanced(by: Self.span([0, 100, 700, 2000, 9000], &dice))
            default: break
            }
            var events = (0..<Int.random(in: 0...2, using: &dice)).map { _ in event() }
            events += replies()
            send(events.isEmpty ? [.timer] : events)
        }

        mutating func send(_ events: [RefreshMachine.Event]) {
            // A run may have ended by an event that replies do not know.
            for case .ended(let run, _, _) in events where run == running { running = nil }
            let actions = machine.handle(events, now: now)
            digest.add("\(now) \(actions)")
            for action in actions { perform(action) }
            digest.add(
                """
                \(machine.activity(at: now)) \(String(describing: machine.waitsFor(at: now))) \
                \(String(describing: machine.nextRun(at: now))) \(String(describing: machine.freshness(at: now))) \
                \(String(describing: machine.budgetUse(at: now))) \(String(describing: machine.expires)) \
                \(String(describing: machine.refusal(force: false, at: now))) \
                \(String(describing: machine.conditions.loadMoreRefusal(machine.settings, at: now)))
                """)
        }

        mutating func perform(_ action: RefreshMachine.Action) {
            switch action {
            case .requestPermit(let permit): permits.append(permit)
            case .releasePermit(let permit): permits.removeAll { $0 == permit }
            case .prove(let request): proof = request
            case .start(let order):
                expect(running == nil, "run \(order.run) starts while another is in progress")
                expect(order.run > lastRun, "run \(order.run) starts after run \(lastRun)")
                running = order.run
                lastRun = order.run
            case .withdraw, .putBack:
                expect(change == nil, "two changes of the copy at the same time")
                change = action == .withdraw
            case .cancel(let run): expect(run == lastRun, "run \(run) is cancelled, but was not in progress")
            case .wake(let instant): wake = instant
            case .answer(let request, _):
                expect(requests.remove(request) != nil, "request \(request) is answered twice")
            case .rememberRetryAfter, .rememberRequests, .report: break
            }
        }

        mutating func expect(_ condition: Bool, _ message: String) {
            if !condition { wrong.append(message) }
        }

        /// The pipeline is stopped, and its run ends.
        mutating func stop() {
            send([.stopped])
            if let run = running { send([.ended(run: run, .cancelled)]) }
            expect(requests.isEmpty, "\(requests.sorted()) are not answered in the end")
            expect(wake == nil, "a timer is left")
            expect(permits.isEmpty, "permits are left: \(permits)")
        }
    }

    @Test("runs do not overlap, each request is answered once, and nothing is left after the stop")
    func holds() {
        for seed in HistoryDigest.seeds ?? 1...300 {
            var course = Course(seed)
            for _ in 0..<150 { course.step() }
            course.stop()
            #expect(course.wrong == [], "seed \(seed)")
            course.digest.store("machine", seed)
        }
    }
}

extension RefreshMachine.Event {
    /// A proof that failed for one of two reasons.
    fileprivate static func refused(_ dice: inout SeededGenerator) -> Self {
        .proof(.refused("portal \(Int.random(in: 0..<2, using: &dice))"))
    }
}
