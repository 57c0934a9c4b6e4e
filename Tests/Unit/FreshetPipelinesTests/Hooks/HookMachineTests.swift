import FreshetModel
import Testing
import WorldTestSupport

@testable import FreshetPipelines

@Suite("Pending hooks")
struct HookMachineTests {
    @Test("a change runs the hook once; the same generation again, or no change, runs nothing")
    func once() throws {
        var scheduler = HookDriver()
        scheduler.configure("a", ["x"], current: 1)
        #expect(scheduler.started == [])
        scheduler.generationChanged("a", 2)
        #expect(scheduler.started == ["a x 2 after 1, attempt 1"])
        scheduler.succeed("a")
        scheduler.generationChanged("a", 2)
        #expect(scheduler.started == [])
        #expect(scheduler.machine.isSettled && scheduler.machine.pendingHooks(of: "a").isEmpty)
    }

    @Test("a new hook is not pending for the existing copy; without a copy it runs for the first one")
    func new() throws {
        var scheduler = HookDriver()
        scheduler.configure("a", ["x"], current: nil)
        scheduler.generationChanged("a", 1, causes: "timer")
        let order = try #require(scheduler.orders.first)
        #expect(order.notified == nil && order.causes == "timer" && order.memory.tried == identity(1))
    }

    @Test("changes during a hook's run lead to one more run, with the newest generation")
    func merged() {
        var scheduler = HookDriver()
        scheduler.configure("a", ["x"], current: 1)
        for generation in 2...5 { scheduler.generationChanged("a", generation) }
        #expect(scheduler.started == ["a x 2 after 1, attempt 1"])
        scheduler.succeed("a")
        #expect(scheduler.started == ["a x 5 after 2, attempt 1"])
        scheduler.succeed("a")
        #expect(scheduler.started == [] && scheduler.machine.isSettled)
    }

    @Test("a failed hook is retried after a wait within the limits, until it succeeds; no other run starts meanwhile")
    func retried() throws {
        var scheduler = HookDriver()
        scheduler.configure("a", ["x"], current: 1)
        scheduler.generationChanged("a", 2)
        for attempt in 1...20 {
            #expect(scheduler.started == ["a x 2 after 1, attempt \(attempt)"])
            scheduler.fail("a")
            #expect(scheduler.started == [] && scheduler.machine.isSettled)
            let pending = try #require(scheduler.machine.pendingHooks(of: "a").first)
            #expect(pending.memory.attempts == attempt && pending.memory.error == "broken" && pending.isFailing)
            #expect(pending.memory.failingSince == 1_000)
            let wait = try #require(pending.next) - scheduler.now
            let longest = min(Duration.seconds(1 << min(attempt - 1, 10)), .seconds(300))
            #expect(wait >= .zero && wait <= longest)
            #expect(scheduler.wakeUp == pending.next)
            scheduler.wake()
        }
        scheduler.succeed("a")
        #expect(scheduler.machine.pendingHooks(of: "a").isEmpty && scheduler.machine.failing == 0)
        #expect(scheduler.started == [])
    }

    @Test("the wait grows up to its limit")
    func limit() throws {
        var scheduler = HookDriver()
        scheduler.configure("a", ["x"], current: 1)
        scheduler.generationChanged("a", 2)
        var longest = Duration.zero
        for _ in 1...200 {
            scheduler.fail("a")
            longest = max(longest, try #require(scheduler.machine.pendingHooks(of: "a").first?.next) - scheduler.now)
            scheduler.wake()
        }
        #expect(longest > .seconds(250) && longest <= HookMachine.retry.to)
    }

    @Test("a newer generation immediately replaces a failed one, and its attempts count from 1")
    func replaced() {
        var scheduler = HookDriver()
        scheduler.configure("a", ["x"], current: 1)
        scheduler.generationChanged("a", 2)
        scheduler.fail("a")
        scheduler.fail("a", wakes: true)
        scheduler.generationChanged("a", 3)
        #expect(scheduler.started.last == "a x 3 after 1, attempt 1")
        scheduler.succeed("a")
        #expect(scheduler.machine.isSettled && scheduler.machine.failing == 0)
        scheduler.advance(.seconds(3_600))
        #expect(scheduler.started == [])
    }

    @Test("a newer generation during a failing attempt is tried immediately")
    func replacedMeanwhile() {
        var scheduler = HookDriver()
        scheduler.configure("a", ["x"], current: 1)
        scheduler.generationChanged("a", 2)
        scheduler.generationChanged("a", 3)
        scheduler.fail("a")
        #expect(scheduler.started.last == "a x 3 after 1, attempt 1")
    }

    @Test("a rollback to the last notified generation is pending if the generation between had an attempt")
    func rolledBack() {
        var scheduler = HookDriver()
        scheduler.configure("a", ["x"], current: 1)
        scheduler.generationChanged("a", 2)
        scheduler.fail("a")
        scheduler.generationChanged("a", 1, causes: "rollback")
        #expect(scheduler.started.last == "a x 1 after 1, attempt 1")
        scheduler.succeed("a")
        #expect(scheduler.machine.isSettled)
    }

    @Test("the withdrawal of the copy is a change, and so is its return; each is pending until the hook has run")
    func withdrawn() throws {
        var scheduler = HookDriver()
        scheduler.configure("a", ["x"], current: 1)
        var gone = generation(1)
        gone.withdrawnSince = 5
        scheduler.perform(scheduler.machine.generationChanged("a", gone, causes: "withdrawn", at: scheduler.now))
        var order = try #require(scheduler.orders.last)
        #expect(order.notified == identity(1) && order.memory.tried?.isWithdrawn == true && order.causes == "withdrawn")
        // The same event again, with less information about its causes.
        scheduler.perform(scheduler.machine.generationChanged("a", gone, causes: "something", at: scheduler.now))
        scheduler.fail("a")
        scheduler.wake()
        order = try #require(scheduler.orders.last)
        #expect(order.attempt == 2 && order.causes == "withdrawn")
        scheduler.succeed("a")
        #expect(scheduler.machine.isSettled)
        scheduler.generationChanged("a", 1, causes: "timer")
        order = try #require(scheduler.orders.last)
        #expect(order.notified?.isWithdrawn == true && order.memory.tried == identity(1))
        scheduler.succeed("a")
        #expect(scheduler.machine.isSettled && scheduler.machine.pendingHooks(of: "a").isEmpty)
    }

    @Test("other content under the same number is another generation")
    func sameNumber() {
        var scheduler = HookDriver()
        scheduler.configure("a", ["x"], current: 1)
        var other = generation(1)
        other.digest = "other"
        scheduler.perform(scheduler.machine.generationChanged("a", other, causes: nil, at: scheduler.now))
        #expect(scheduler.started == ["a x 1 after 1, attempt 1"])
    }

    @Test("a late event about a replaced generation is ignored")
    func late() {
        var scheduler = HookDriver()
        scheduler.configure("a", ["x"], current: 1)
        var (second, third) = (generation(2), generation(3))
        (second.revision, third.revision) = (1, 2)
        scheduler.perform(scheduler.machine.generationChanged("a", third, causes: nil, at: scheduler.now))
        scheduler.perform(scheduler.machine.generationChanged("a", second, causes: nil, at: scheduler.now))
        scheduler.succeed("a")
        #expect(scheduler.orders.map(\.generation.number) == [3] && scheduler.machine.isSettled)
    }

    @Test("after a restart a pending hook is tried immediately, and its attempts continue to count")
    func restarted() throws {
        var scheduler = HookDriver()
        let memory = StoredHookState(
            notified: identity(1), tried: identity(2), attempts: 7, failingSince: 5, error: "broken")
        let hook = (definition: HookDefinition(["/x"]), memory: memory)
        scheduler.perform(scheduler.machine.configure("a", [hook], current: generation(2), at: scheduler.now))
        #expect(scheduler.started == ["a x 2 after 1, attempt 8"])
        scheduler.fail("a")
        let pending = try #require(scheduler.machine.pendingHooks(of: "a").first)
        #expect(pending.memory.attempts == 8 && pending.memory.failingSince == 5)
    }

    @Test("a hook that was interrupted by a kill is pending, even for the generation of its last success")
    func killed() {
        for current in [1, 2] {
            var scheduler = HookDriver()
            let memory = StoredHookState(notified: identity(1), tried: identity(2))
            scheduler.perform(
                scheduler.machine.configure(
                    "a", [(HookDefinition(["/x"]), memory)], current: generation(current), at: scheduler.now))
            #expect(scheduler.started == ["a x \(current) after 1, attempt 1"])
        }
    }

    @Test("without a copy no hook is pending, whatever happened before")
    func nothing() {
        var scheduler = HookDriver()
        let memory = StoredHookState(
            notified: identity(1), tried: identity(2), attempts: 1, failingSince: 1, error: "broken")
        scheduler.perform(
            scheduler.machine.configure("a", [(HookDefinition(["/x"]), memory)], current: nil, at: scheduler.now))
        #expect(
            scheduler.started == [] && scheduler.machine.isSettled && scheduler.machine.pendingHooks(of: "a").isEmpty)
    }

    @Test("the hooks of a pipeline run one after the other; a failing hook does not delay the others")
    func several() {
        var scheduler = HookDriver()
        scheduler.configure("a", ["x", "y"], current: 1)
        scheduler.generationChanged("a", 2)
        #expect(scheduler.started == ["a x 2 after 1, attempt 1"])
        scheduler.fail("a")
        #expect(scheduler.started == ["a y 2 after 1, attempt 1"])
        scheduler.succeed("a")
        #expect(scheduler.started == [])
        #expect(scheduler.machine.pendingHooks(of: "a").map(\.hook.command) == [["/x"]])
        scheduler.wake()
        #expect(scheduler.started == ["a x 2 after 1, attempt 2"])
    }

    @Test(
        "a limited number of hooks run at the same time over all pipelines, the others in the order in which they came")
    func bounded() {
        var scheduler = HookDriver()
        let names = (0..<10).map { "p\($0)" }
        for name in names { scheduler.configure(name, ["x", "y"], current: 1) }
        for name in names { scheduler.generationChanged(name, 2) }
        var begun = scheduler.take()
        #expect(begun == names.prefix(HookMachine.concurrencyLimit).map { "\($0) x 2 after 1, attempt 1" })
        var order: [String] = []
        while !begun.isEmpty {
            let line = begun.removeFirst()
            order.append(line)
            scheduler.succeed(String(line.prefix { $0 != " " }))
            begun += scheduler.take()
            #expect(begun.count <= HookMachine.concurrencyLimit)
        }
        #expect(order.count == 20 && Set(order).count == 20)
        // The second hook of the first pipeline comes after the first hooks of all pipelines.
        #expect(order.prefix(10).allSatisfy { $0.contains(" x ") })
    }

    @Test("when the daemon ends, an interrupted hook stays pending, and no other hook begins")
    func cancelled() {
        var scheduler = HookDriver()
        scheduler.configure("a", ["x"], current: 1)
        scheduler.generationChanged("a", 2)
        scheduler.end("a", .cancelled)
        #expect(scheduler.started == [])
        #expect(scheduler.machine.pendingHooks(of: "a").map(\.memory.attempts) == [0])
    }

    @Test("a reload keeps the state of hooks that stay, and drops the others; a running hook is not cancelled")
    func reconfigured() {
        var scheduler = HookDriver()
        scheduler.configure("a", ["x", "y"], current: 1)
        scheduler.generationChanged("a", 2)
        scheduler.fail("a")
        #expect(scheduler.take() == ["a y 2 after 1, attempt 1"])
        // The given state is older than the known one.
        scheduler.configure("a", ["x"], current: 2, timeout: .seconds(5))
        #expect(scheduler.started == [])
        #expect(scheduler.machine.pendingHooks(of: "a").map(\.memory.attempts) == [1])
        scheduler.succeed("a")
        scheduler.wake()
        #expect(scheduler.started == ["a x 2 after 1, attempt 2"])
        #expect(scheduler.orders.last?.hook.timeout == .seconds(5))
        scheduler.perform(scheduler.machine.dismiss("a", at: scheduler.now))
        scheduler.fail("a")
        scheduler.advance(.seconds(3_600))
        #expect(scheduler.started == [] && scheduler.machine.isSettled && scheduler.machine.failing == 0)
    }

    @Test("a reload with an older copy does not replace the newer known one")
    func reconfiguredLate() {
        var scheduler = HookDriver()
        scheduler.configure("a", ["x"], current: 1)
        var second = generation(2)
        second.revision = 1
        scheduler.perform(scheduler.machine.generationChanged("a", second, causes: "timer", at: scheduler.now))
        scheduler.configure("a", ["x", "y"], current: 1)
        scheduler.succeed("a")
        #expect(scheduler.started == ["a y 2 after 1, attempt 1"])
        #expect(scheduler.orders.last?.causes == "timer")
        scheduler.succeed("a")
        #expect(scheduler.machine.isSettled && scheduler.machine.pendingHooks(of: "a").isEmpty)
    }

    @Test("generations of a pipeline without hooks are not kept")
    func without() {
        var scheduler = HookDriver()
        scheduler.generationChanged("a", 2)
        #expect(scheduler.started == [] && scheduler.machine.isSettled)
    }

    @Test("different commands have different identities")
    func stableIdentity() {
        let commands = [
            ["/x", "a b"], ["/x", "a", "b"], ["/x a", "b"], ["/x", "a\\", "b"], ["/x", "a\\ b"], ["/x", "", "a"],
        ]
        #expect(Set(commands.map { HookDefinition($0).identity }).count == commands.count)
        #expect(HookDefinition(["/x"], timeout: .seconds(1)).identity == HookDefinition(["/x"]).identity)
    }
}
