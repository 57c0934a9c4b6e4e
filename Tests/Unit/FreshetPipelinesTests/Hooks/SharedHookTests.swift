import FreshetModel
import Testing
import WorldTestSupport

@testable import FreshetPipelines

/// The default quiet period is 2 s, and the longest burst 10 s.
@Suite("Hooks of several pipelines")
struct SharedHookTests {
    private func driver(_ pipelines: [String] = ["a", "b", "c"]) -> SharedHookDriver {
        var driver = SharedHookDriver()
        driver.use(SharedHookDriver.hook("all", pipelines))
        for name in pipelines { driver.join(name, "all", current: 1) }
        return driver
    }

    @Test("a burst of changes is one run; the copies that exist already do not count")
    func burst() {
        var driver = driver()
        driver.advance(.seconds(60))
        #expect(driver.take() == [] && driver.machine.isSettled)
        driver.change("a", 2)
        driver.advance(.seconds(1))
        driver.change("c", 2)
        driver.change("d", 7)
        driver.advance(.seconds(1))
        driver.change("a", 3)
        driver.advance(.milliseconds(1_900))
        #expect(driver.take() == [] && !driver.machine.isSettled)
        #expect(driver.pending("a").map(\.wait) == [.quiet] && driver.pending("b").isEmpty)
        driver.advance(.milliseconds(100))
        #expect(driver.take() == ["all: a 3, c 2"])
        #expect(driver.pending("a").map(\.isRunning) == [true])
        driver.succeed("all")
        driver.advance(.seconds(60))
        #expect(driver.take() == [] && driver.machine.isSettled && driver.pending("a").isEmpty)
    }

    @Test("a burst that is held ends when no more changes are expected, however long it took")
    func heldBurst() {
        var driver = SharedHookDriver()
        driver.machine.holdBursts()
        driver.use(SharedHookDriver.hook("all", ["a", "b"]), SharedHookDriver.hook("other", ["c"]))
        driver.join("a", "all", current: 2, memory: StoredHookState(notified: identity(1)))
        driver.join("b", "all", current: 1)
        driver.join("c", "other", current: 1)
        driver.advance(.seconds(100))
        driver.change("b", 2)
        driver.advance(.seconds(100))
        #expect(driver.take() == [] && !driver.machine.isSettled)
        driver.endBursts()
        #expect(driver.take() == ["all: a 2, b 2"])
        driver.succeed("all")
        #expect(driver.machine.isSettled)
        driver.change("c", 2)
        driver.advance(.seconds(2))
        #expect(driver.take() == ["other: c 2"])
    }

    @Test("a steady stream of changes does not postpone the run for ever")
    func upperBound() {
        var driver = driver()
        for number in 2..<22 {
            driver.change("a", number)
            driver.advance(.seconds(1))
        }
        #expect(driver.take() == ["all: a 11"])
        driver.succeed("all")
        // The changes during the run are as old as their burst may become.
        #expect(driver.take() == ["all: a 21"])
    }

    @Test("the order has the generation of the last success, and the causes")
    func order() throws {
        var driver = driver()
        driver.change("a", 2, causes: "timer")
        driver.change("a", 3, causes: "network")
        driver.advance(.seconds(2))
        let first = try #require(driver.running["all"]?.changes.first)
        #expect(first.notified == identity(1) && first.causes == "network" && first.attempt == 1)
        driver.succeed("all")
        driver.change("a", 4)
        driver.advance(.seconds(2))
        #expect(driver.running["all"]?.changes.map(\.notified) == [identity(3)])
    }

    @Test("changes during a run lead to one more run, for them only")
    func duringARun() {
        var driver = driver()
        driver.change("a", 2)
        driver.change("b", 2)
        driver.advance(.seconds(2))
        #expect(driver.take() == ["all: a 2, b 2"])
        driver.change("b", 3)
        driver.change("c", 2)
        driver.advance(.seconds(100))
        #expect(driver.take() == [])
        driver.succeed("all")
        #expect(driver.take() == ["all: b 3, c 2"])
        driver.succeed("all")
        driver.advance(.seconds(100))
        #expect(driver.take() == [])
    }

    @Test("a change that is undone before the run does not count")
    func undone() {
        var driver = driver()
        driver.change("a", 2)
        driver.change("a", 1)
        #expect(driver.pending("a").isEmpty && driver.machine.isSettled)
        driver.advance(.seconds(100))
        #expect(driver.take() == [])
    }

    @Test("a failed run is repeated with its changes and the new ones, after the backoff")
    func failure() throws {
        var driver = driver()
        driver.change("a", 2)
        driver.advance(.seconds(2))
        #expect(driver.take() == ["all: a 2"] && driver.machine.failing == 0)
        driver.fail("all")
        #expect(driver.machine.failing == 1 && driver.machine.isSettled)
        let waiting = try #require(driver.pending("a").first)
        #expect(waiting.wait == .backoff && waiting.isFailing && waiting.memory.error == "broken")
        #expect(waiting.shared == "all" && driver.pending("b").isEmpty)
        driver.change("b", 2)
        driver.advance(.seconds(300))
        #expect(driver.take() == ["all: a 2, b 2, attempt 2"] && driver.machine.failing == 1)
        driver.fail("all")
        driver.advance(.seconds(300))
        #expect(driver.take() == ["all: a 2, b 2, attempt 3"])
        driver.succeed("all")
        #expect(driver.machine.failing == 0 && driver.pending("a").isEmpty && driver.pending("b").isEmpty)
        driver.change("a", 3)
        driver.advance(.seconds(2))
        #expect(driver.take() == ["all: a 3"])
    }

    @Test("a stream of changes does not shorten the backoff")
    func backoff() {
        var driver = driver()
        driver.change("a", 2)
        var runs = 0
        for number in 3..<2_000 {
            driver.advance(.seconds(1))
            driver.change("a", number)
            runs += driver.take().count
            driver.fail("all")
        }
        // The backoff grows to five minutes, of which a random part passes.
        #expect((8...50).contains(runs))
    }

    @Test("after a restart the changes that were not reported are pending, the others not")
    func restart() {
        var driver = SharedHookDriver()
        driver.use(SharedHookDriver.hook("all", ["a", "b", "c", "d"]))
        driver.join("a", "all", current: 2, memory: StoredHookState(notified: identity(1)))
        driver.join("b", "all", current: 2, memory: StoredHookState(notified: identity(2)))
        // The daemon was killed during a run.
        driver.join("c", "all", current: 2, memory: StoredHookState(notified: identity(2), tried: identity(2)))
        driver.join("d", "all", current: nil, memory: StoredHookState())
        driver.advance(.seconds(2))
        #expect(driver.take() == ["all: a 2, c 2"])
        driver.succeed("all")
        driver.change("d", 1)
        driver.advance(.seconds(2))
        #expect(driver.take() == ["all: d 1"])
    }

    @Test("a failure before the restart is known afterwards")
    func failingAtRestart() {
        var driver = SharedHookDriver()
        driver.use(SharedHookDriver.hook("all", ["a"]))
        var memory = StoredHookState(notified: identity(1)).trying(identity(2))
        memory = memory.failed("broken", at: 5).failed("broken", at: 6)
        driver.join("a", "all", current: 2, memory: memory)
        #expect(driver.machine.failing == 1)
        driver.advance(.seconds(2))
        #expect(driver.take() == ["all: a 2, attempt 3"])
    }

    @Test("when the daemon stops, the changes stay pending")
    func cancelled() {
        var driver = driver()
        driver.change("a", 2)
        driver.advance(.seconds(2))
        driver.cancel("all")
        #expect(driver.pending("a").map(\.isRunning) == [false])
    }

    @Test("a pipeline that is removed while the hook waits is not reported")
    func removedPipeline() {
        var driver = driver()
        driver.change("a", 2)
        driver.change("b", 2)
        driver.dismiss("a")
        driver.advance(.seconds(2))
        #expect(driver.take() == ["all: b 2"])
        driver.succeed("all")
        driver.change("b", 3)
        driver.dismiss("b")
        driver.advance(.seconds(60))
        #expect(driver.take() == [] && driver.machine.isSettled)
    }

    @Test("a pipeline that is removed during a run is forgotten")
    func removedDuringRun() {
        var driver = driver()
        driver.change("a", 2)
        driver.advance(.seconds(2))
        #expect(driver.take() == ["all: a 2"])
        driver.dismiss("a")
        driver.fail("all")
        driver.advance(.seconds(600))
        #expect(driver.take() == [] && driver.machine.failing == 0 && driver.machine.isSettled)
    }

    @Test("a removed hook does not run; one that is added again is new")
    func removedHook() {
        var driver = driver()
        driver.change("a", 2)
        driver.use()
        driver.advance(.seconds(60))
        #expect(driver.take() == [] && driver.pending("a").isEmpty && driver.machine.isSettled)
        driver.use(SharedHookDriver.hook("all", ["a"]))
        driver.join("a", "all", current: 2)
        driver.advance(.seconds(60))
        #expect(driver.take() == [])
        driver.change("a", 3)
        driver.advance(.seconds(2))
        #expect(driver.take() == ["all: a 3"])
        // Removed and added during its run: one process at a time, and the old result does not count.
        driver.use()
        driver.use(SharedHookDriver.hook("all", ["a"]))
        driver.join("a", "all", current: 3)
        driver.change("a", 4)
        driver.advance(.seconds(60))
        #expect(driver.take() == [])
        driver.fail("all")
        #expect(driver.take() == ["all: a 4"] && driver.machine.failing == 0)
    }

    @Test("a reload keeps the state; another program of the same hook does not wait for the backoff")
    func reload() {
        var driver = driver()
        driver.change("a", 2)
        driver.advance(.seconds(2))
        #expect(driver.take() == ["all: a 2"])
        for _ in 0..<6 {
            driver.fail("all")
            driver.advance(.seconds(300))
        }
        driver.fail("all")
        _ = driver.take()
        driver.use(SharedHookDriver.hook("all", ["a", "b"]))
        #expect(driver.take() == [])
        var other = SharedHookDriver.hook("all", ["a", "b"])
        other.action = HookDefinition(["/repaired"])
        driver.use(other)
        #expect(driver.take() == ["all: a 2, attempt 8"])
        driver.succeed("all")
        driver.change("c", 2)
        driver.advance(.seconds(60))
        #expect(driver.take() == [])
    }

    @Test("a reload with a shorter quiet period shortens the burst in progress")
    func shorterQuiet() {
        var driver = SharedHookDriver()
        driver.use(SharedHookDriver.hook("all", ["a"], quiet: .seconds(60), atMost: .seconds(600)))
        driver.join("a", "all", current: 1)
        driver.change("a", 2)
        driver.advance(.seconds(1))
        driver.use(SharedHookDriver.hook("all", ["a"], quiet: .seconds(3), atMost: .seconds(10)))
        driver.advance(.milliseconds(2_900))
        #expect(driver.take() == [])
        driver.advance(.milliseconds(100))
        #expect(driver.take() == ["all: a 2"])
    }

    @Test("a hook waits for the host's part of the splay, which changes do not prolong")
    func splay() {
        var driver = SharedHookDriver()
        driver.use(SharedHookDriver.hook("all", ["a"], splay: .seconds(60)))
        driver.join("a", "all", current: 1)
        driver.change("a", 2)
        #expect(driver.pending("a").map(\.wait) == [.splay])
        driver.advance(.seconds(20))
        driver.change("a", 3)
        driver.advance(.seconds(9))
        #expect(driver.take() == [])
        driver.advance(.seconds(1))
        #expect(driver.take() == ["all: a 3"])
    }

    @Test("one limit applies to the hooks of one and of several pipelines together")
    func limits() {
        let one = HookLimit(group: "restarts", atOnce: 1)
        var driver = SharedHookDriver()
        driver.use(
            SharedHookDriver.hook("all", ["a", "b"], quiet: .zero, limit: one),
            SharedHookDriver.hook("some", ["a"], quiet: .zero, limit: one))
        driver.join("a", "all", "some", current: 1)
        driver.configureOwn("b", current: 1, limit: one)
        driver.join("b", "all", current: 1)
        driver.change("b", 2)
        #expect(driver.take() == ["all: b 2"] && driver.pending("b").map(\.wait) == [.group("restarts"), nil])
        driver.change("a", 2)
        #expect(driver.take() == [])
        driver.succeed("all")
        #expect(driver.take() == ["b alone 2"])
        driver.succeedOwn("b")
        #expect(driver.take() == ["some: a 2"])
        driver.succeed("some")
        #expect(driver.take() == ["all: a 2"])
        driver.succeed("all")
        #expect(driver.take() == [] && driver.machine.isSettled)
    }

    @Test("at most four hooks run at the same time, of whatever kind")
    func concurrency() {
        var driver = SharedHookDriver()
        let names = ["1", "2", "3", "4", "5"]
        for name in names { driver.configureOwn("own\(name)", current: 1) }
        driver.use(
            SharedHookDriver.hook("x", ["a"], quiet: .zero), SharedHookDriver.hook("y", ["a"], quiet: .zero),
            SharedHookDriver.hook("z", ["a"], quiet: .zero))
        driver.join("a", "x", "y", "z", current: 1)
        driver.change("a", 2)
        for name in names { driver.change("own\(name)", 2) }
        #expect(driver.take() == ["x: a 2", "y: a 2", "z: a 2", "own1 alone 2"])
        driver.succeed("y")
        #expect(driver.take() == ["own2 alone 2"])
        driver.change("a", 3)
        driver.succeedOwn("own1")
        driver.succeedOwn("own2")
        #expect(driver.take() == ["own3 alone 2", "own4 alone 2"])
        driver.succeed("x")
        driver.succeed("z")
        #expect(driver.take() == ["own5 alone 2", "y: a 3"])
    }

    @Test("a run has a limited number of changes; the next one follows immediately with the others")
    func manyPipelines() {
        let names = (0..<2_500).map { "p\($0)" }
        var driver = driver(names)
        for name in names { driver.change(name, 2) }
        driver.advance(.seconds(2))
        var reported: Set<String> = []
        var sizes: [Int] = []
        while let order = driver.running["all"] {
            reported.formUnion(order.changes.map(\.pipeline))
            sizes.append(order.changes.count)
            #expect(order.changes.count + order.more + sizes.dropLast().reduce(0, +) == 2_500)
            driver.succeed("all")
        }
        #expect(sizes == [1_000, 1_000, 500] && reported.count == 2_500)
        #expect(driver.machine.isSettled)
    }
}
