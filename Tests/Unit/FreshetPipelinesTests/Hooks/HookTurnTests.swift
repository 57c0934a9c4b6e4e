import FreshetModel
import Testing
import WorldTestSupport

@testable import FreshetPipelines

/// In ``HookDriver`` each pipeline waits half of a splay.
@Suite("The splay and the turns of hooks")
struct HookTurnTests {
    private let one = HookLimit(group: "restarts", atOnce: 1)

    private func waits(_ driver: HookDriver, _ name: String) -> [HookMachine.Wait?] {
        driver.machine.pendingHooks(of: name).map(\.wait)
    }

    @Test("a change waits for the host's part of the splay; further changes do not prolong the wait")
    func splay() throws {
        var driver = HookDriver()
        driver.configure("a", ["x"], current: 1, splay: .seconds(60))
        driver.generationChanged("a", 2)
        #expect(driver.started == [] && waits(driver, "a") == [.splay] && driver.machine.isSettled)
        let due = try #require(driver.machine.pendingHooks(of: "a").first?.next)
        #expect(due == driver.now + .seconds(30) && driver.wakeUp == due)
        driver.advance(.seconds(20))
        driver.generationChanged("a", 3)
        #expect(driver.started == [] && driver.machine.pendingHooks(of: "a").first?.next == due)
        driver.wake()
        #expect(driver.started == ["a x 3 after 1, attempt 1"] && waits(driver, "a") == [nil])
        // The next change waits again; a change during the run, too.
        driver.generationChanged("a", 4)
        driver.succeed("a")
        #expect(driver.started == [] && waits(driver, "a") == [.splay])
        driver.wake()
        #expect(driver.started == ["a x 4 after 3, attempt 1"])
        driver.succeed("a")
        #expect(driver.machine.isSettled && driver.machine.pendingHooks(of: "a").isEmpty)
    }

    @Test("a failed hook waits for its backoff alone; a newer generation waits for the splay")
    func splayAndFailure() {
        var driver = HookDriver()
        driver.configure("a", ["x"], current: 1, splay: .seconds(60))
        driver.generationChanged("a", 2)
        driver.wake()
        driver.fail("a")
        #expect(waits(driver, "a") == [.backoff])
        driver.wake()
        #expect(driver.started == ["a x 2 after 1, attempt 2"])
        driver.fail("a")
        driver.generationChanged("a", 3)
        #expect(driver.started == [] && waits(driver, "a") == [.splay])
        driver.advance(.seconds(30))
        #expect(driver.started == ["a x 3 after 1, attempt 1"])
    }

    @Test("a change that is taken back during the wait runs nothing")
    func splayTakenBack() {
        var driver = HookDriver()
        driver.configure("a", ["x"], current: 1, splay: .seconds(60))
        driver.generationChanged("a", 2)
        driver.generationChanged("a", 1)
        #expect(driver.machine.pendingHooks(of: "a").isEmpty)
        driver.advance(.seconds(60))
        #expect(driver.started == [] && driver.machine.isSettled)
    }

    @Test(
        "a hook that is pending after a restart waits, unless an attempt has failed; a reload without the splay ends it"
    )
    func splayConfigured() {
        var driver = HookDriver()
        driver.configure("a", ["x"], current: 2, notified: 1, splay: .seconds(60))
        #expect(driver.started == [] && waits(driver, "a") == [.splay])
        driver.advance(.seconds(10))
        driver.configure("a", ["x"], current: 2, notified: 1, splay: .seconds(60))
        driver.advance(.seconds(19))
        #expect(driver.started == [])
        driver.advance(.seconds(1))
        #expect(driver.started == ["a x 2 after 1, attempt 1"])
        driver.succeed("a")
        driver.generationChanged("a", 3)
        #expect(driver.started == [])
        driver.configure("a", ["x"], current: 3)
        #expect(driver.started == ["a x 3 after 2, attempt 1"])
        var failed = StoredHookState(notified: identity(1)).trying(identity(2))
        failed = failed.failed("broken", at: 1)
        var definition = HookDefinition(["/x"])
        definition.splay = .seconds(60)
        let actions = driver.machine.configure(
            "b", [(definition, failed)], current: generation(2), at: driver.now)
        #expect(actions.contains { if case .run = $0 { true } else { false } })
    }

    @Test("hooks of a group take turns over all pipelines, in the order of their changes; other hooks do not wait")
    func turns() {
        var driver = HookDriver()
        let names = ["a", "b", "c"]
        for name in names { driver.configure(name, ["x"], current: 1, limit: one) }
        driver.configure("other", ["x"], current: 1)
        for name in names { driver.generationChanged(name, 2) }
        driver.generationChanged("other", 2)
        #expect(driver.take() == ["a x 2 after 1, attempt 1", "other x 2 after 1, attempt 1"])
        #expect(waits(driver, "b") == [.group("restarts")] && !driver.machine.isSettled)
        driver.succeed("other")
        #expect(driver.take() == [])
        // A further change of a pipeline that waits keeps its turn.
        driver.generationChanged("b", 3)
        driver.succeed("a")
        #expect(driver.take() == ["b x 3 after 1, attempt 1"])
        // A hook that fails gives its turn to the next one, and comes again after its backoff.
        driver.fail("b")
        #expect(driver.take() == ["c x 2 after 1, attempt 1"] && waits(driver, "b") == [.backoff])
        driver.wake()
        #expect(driver.take() == [] && waits(driver, "b") == [.group("restarts")])
        driver.succeed("c")
        #expect(driver.take() == ["b x 3 after 1, attempt 2"])
        driver.succeed("b")
        #expect(driver.machine.isSettled)
    }

    @Test("the other hooks of a pipeline run while one waits for its group")
    func others() throws {
        var driver = HookDriver()
        driver.configure("a", ["x"], current: 1, limit: one)
        var limited = HookDefinition(["/x"])
        limited.limit = one
        let memory = StoredHookState(notified: identity(1))
        driver.perform(
            driver.machine.configure(
                "b", [(limited, memory), (HookDefinition(["/y"]), memory)], current: generation(1), at: driver.now))
        driver.generationChanged("a", 2)
        driver.generationChanged("b", 2)
        #expect(driver.take() == ["a x 2 after 1, attempt 1", "b y 2 after 1, attempt 1"])
        driver.succeed("a")
        // One hook of a pipeline runs at a time.
        #expect(driver.take() == [] && waits(driver, "b") == [.others, nil])
        driver.succeed("b")
        #expect(driver.take() == ["b x 2 after 1, attempt 1"])
    }

    @Test("a reload changes the number of a group while hooks run; a pipeline that is gone gives its turn back")
    func reloaded() {
        var driver = HookDriver()
        let two = HookLimit(group: "restarts", atOnce: 2)
        let names = ["a", "b", "c", "d"]
        for name in names { driver.configure(name, ["x"], current: 1, limit: two) }
        for name in names { driver.generationChanged(name, 2) }
        #expect(driver.take().count == 2)
        for name in names { driver.configure(name, ["x"], current: 2, limit: one) }
        driver.succeed("a")
        #expect(driver.take() == [])
        driver.perform(driver.machine.dismiss("b", at: driver.now))
        driver.perform(driver.machine.dismiss("c", at: driver.now))
        driver.succeed("b")
        #expect(driver.take() == ["d x 2 after 1, attempt 1"])
        // A permit more is used immediately.
        for name in ["c", "d"] { driver.configure(name, ["x"], current: 2, limit: two) }
        driver.generationChanged("c", 3)
        #expect(driver.take() == ["c x 3 after 2, attempt 1"])
    }

    @Test("thousands of pipelines in one group all get their turn")
    func many() {
        var driver = HookDriver()
        let names = (0..<2_000).map { "p\($0)" }
        for name in names { driver.configure(name, ["x"], current: 1, limit: one) }
        for name in names { driver.generationChanged(name, 2) }
        var order: [String] = []
        while let line = driver.take().first {
            let name = String(line.prefix { $0 != " " })
            order.append(name)
            driver.succeed(name)
        }
        #expect(order == names && driver.machine.isSettled)
    }
}
