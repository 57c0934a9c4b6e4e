import FreshetModel
import Testing

@testable import FreshetPipelines

@Suite("After a failure")
struct FailureTests {
    let policy = RefreshPolicy(freshFor: .zero, retry: RetryPolicy(from: .seconds(1), to: .seconds(300)))

    /// Lets a pipeline fail this number of times in a row, and returns its waits.
    private func waits(_ kind: RunFailure.Kind, times: Int, seed: UInt64) throws -> [Double] {
        let dialogue = Dialogue(policy, seed: seed)
        _ = dialogue.at(0, .receives("file", at: 0))
        var waits: [Double] = []
        // The burst of the first signal is over by then.
        var now = 5.0
        for run in 1...UInt64(times) {
            _ = dialogue.at(now, .fails(run, kind))
            let next = try #require(dialogue.nextRun)
            #expect(next.reason == .retry)
            waits.append(Dialogue.seconds(next.at) - now)
            now = Dialogue.seconds(next.at) + 0.001
            #expect(dialogue.pass(until: now).map(\.output) == [.starts(run + 1, ["file"])])
        }
        return waits
    }

    @Test("waits grow from retry.from to retry.to with full jitter", arguments: [1, 2, 3, 4, 5])
    func bounds(_ seed: UInt64) throws {
        let waits = try waits(.transient, times: 12, seed: seed)
        for (index, wait) in waits.enumerated() {
            #expect(wait >= 0 && wait <= min(300, Double(1 << index)) + 0.001, "attempt \(index + 1)")
        }
        #expect(Set(waits).count > 6)
    }

    @Test("the jitter fills the whole range")
    func fullJitter() {
        var jitter = Jitter(seed: 42)
        let delays = (0..<1000).map { _ in
            Backoff.delay(after: 4, .transient, policy: policy, jitter: &jitter)
        }
        #expect(delays.allSatisfy { $0 >= .zero && $0 < .seconds(8) })
        #expect(delays.filter { $0 < .seconds(1) }.count > 80)
        #expect(delays.filter { $0 > .seconds(7) }.count > 80)
    }

    @Test("the ceiling doubles and stays below retry.to, however often it fails")
    func ceiling() {
        let retry = policy.retry
        #expect((1...5).map { Backoff.ceiling(after: $0, policy: retry) } == [1, 2, 4, 8, 16].map { .seconds($0) })
        #expect(Backoff.ceiling(after: 10, policy: retry) == .seconds(300))
        #expect(Backoff.ceiling(after: .max, policy: retry) == .seconds(300))
        #expect(Backoff.ceiling(after: .max, policy: RetryPolicy(from: .zero)) == .zero)
        #expect(Backoff.ceiling(after: 1, policy: RetryPolicy(from: .seconds(9), to: .seconds(5))) == .seconds(5))
    }

    @Test(
        "after an answer such as 404 the wait is a minute, and doubles up to every; without every, up to an hour",
        arguments: [
            (nil, [60, 120, 240, 480, 960, 1920, 3600, 3600]), (5, [60, 60, 60]), (300, [60, 120, 240, 300, 300]),
            (86_400, [60, 120, 240]),
        ] as [(Int?, [Int])])
    func refused(every: Int?, waits: [Int]) {
        var jitter = Jitter(seed: 1)
        for (index, least) in waits.enumerated() {
            for _ in 0..<100 {
                let policy = RefreshPolicy(every: every.map { .seconds($0) })
                let wait = Backoff.delay(after: index + 1, .refused, policy: policy, jitter: &jitter)
                // The random part: a quarter of the wait, or the backoff's own wait.
                let most = min(max(least / 4, 1 << index), 300)
                #expect((.seconds(least)...(.seconds(least + most))).contains(wait))
            }
        }
    }

    @Test(
        "a wait that many clients get is spread: over a quarter of it, or the backoff's wait, at most retry.to",
        arguments: [(100, 1, 25), (1, 1, 1), (1, 5, 16), (100, 9, 256), (100, 99, 300), (86_400, 1, 300), (0, 1, 1)])
    func spread(_ wait: Int, _ failures: Int, _ part: Int) {
        var jitter = Jitter(seed: 3)
        let waits = (0..<1000).map { _ in
            Backoff.spread(over: .seconds(wait), after: failures, policy: RetryPolicy(), &jitter)
        }
        let (least, most) = (waits.min() ?? .zero, waits.max() ?? .zero)
        #expect(least >= .seconds(wait) && most <= .seconds(wait) + .seconds(part))
        #expect(most - least > .seconds(part) * 0.9)
        #expect(
            Backoff.spread(over: .seconds(9), after: 9, policy: RetryPolicy(from: .zero, to: .zero), &jitter)
                == .seconds(9))
    }

    @Test("the timer is not faster than the backoff")
    func timerWaits() {
        let dialogue = Dialogue(
            RefreshPolicy(every: .seconds(60), freshFor: .zero, retry: RetryPolicy(from: .zero, to: .zero)),
            lastCheck: 0)
        #expect(dialogue.pass(until: 60) == [.init(at: 60, output: .starts(1, ["timer"]))])
        _ = dialogue.at(61, .fails(1, .refused))
        #expect(dialogue.pass(until: 120) == [])
        #expect(dialogue.pass(until: 150) == [.init(at: 121, output: .starts(2, ["timer"]))])
        _ = dialogue.at(150, .succeeds(2))
        #expect(dialogue.pass(until: 210) == [.init(at: 210, output: .starts(3, ["timer"]))])
    }

    @Test("retries are never faster than min-interval")
    func minInterval() throws {
        let dialogue = Dialogue(RefreshPolicy(minInterval: .seconds(50), freshFor: .zero))
        _ = dialogue.at(0, .receives("file", at: 0))
        _ = dialogue.at(3, .fails(1, .transient))
        #expect(try #require(dialogue.nextRun).at == Dialogue.instant(50))
        #expect(dialogue.pass(until: 60) == [.init(at: 50, output: .starts(2, ["file"]))])
    }

    @Test("environment signals end the wait after a failure to connect")
    func cutConnection() {
        let dialogue = Dialogue(policy, seed: 3)
        _ = dialogue.at(0, .receives("file", at: 0))
        _ = dialogue.at(100, .fails(1, .connection))
        #expect(dialogue.at(100.001, .receives("foreground", at: 100.001)) == [.starts(2, ["file", "foreground"])])
    }

    @Test(
        "environment signals do not end the wait after another failure",
        arguments: [RunFailure.Kind.transient, .refused, .content, .local, .deadline])
    func cutNothing(_ kind: RunFailure.Kind) throws {
        let dialogue = Dialogue(RefreshPolicy(freshFor: .zero, retry: RetryPolicy(from: .seconds(300))))
        _ = dialogue.at(0, .receives("file", at: 0))
        _ = dialogue.at(100, .fails(1, kind))
        let due = Dialogue.seconds(try #require(dialogue.nextRun).at)
        try #require(due > 100.1)
        #expect(dialogue.at(100.1, .receives("foreground", at: 100.1)) == [])
        let start = try #require(dialogue.pass(until: 10000).first)
        #expect(start == .init(at: due, output: .starts(2, ["file", "foreground"])))
    }

    @Test(
        "a request ends every wait",
        arguments: [RunFailure.Kind.connection, .transient, .refused, .content, .local, .deadline])
    func requestCuts(_ kind: RunFailure.Kind) {
        let dialogue = Dialogue(policy)
        _ = dialogue.at(0, .receives("file", at: 0))
        _ = dialogue.at(100, .fails(1, kind))
        #expect(dialogue.at(100, .receives("reload", at: 100)) == [.starts(2, ["file", "reload"])])
    }

    @Test("a request that came during the run ends its wait")
    func requestDuring() {
        let dialogue = Dialogue(policy)
        _ = dialogue.at(0, .receives("file", at: 0))
        _ = dialogue.at(10, .receives("reload", at: 10))
        #expect(dialogue.at(11, .fails(1, .refused)) == [.starts(2, ["file", "reload"])])
    }

    @Test("in a burst a failure to connect is not retried before the held signals are delivered")
    func burst() {
        let dialogue = Dialogue(RefreshPolicy(freshFor: .zero, retry: RetryPolicy(from: .milliseconds(1))))
        _ = dialogue.at(0, .receives("file", at: 0))
        _ = dialogue.at(0.1, .fails(1, .connection))
        #expect(dialogue.pass(until: 0.5) == [])
        _ = dialogue.at(0.5, .receives("network", at: 0.5))
        #expect(dialogue.pass(until: 1) == [])
        // The network signal began a grace period; the run that failed before is not part of it.
        #expect(dialogue.pass(until: 100) == [.init(at: 2.5, output: .starts(2, ["file", "network"]))])
    }

    @Test("in a burst without further signals it is retried after the quiet period")
    func burstAlone() {
        let dialogue = Dialogue(RefreshPolicy(freshFor: .zero, retry: RetryPolicy(from: .milliseconds(1))))
        _ = dialogue.at(0, .receives("file", at: 0))
        _ = dialogue.at(0.1, .fails(1, .connection))
        #expect(dialogue.pass(until: 100) == [.init(at: 2, output: .starts(2, ["file"]))])
    }

    @Test("in a burst other failures are retried as usual")
    func burstOther() throws {
        let dialogue = Dialogue(RefreshPolicy(freshFor: .zero, retry: RetryPolicy(from: .milliseconds(100))))
        _ = dialogue.at(0, .receives("file", at: 0))
        _ = dialogue.at(0.1, .fails(1, .transient))
        let start = try #require(dialogue.pass(until: 100).first)
        #expect(start.at <= 0.2)
    }

    @Test("a retry that became due without a network is debounced when the network is back")
    func retryAndFlaps() {
        let dialogue = Dialogue(RefreshPolicy(freshFor: .zero, retry: RetryPolicy(from: .milliseconds(1))))
        _ = dialogue.at(0, .receives("file", at: 0))
        _ = dialogue.at(10, .network(Dialogue.offline(since: 10)))
        _ = dialogue.at(10, .ended(run: 1, .cancelled))
        #expect(dialogue.at(11, .network(Dialogue.online(epoch: 2, since: 11))) == [.starts(2, ["file"])])
        _ = dialogue.at(11.1, .fails(2, .transient))
        _ = dialogue.at(11.1, .network(Dialogue.offline(epoch: 2, since: 11.1)))
        #expect(dialogue.pass(until: 11.2) == [])
        #expect(dialogue.at(11.2, .network(Dialogue.online(epoch: 3, since: 11.2))) == [])
        #expect(dialogue.pass(until: 100) == [.init(at: 13.2, output: .starts(3, ["file"]))])
    }

    @Test("attempts are counted from the first failure, and a success ends the count")
    func attempts() {
        let dialogue = Dialogue(policy)
        _ = dialogue.at(10, .receives("file", at: 10))
        _ = dialogue.at(20, .fails(1, .content))
        _ = dialogue.at(30, .timer)
        _ = dialogue.at(40, .fails(2, .local))
        #expect(
            dialogue.activity == .failed(RunFailure(.local, "it broke"), since: Dialogue.instant(20), attempts: 2))
        _ = dialogue.at(50, .timer)
        _ = dialogue.at(60, .succeeds(3))
        #expect(dialogue.activity == .loaded)
    }

    /// Without the random part.
    private let exact = RefreshPolicy(freshFor: .zero, retry: RetryPolicy(from: .zero, to: .zero))

    @Test("Retry-After is stored, applies to all runs, and only force ignores it")
    func retryAfter() {
        let dialogue = Dialogue(exact)
        _ = dialogue.at(0, .receives("file", at: 0))
        #expect(dialogue.at(10, .fails(1, .transient, retryAfter: .seconds(100))) == [.remembersRetryAfter(110)])
        #expect(dialogue.nextRun == PlannedRun(at: Dialogue.instant(110), reason: .retry))
        #expect(dialogue.at(20, .receives("reload", at: 20)) == [])
        #expect(dialogue.waitsFor == Wait(.retryAfter, until: Dialogue.instant(110)))
        #expect(
            dialogue.at(30, .refresh(request: 1, force: false))
                == [.refuses(1, .retryAfter(until: Dialogue.instant(110)))])
        #expect(dialogue.at(40, .refresh(request: 2, force: true)) == [.starts(2, ["file", "reload", "operator"])])
        #expect(dialogue.at(41, .succeeds(2)) == [.remembersRetryAfter(nil), .answers(2, .changed)])
        #expect(dialogue.at(50, .receives("reload", at: 50)) == [.starts(3, ["reload"])])
    }

    @Test("when Retry-After has passed the run starts by itself")
    func retryAfterPasses() {
        let dialogue = Dialogue(exact)
        _ = dialogue.at(0, .receives("file", at: 0))
        _ = dialogue.at(10, .fails(1, .transient, retryAfter: .seconds(1000)))
        _ = dialogue.at(20, .receives("reload", at: 20))
        #expect(dialogue.pass(until: 1100) == [.init(at: 1010, output: .starts(2, ["file", "reload"]))])
    }

    @Test("Retry-After is stored across restarts, for at most a week")
    func retryAfterMemory() {
        let dialogue = Dialogue(exact, retryAfter: 50)
        #expect(dialogue.at(0, .receives("start", at: 0)) == [])
        #expect(dialogue.activity == .waiting(Wait(.retryAfter, until: Dialogue.instant(50))))
        #expect(dialogue.pass(until: 60) == [.init(at: 50, output: .starts(1, ["start"]))])
        let century = Duration.seconds(100 * 365 * 86400)
        let inAWeek: Double = 60 + 7 * 86400
        #expect(dialogue.at(60, .fails(1, .transient, retryAfter: century)) == [.remembersRetryAfter(inAWeek)])
    }

    @Test("Retry-After is lengthened by a random part, and stored like that")
    func retryAfterSpread() {
        let dialogue = Dialogue(RefreshPolicy(freshFor: .zero))
        _ = dialogue.at(0, .receives("file", at: 0))
        let outputs = dialogue.at(10, .fails(1, .transient, retryAfter: .seconds(100)))
        guard case .remembersRetryAfter(let until?)? = outputs.first else {
            Issue.record("\(outputs)")
            return
        }
        #expect(until > 110 && until <= 135)
        #expect(dialogue.pass(until: 200) == [.init(at: until, output: .starts(2, ["file"]))])
    }
}
