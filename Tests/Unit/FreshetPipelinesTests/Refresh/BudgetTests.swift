import FreshetModel
import Testing
import WorldTestSupport

@testable import FreshetPipelines

@Suite("The request budget")
struct BudgetTests {
    private func policy(_ limit: Int, per period: RequestBudget.Period = .hour) -> RefreshPolicy {
        RefreshPolicy(quiet: .zero, freshFor: .zero, budget: RequestBudget(limit, per: period))
    }

    /// One run that succeeds immediately, at a second.
    private func run(_ dialogue: Dialogue, at second: Double, _ number: UInt64) -> Bool {
        guard dialogue.at(second, .receives("file", at: second)).contains(.starts(number, ["file"])) else {
            return false
        }
        _ = dialogue.at(second, .succeeds(number))
        return true
    }

    @Test("a run beyond the budget waits until the first run of the last hour is an hour old")
    func waits() {
        let dialogue = Dialogue(policy(3))
        for number in 1...3 { #expect(run(dialogue, at: Double(number) * 600, UInt64(number))) }
        #expect(!run(dialogue, at: 1900, 4))
        #expect(dialogue.waitsFor == Wait(.budget, until: Dialogue.instant(4200)))
        #expect(dialogue.activity == .waiting(Wait(.budget, until: Dialogue.instant(4200))))
        #expect(dialogue.machine.budgetUse(at: Dialogue.instant(1900))?.used == 3)
        #expect(dialogue.pass(until: 4300) == [.init(at: 4200, output: .starts(4, ["file"]))])
    }

    @Test("a request of the operator is refused, with the time; a forced run ignores the budget, and is counted")
    func operation() {
        let dialogue = Dialogue(policy(1))
        #expect(run(dialogue, at: 0, 1))
        #expect(
            dialogue.at(10, .refresh(request: 1, force: false))
                == [.refuses(1, .budget(until: Dialogue.instant(3600)))])
        #expect(dialogue.at(20, .refresh(request: 2, force: true)) == [.starts(2, ["operator"])])
        #expect(dialogue.at(20, .succeeds(2)) == [.answers(2, .changed)])
        #expect(dialogue.machine.budgetUse(at: Dialogue.instant(20))?.used == 2)
        // A run may start when both earlier runs are old enough that one request is left.
        #expect(!run(dialogue, at: 30, 3))
        #expect(dialogue.waitsFor?.until == Dialogue.instant(3620))
    }

    @Test("a request without a connection costs nothing, each redirect costs one")
    func counts() {
        let dialogue = Dialogue(policy(10))
        func used() -> Int? { dialogue.machine.budgetUse(at: Dialogue.instant(dialogue.now))?.used }
        _ = dialogue.at(0, .receives("file", at: 0))
        #expect(used() == 1)
        _ = dialogue.at(1, .fails(1, .connection))
        #expect(used() == 0)
        _ = dialogue.at(500, .refresh(request: nil, force: false))
        _ = dialogue.at(501, .ended(run: 2, .succeeded(changed: true, generation: 1), requests: 4))
        #expect(used() == 4)
        _ = dialogue.at(600, .refresh(request: nil, force: false))
        _ = dialogue.at(601, .ended(run: 3, .failed(RunFailure(.local, "no memory")), requests: 0))
        #expect(used() == 4)
    }

    @Test("stored requests count after a restart; requests in the future count as requests of now")
    func memory() {
        let remembered = PersistentState(requests: [
            RequestBurst(
                first: WallTime(microseconds: 100_000_000), last: WallTime(microseconds: 130_000_000), count: 2),
            RequestBurst(
                first: WallTime(microseconds: 9_000_000_000), last: WallTime(microseconds: 9_900_000_000), count: 3),
        ])
        let now = Dialogue.beginning
        let memory = StoredRefreshState(StoredTimes(remembered), now: now, wallNow: 1_130_000_000, tolerance: .zero)
        let machine = RefreshMachine(
            RefreshSettings(policy: policy(5), needsNetwork: false), network: Dialogue.online(), memory: memory,
            jitter: Jitter(seed: 1), now: now)
        #expect(machine.budgetUse(at: now)?.used == 5)
        #expect(machine.refusal(force: false, at: now) == .budget(until: Dialogue.instant(2600)))
        #expect(machine.budgetUse(at: Dialogue.instant(2600))?.used == 3)
        #expect(machine.budgetUse(at: Dialogue.instant(3600))?.used == 0)
    }

    @Test("a budget that a reload removes does not delay runs")
    func reconfigured() {
        let dialogue = Dialogue(policy(1))
        #expect(run(dialogue, at: 0, 1))
        #expect(!run(dialogue, at: 10, 2))
        let free = RefreshSettings(policy: RefreshPolicy(quiet: .zero, freshFor: .zero), needsNetwork: true)
        #expect(dialogue.at(20, .reconfigured(free, sameProduct: true)) == [.starts(2, ["file"])])
    }

    @Test("no span of the period has more requests than allowed, in any distribution", arguments: 1...20)
    func never(_ seed: UInt64) {
        var chance = Jitter(seed: seed)
        let budget = RequestBudget(1 + Int(seed) * 7, per: seed % 2 == 0 ? .hour : .day)
        var meter = RequestMeter()
        var now = Dialogue.beginning
        var made: [BootInstant] = []
        for _ in 0..<3_000 {
            now = now.advanced(by: chance.duration(upTo: budget.period.duration / 50))
            if let room = meter.availability(in: budget, at: now) {
                #expect(room > now)
                if chance.duration(upTo: .seconds(2)) < .seconds(1) { now = room } else { continue }
            }
            #expect(meter.availability(in: budget, at: now) == nil)
            meter.spend(of: budget, at: now)
            made.append(now)
            #expect(meter.spent.count <= RequestMeter.slices + 1)
        }
        for (index, instant) in made.enumerated() where index >= budget.limit {
            #expect(made[index - budget.limit].duration(to: instant) >= budget.period.duration)
        }
        #expect(made.count > budget.limit)
    }

    @Test("a run may make as many requests as are left, at least one, and a forced run any number")
    func allowance() {
        let dialogue = Dialogue(policy(5))
        _ = dialogue.at(0, .receives("file", at: 0))
        #expect(dialogue.orders.last?.allowance == 5)
        _ = dialogue.at(1, .ended(run: 1, .succeeded(changed: true, generation: 1), requests: 3))
        _ = dialogue.at(10, .receives("file", at: 10))
        #expect(dialogue.orders.last?.allowance == 2)
        _ = dialogue.at(11, .ended(run: 2, .succeeded(changed: true, generation: 1), requests: 4))
        _ = dialogue.at(20, .refresh(request: 1, force: true))
        #expect(dialogue.orders.count == 3)
        #expect(dialogue.orders.last?.allowance == nil)
        let other = Dialogue(RefreshPolicy(freshFor: .zero))
        _ = other.at(0, .receives("file", at: 0))
        #expect(other.orders.last?.allowance == nil)
    }

    @Test("a request beyond the budget is not made, and requests that follow from answers count too")
    func beyond() throws {
        let progress = RunProgress(allowance: 3)
        try progress.allowRequest()
        try progress.allowRequest()
        for _ in 0..<3 { progress.countRequest() }
        #expect {
            try progress.allowRequest()
        } throws: { error in
            guard case .failed(let failure)? = error as? FetchError else { return false }
            return failure.kind == .budget && failure.message.contains("refresh.budget had 3 requests left")
        }
        let free = RunProgress()
        for _ in 0..<100 { try free.allowRequest() }
    }
}
