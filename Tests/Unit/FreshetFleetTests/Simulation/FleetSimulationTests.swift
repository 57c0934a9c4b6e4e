import TestSupport
import Testing

@testable import FreshetFleet

@Suite("A fleet in simulated time", .hangLimit) struct FleetSimulationTests {
    @Test("without claims, each member requests the origin: the simulation sees the wave")
    func wave() {
        var plan = FleetWorld.Plan()
        plan.usesClaims = false
        var world = FleetWorld(plan)
        world.run(until: .seconds(60))
        #expect(world.requests.count == plan.members && world.worstSecond > 1_000)
    }

    @Test(
        "after a power cut, the origin gets one request, whenever the engine comes back",
        arguments: [0, 10, 90])
    func powerCut(late: Int) {
        var plan = FleetWorld.Plan()
        (plan.engineUp, plan.connectWindow, plan.headAge) = (.seconds(late), .seconds(30), .seconds(7_200))
        var world = FleetWorld(plan)
        world.run(until: .seconds(late + 120))
        #expect(world.requests.count == 1 && world.count(with: 1) == plan.members)
        #expect(world.rejections.isEmpty)
    }

    @Test("a fleet without any content gets it with one request")
    func first() {
        var world = FleetWorld(FleetWorld.Plan())
        world.run(until: .seconds(120))
        #expect(world.requests.count == 1 && world.count(with: 1) == 10_000)
    }

    @Test("a change is published by all members within the spread and a few seconds", arguments: 1...3)
    func change(seed: Int) {
        var plan = FleetWorld.Plan()
        (plan.members, plan.seed) = (1_000, UInt64(seed))
        plan.answer = { $0 > .seconds(1_800) ? .content(2) : .content(1) }
        var world = FleetWorld(plan)
        world.run(until: .seconds(4 * 3_600))
        #expect(world.requests.count == 4 && world.worstSecond == 1)
        #expect(world.count(with: 2) == plan.members)
        // The second check begins an hour after the first one; the request itself takes a second.
        #expect(world.lastPublication < (world.requests.dropFirst().first ?? .zero) + .seconds(1 + 5 + 2 + 1))
    }

    @Test("when fetchers die after their request, another one follows, and no two requests are made together")
    func deaths() {
        for seed in 1...5 {
            var plan = FleetWorld.Plan()
            (plan.members, plan.seed, plan.dying) = (2_000, UInt64(seed), 0.3)
            var world = FleetWorld(plan)
            world.run(until: .seconds(300))
            #expect(world.requests.count == 1 + world.deaths && world.worstSecond == 1)
            #expect(world.count(with: 1) == plan.members)
        }
    }

    @Test("while the origin answers 503, the fleet keeps its Retry-After")
    func retryAfter() {
        var plan = FleetWorld.Plan()
        plan.members = 2_000
        plan.answer = { $0 < .seconds(600) ? .failure(retryAfter: .seconds(120)) : .content(1) }
        var world = FleetWorld(plan)
        world.run(until: .seconds(2_400))
        // At 0, 120, … 480 s, then one that succeeds; the pause grows beyond the Retry-After.
        #expect((3...7).contains(world.requests.count) && world.worstSecond == 1)
        for (one, next) in zip(world.requests, world.requests.dropFirst()) { #expect(next - one >= .seconds(120)) }
        #expect(world.count(with: 1) == plan.members)
    }

    @Test("a failing origin without Retry-After gets fewer and fewer requests")
    func backoff() {
        var plan = FleetWorld.Plan()
        plan.members = 1_000
        plan.answer = { _ in .failure(retryAfter: nil) }
        var world = FleetWorld(plan)
        world.run(until: .seconds(3_600))
        // 30 s, doubled each time: 8 requests in the first hour.
        #expect((5...10).contains(world.requests.count))
    }

    @Test("half of the site is cut off for ten minutes: it requests nothing, and then has the same content")
    func cut() {
        var plan = FleetWorld.Plan()
        (plan.cutFrom, plan.cutEnd) = (5_000, .seconds(600))
        var world = FleetWorld(plan)
        world.run(until: .seconds(500))
        #expect(world.count(with: 1) == 5_000)
        world.run(until: .seconds(900))
        #expect(world.requests.count == 1 && world.count(with: 1) == plan.members)
    }

    @Test("members that were away for a day make no request")
    func away() {
        var plan = FleetWorld.Plan()
        (plan.members, plan.cutFrom, plan.cutEnd) = (200, 100, .seconds(86_400))
        plan.fallback = nil
        plan.answer = { $0 > .seconds(40_000) ? .content(2) : .content(1) }
        var world = FleetWorld(plan)
        world.run(until: .seconds(86_300))
        let before = world.requests.count
        #expect((23...25).contains(before) && world.worstSecond == 1)
        world.run(until: .seconds(86_400 + 700))
        #expect(world.requests.count - before <= 1 && world.count(with: 2) == plan.members)
    }

    @Test("without the engine, the members together keep the rate of the fallback")
    func fallback() {
        var plan = FleetWorld.Plan()
        (plan.members, plan.headAge, plan.engineDown) = (5_000, .seconds(60), .seconds(60))
        var world = FleetWorld(plan)
        world.run(until: .seconds(60 + 900))
        #expect(world.requests.count <= 1)
        let length = 7_200
        world.run(until: .seconds(60 + 900 + length))
        #expect(world.requests.count > 1_000)
        #expect(Double(world.requests.count) / Double(length) <= 5)
        #expect(world.worstSecond <= 15)
    }

    @Test("without a fallback, a fleet without its engine requests nothing")
    func noFallback() {
        var plan = FleetWorld.Plan()
        (plan.members, plan.engineUp, plan.fallback) = (1_000, .seconds(100_000), nil)
        var world = FleetWorld(plan)
        world.run(until: .seconds(7_200))
        #expect(world.requests.isEmpty && world.obstacles > 1_000)
    }

    @Test("lost and doubled messages cost time, and few requests")
    func lossy() {
        for seed in 1...5 {
            var plan = FleetWorld.Plan()
            (plan.members, plan.seed, plan.lossy, plan.every) = (500, UInt64(seed), 0.02, .seconds(600))
            plan.answer = { $0 > .seconds(1_000) ? .content(2) : .content(1) }
            var world = FleetWorld(plan)
            world.run(until: .seconds(6_000))
            #expect((9...12).contains(world.requests.count))
            #expect(world.count(with: 2) == plan.members && world.rejections.isEmpty)
        }
    }

    // MARK: Roll-outs

    private static func rollOut() -> FleetWorld.Plan {
        var plan = FleetWorld.Plan()
        (plan.members, plan.every) = (1_000, .seconds(4 * 3_600))
        plan.answer = { $0 > .seconds(3_600) ? .content(2) : .content(1) }
        plan.rollOut = RollOutPlan(steps: [10_000, 100_000, 1_000_000], length: .seconds(1_800), mostFailures: 3)
        return plan
    }

    @Test("new content goes to the steps of its roll-out one after the other, with one request")
    func steps() {
        var world = FleetWorld(Self.rollOut())
        world.run(until: .seconds(3_600))
        // The first content of a fleet goes to all.
        #expect(world.count(with: 1) == 1_000 && world.rollOut == nil)
        world.run(until: .seconds(4 * 3_600 + 600))
        #expect((2...30).contains(world.count(with: 2)))
        #expect(world.count(with: 1) + world.count(with: 2) == 1_000)
        world.run(until: .seconds(4 * 3_600 + 1_800 + 600))
        #expect((50...170).contains(world.count(with: 2)))
        world.run(until: .seconds(4 * 3_600 + 3_600 + 600))
        #expect(world.count(with: 2) == 1_000 && world.rollOut == nil)
        #expect(world.requests.count == 2 && world.rewrites == 2 && world.rejections.isEmpty)
    }

    @Test("bad content reaches at most the first step and three members", arguments: 1...5)
    func bad(seed: Int) {
        var plan = Self.rollOut()
        (plan.seed, plan.bad) = (UInt64(seed), 2)
        // With about ten members in the first step, fewer than three may be there by chance in some seed.
        plan.rollOut?.mostFailures = 1
        var world = FleetWorld(plan)
        world.run(until: .seconds(3 * 4 * 3_600))
        #expect(world.rollOut?.isHalted == true)
        let share = Int((Double(plan.members) * 0.01).rounded(.up))
        // The place of each member is random: the share of a thousand has a standard deviation of three.
        #expect((1...(share + 3 * 4)).contains(world.count(with: 2)), "\(world.count(with: 2))")
        #expect(world.count(with: 1) + world.count(with: 2) == 1_000)
    }

    @Test("an operator halts a roll-out, and lets it go on")
    func orders() {
        var world = FleetWorld(Self.rollOut())
        world.run(until: .seconds(4 * 3_600 + 600))
        let first = world.count(with: 2)
        world.order(.halt)
        world.run(until: .seconds(8 * 3_600 - 600))
        #expect(world.count(with: 2) == first && world.rollOut?.isHalted == true)
        world.order(.resume)
        world.run(until: .seconds(8 * 3_600 + 3_600 + 600))
        #expect(world.count(with: 2) == 1_000)
    }

    @Test("when an operator demands a check, the fleet makes one request")
    func demand() {
        var plan = FleetWorld.Plan()
        plan.members = 2_000
        plan.answer = { $0 > .seconds(600) ? .content(2) : .content(1) }
        var world = FleetWorld(plan)
        world.run(until: .seconds(1_000))
        #expect(world.requests.count == 1 && world.count(with: 1) == 2_000)
        world.order(nil)
        world.run(until: .seconds(1_060))
        #expect(world.requests.count == 2 && world.count(with: 2) == 2_000)
    }
}
