import FreshetModel
import FreshetPipelines
import FreshetSystemSignals
import Testing

/// One machine of a fleet: the machine of its only pipeline, with this host's shares of all random delays.
private struct Host {
    private var machine: RefreshMachine
    private var wake: Double?
    /// The run in progress, and when its answer comes.
    private var run: (number: UInt64, ends: Double)?
    private(set) var asked: [Double] = []
    private(set) var succeeded: [Double] = []

    private static let beginning = BootInstant.now
    /// How long the origin takes to answer.
    private static let latency = 0.05

    static func instant(_ second: Double) -> BootInstant {
        // Never before the due time: a timer that fires early would fire forever.
        beginning.advanced(by: .microseconds(Int64((second * 1_000_000).rounded(.up))))
    }

    private static func second(_ instant: BootInstant) -> Double {
        let (seconds, attoseconds) = beginning.duration(to: instant).components
        return Double(seconds) + Double(attoseconds) / 1e18
    }

    /// - Parameter number: stands for the machine id.
    init(_ number: Int, _ policy: RefreshPolicy, splay: Duration, isOnline: Bool, lastCheck: Double?) {
        let identity = "machine \(number)"
        let share = { (name: String) in StableDelay.fraction(identity: identity.utf8, name: name) }
        machine = RefreshMachine(
            RefreshSettings(
                policy: policy, needsNetwork: true, splay: splay * share(""),
                plannedDelay: policy.randomDelay * share("news")),
            network: NetworkState(reachable: isOnline, epoch: 1, changedAt: Self.instant(-1000), path: "a"),
            memory: StoredRefreshState(lastCheck: lastCheck.map(Self.instant), hasGeneration: lastCheck != nil),
            jitter: Jitter(seed: UInt64(number) &* 0x9E37_79B9), now: Self.beginning)
    }

    /// Lets time pass until a second, with the events meanwhile and the origin's answers by second.
    mutating func live(
        until end: Double, _ happenings: [(at: Double, event: RefreshMachine.Event)] = [],
        answers: (Double) -> RunFailure?
    ) {
        var happenings = happenings[...]
        handle(.timer, at: 0)
        while true {
            let next = [happenings.first?.at, run?.ends, wake].compactMap { $0 }.min() ?? .infinity
            guard next <= end else { return }
            if let happening = happenings.first, happening.at == next {
                happenings.removeFirst()
                handle(happening.event, at: next)
            } else if let run, run.ends == next {
                self.run = nil
                if let failure = answers(next) {
                    handle(.ended(run: run.number, .failed(failure)), at: next)
                } else {
                    succeeded.append(next)
                    handle(.ended(run: run.number, .succeeded(changed: true, generation: 1)), at: next)
                }
            } else {
                handle(.timer, at: next)
            }
        }
    }

    private mutating func handle(_ event: RefreshMachine.Event, at second: Double) {
        var events = [event]
        while !events.isEmpty {
            for action in machine.handle([events.removeFirst()], now: Self.instant(second)) {
                switch action {
                case .requestPermit(let permit): events.append(.permitGranted(permit))
                case .start(let order):
                    asked.append(second)
                    run = (order.run, second + Self.latency)
                case .wake(at: let instant): wake = instant.map { max(second, Self.second($0)) }
                default: break
                }
            }
        }
    }
}

extension RefreshMachine.Event {
    fileprivate static func receives(_ signal: String, at second: Double) -> Self {
        .received([RunCause(signal, first: Host.instant(second))])
    }

    fileprivate static func online(at second: Double) -> Self {
        .network(NetworkState(reachable: true, epoch: 2, changedAt: Host.instant(second), path: "a"))
    }
}

/// A thousand machines with one configuration. All random delays come from machine ids and seeds that are the same in
/// each run of the tests.
@Suite("A fleet")
struct FleetTests {
    static let size = 1000
    private let splay = Duration.seconds(300)
    private let policy = RefreshPolicy(every: .seconds(900))

    private func fleet(
        _ policy: RefreshPolicy, splay: Duration, isOnline: Bool = true, lastCheck: Double? = nil, until end: Double,
        _ happenings: [(at: Double, event: RefreshMachine.Event)], answers: (Double) -> RunFailure? = { _ in nil }
    ) -> [Host] {
        (0..<Self.size).map { number in
            var host = Host(number, policy, splay: splay, isOnline: isOnline, lastCheck: lastCheck)
            host.live(until: end, happenings, answers: answers)
            return host
        }
    }

    /// The number of requests in each second, or in each interval of this number of seconds.
    private func counts(_ times: [Double], each width: Double = 1) -> [Int: Int] {
        Dictionary(grouping: times) { Int($0 / width) }.mapValues(\.count)
    }

    /// The most requests in one second.
    private func peak(_ times: some Sequence<Double>) -> Int { counts(Array(times)).values.max() ?? 0 }

    /// How unevenly the first requests are distributed over thirty equal parts of the splay: chi-square, which exceeds
    /// 60 by chance once in a thousand times.
    private func unevenness(_ times: [Double], from start: Double) -> Double {
        let expected = Double(Self.size) / 30
        let parts = counts(times.map { $0 - start }, each: 10)
        return (0..<30).reduce(0) { sum, part in
            let difference = Double(parts[part] ?? 0) - expected
            return sum + difference * difference / expected
        }
    }

    @Test("after a power cut all hosts start at the same time, and each sends one request, spread over the splay")
    func powerCut() {
        // All checks are overdue, the signal `start` fires, and the network is reachable, or is reported again
        // immediately.
        let hosts = fleet(
            policy, splay: splay, lastCheck: -7200, until: 400,
            [(0.5, .receives("start", at: 0.5)), (0.7, .online(at: 0.7)), (0.7, .receives("network", at: 0.7))])
        let times = hosts.flatMap(\.asked)
        #expect(hosts.allSatisfy { $0.asked.count == 1 })
        #expect(times.allSatisfy { $0 >= 0.5 && $0 <= 303 })
        // An even share is 3.3 in a second.
        #expect(peak(times) <= 14, "\(peak(times))")
        #expect(unevenness(times, from: 0.5) < 60, "\(unevenness(times, from: 0.5))")
    }

    @Test("when the site's network comes back, the requests are spread over the splay again")
    func network() {
        let hosts = fleet(
            policy, splay: splay, isOnline: false, lastCheck: -7200, until: 4000,
            [(0.5, .receives("start", at: 0.5)), (3000, .online(at: 3000)), (3000, .receives("network", at: 3000))])
        // Before, each host attempted an overdue check without a route; these requests reach nothing.
        let times = hosts.compactMap { $0.asked.first { $0 >= 3000 } }
        #expect(times.count == Self.size)
        #expect(times.allSatisfy { $0 <= 3303 })
        #expect(peak(times) <= 14, "\(peak(times))")
    }

    @Test("without a splay all requests come at the same time: the measure of bursts detects it")
    func withoutSplay() {
        let hosts = fleet(policy, splay: .zero, lastCheck: -7200, until: 400, [(0.5, .receives("start", at: 0.5))])
        #expect(peak(hosts.flatMap(\.asked)) == Self.size)
    }

    /// The origin is down from one second to another.
    enum Outage: CaseIterable {
        case plain, retryAfterTwoMinutes, retryAfterTheEnd, refusesConnections

        func answer(at second: Double, until end: Double) -> RunFailure {
            switch self {
            case .plain: RunFailure(.transient, "503")
            case .retryAfterTwoMinutes: RunFailure(.transient, "503", retryAfter: .seconds(120))
            case .retryAfterTheEnd: RunFailure(.transient, "503", retryAfter: .seconds(end - second))
            case .refusesConnections: RunFailure(.connection, "refused")
            }
        }
    }

    @Test(
        "an outage of the origin causes no bursts of requests, neither while it lasts nor afterwards",
        arguments: Outage.allCases)
    func outage(_ outage: Outage) {
        let (start, end) = (3600.0, 5400.0)
        let hosts = fleet(policy, splay: splay, until: 8000, [(0.5, .receives("start", at: 0.5))]) { second in
            (start..<end).contains(second) ? outage.answer(at: second, until: end) : nil
        }
        let times = hosts.flatMap(\.asked)
        // In normal operation there are 3.3 requests per second for a third of the time. While the backoffs grow, each
        // host makes about nine attempts in five minutes, so that there are up to 30; later, with waits of 150 s on
        // average, 6.7.
        let peak = peak(times)
        #expect(peak <= 60, "\(peak)")
        // All hosts are fresh again as soon as the longest wait is over.
        for host in hosts {
            let first = host.succeeded.first { $0 >= end } ?? .infinity
            #expect(first <= end + 901)
        }
        #expect(hosts.contains { ($0.asked.first { $0 >= start } ?? 0) < end })
    }

    @Test("hosts that are refused in the same second come back spread, whatever Retry-After they got")
    func sentAwayTogether() {
        let answers: [(wait: Double, spread: Double, failure: RunFailure)] = [
            (600, 150, RunFailure(.transient, "503", retryAfter: .seconds(600))),
            (7200, 300, RunFailure(.transient, "503", retryAfter: .seconds(7200))),
            (60, 15, RunFailure(.refused, "403")),
        ]
        for (wait, spread, failure) in answers {
            let hosts = fleet(
                RefreshPolicy(every: .seconds(900)), splay: .zero, until: wait + 1000, [(0, .receives("start", at: 0))]
            ) { $0 < 1 ? failure : nil }
            let back = hosts.compactMap { $0.asked.first { $0 > 1 } }
            #expect(back.count == Self.size)
            #expect(back.allSatisfy { $0 >= wait && $0 <= wait + spread + 1 })
            let share = Double(Self.size) / spread
            #expect(Double(peak(back)) <= 4 * share + 1, "\(peak(back)) in one second, \(share) on average")
        }
    }

    @Test("without Retry-After, the second and later attempts are ever more spread")
    func thinner() {
        let hosts = fleet(policy, splay: .zero, until: 900, [(0, .receives("start", at: 0))]) { _ in
            RunFailure(.transient, "503")
        }
        let times = hosts.flatMap(\.asked)
        #expect(peak(times.filter { $0 >= 10 }) < Self.size / 4)
        #expect(peak(times.filter { $0 >= 60 }) < Self.size / 20)
        #expect(peak(times.filter { $0 >= 600 }) < Self.size / 40)
    }
}
