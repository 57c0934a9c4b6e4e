import Testing

@testable import FreshetPipelines

@Suite("Which hooks are owed, and when")
struct HookMachineTests {
    @Test("a change runs the hook once; the same generation again, or nothing new, runs nothing")
    func once() throws {
        var desk = Desk()
        desk.configure("a", ["x"], current: 1)
        #expect(desk.started == [])
        desk.offer("a", 2)
        #expect(desk.started == ["a x 2 after 1, attempt 1"])
        desk.succeed("a")
        desk.offer("a", 2)
        #expect(desk.started == [])
        #expect(desk.machine.isSettled && desk.machine.debts(of: "a").isEmpty)
    }

    @Test("a hook that is new owes nothing of what was there; without a copy it is told of the first one")
    func new() throws {
        var desk = Desk()
        desk.configure("a", ["x"], current: nil)
        desk.offer("a", 1, causes: "timer")
        let order = try #require(desk.orders.first)
        #expect(order.told == nil && order.causes == "timer" && order.memory.tried == mark(1))
    }

    @Test("changes while it runs lead to one more run, with the newest")
    func merged() {
        var desk = Desk()
        desk.configure("a", ["x"], current: 1)
        for generation in 2...5 { desk.offer("a", generation) }
        #expect(desk.started == ["a x 2 after 1, attempt 1"])
        desk.succeed("a")
        #expect(desk.started == ["a x 5 after 2, attempt 1"])
        desk.succeed("a")
        #expect(desk.started == [] && desk.machine.isSettled)
    }

    @Test("a failure is tried again after a wait within the limits, until it succeeds; nothing else is run meanwhile")
    func retried() throws {
        var desk = Desk()
        desk.configure("a", ["x"], current: 1)
        desk.offer("a", 2)
        for attempt in 1...20 {
            #expect(desk.started == ["a x 2 after 1, attempt \(attempt)"])
            desk.fail("a")
            #expect(desk.started == [] && desk.machine.isSettled)
            let debt = try #require(desk.machine.debts(of: "a").first)
            #expect(debt.memory.attempts == attempt && debt.memory.error == "broken" && debt.isFailing)
            #expect(debt.memory.failingSince == 1_000)
            let wait = try #require(debt.next) - desk.now
            let longest = min(Duration.seconds(1 << min(attempt - 1, 10)), .seconds(300))
            #expect(wait >= .zero && wait <= longest)
            #expect(desk.wakeUp == debt.next)
            desk.wake()
        }
        desk.succeed("a")
        #expect(desk.machine.debts(of: "a").isEmpty && desk.machine.failing == 0)
        #expect(desk.started == [])
    }

    @Test("the wait grows to its limit and no further")
    func limit() throws {
        var desk = Desk()
        desk.configure("a", ["x"], current: 1)
        desk.offer("a", 2)
        var longest = Duration.zero
        for _ in 1...200 {
            desk.fail("a")
            longest = max(longest, try #require(desk.machine.debts(of: "a").first?.next) - desk.now)
            desk.wake()
        }
        #expect(longest > .seconds(250) && longest <= HookMachine.retry.to)
    }

    @Test("a newer generation takes the place of one that failed, at once, and counts anew")
    func replaced() {
        var desk = Desk()
        desk.configure("a", ["x"], current: 1)
        desk.offer("a", 2)
        desk.fail("a")
        desk.fail("a", wakes: true)
        desk.offer("a", 3)
        #expect(desk.started.last == "a x 3 after 1, attempt 1")
        desk.succeed("a")
        #expect(desk.machine.isSettled && desk.machine.failing == 0)
        desk.advance(.seconds(3_600))
        #expect(desk.started == [])
    }

    @Test("a newer generation during an attempt that fails is tried at once")
    func replacedMeanwhile() {
        var desk = Desk()
        desk.configure("a", ["x"], current: 1)
        desk.offer("a", 2)
        desk.offer("a", 3)
        desk.fail("a")
        #expect(desk.started.last == "a x 3 after 1, attempt 1")
    }

    @Test("a rollback to what it was told of last is owed if an attempt was made for what came between")
    func rolledBack() {
        var desk = Desk()
        desk.configure("a", ["x"], current: 1)
        desk.offer("a", 2)
        desk.fail("a")
        desk.offer("a", 1, causes: "rollback")
        #expect(desk.started.last == "a x 1 after 1, attempt 1")
        desk.succeed("a")
        #expect(desk.machine.isSettled)
    }

    @Test("that the copy is withdrawn is a change, and so is its return; each is owed until it was told")
    func withdrawn() throws {
        var desk = Desk()
        desk.configure("a", ["x"], current: 1)
        var gone = generation(1)
        gone.withdrawnSince = 5
        desk.perform(desk.machine.offer("a", gone, causes: "withdrawn", at: desk.now))
        var order = try #require(desk.orders.last)
        #expect(order.told == mark(1) && order.memory.tried?.isWithdrawn == true && order.causes == "withdrawn")
        // Heard once more, by somebody who knows less of why.
        desk.perform(desk.machine.offer("a", gone, causes: "something", at: desk.now))
        desk.fail("a")
        desk.wake()
        order = try #require(desk.orders.last)
        #expect(order.attempt == 2 && order.causes == "withdrawn")
        desk.succeed("a")
        #expect(desk.machine.isSettled)
        desk.offer("a", 1, causes: "timer")
        order = try #require(desk.orders.last)
        #expect(order.told?.isWithdrawn == true && order.memory.tried == mark(1))
        desk.succeed("a")
        #expect(desk.machine.isSettled && desk.machine.debts(of: "a").isEmpty)
    }

    @Test("of the same number, other content is another generation")
    func sameNumber() {
        var desk = Desk()
        desk.configure("a", ["x"], current: 1)
        var other = generation(1)
        other.digest = "other"
        desk.perform(desk.machine.offer("a", other, causes: nil, at: desk.now))
        #expect(desk.started == ["a x 1 after 1, attempt 1"])
    }

    @Test("news that comes late, of what was replaced already, is none")
    func late() {
        var desk = Desk()
        desk.configure("a", ["x"], current: 1)
        var (second, third) = (generation(2), generation(3))
        (second.turn, third.turn) = (1, 2)
        desk.perform(desk.machine.offer("a", third, causes: nil, at: desk.now))
        desk.perform(desk.machine.offer("a", second, causes: nil, at: desk.now))
        desk.succeed("a")
        #expect(desk.orders.map(\.generation.number) == [3] && desk.machine.isSettled)
    }

    @Test("after a restart what was owed is tried at once, its attempts counted on")
    func restarted() throws {
        var desk = Desk()
        let memory = StoredHookState(told: mark(1), tried: mark(2), attempts: 7, failingSince: 5, error: "broken")
        let hook = (definition: HookDefinition(["/x"]), memory: memory)
        desk.perform(desk.machine.configure("a", [hook], current: generation(2), at: desk.now))
        #expect(desk.started == ["a x 2 after 1, attempt 8"])
        desk.fail("a")
        let debt = try #require(desk.machine.debts(of: "a").first)
        #expect(debt.memory.attempts == 8 && debt.memory.failingSince == 5)
    }

    @Test("one that a kill interrupted is owed, also for what it was told of before")
    func killed() {
        for current in [1, 2] {
            var desk = Desk()
            let memory = StoredHookState(told: mark(1), tried: mark(2))
            desk.perform(
                desk.machine.configure(
                    "a", [(HookDefinition(["/x"]), memory)], current: generation(current), at: desk.now))
            #expect(desk.started == ["a x \(current) after 1, attempt 1"])
        }
    }

    @Test("without a copy nothing is owed, whatever was")
    func nothing() {
        var desk = Desk()
        let memory = StoredHookState(told: mark(1), tried: mark(2), attempts: 1, failingSince: 1, error: "broken")
        desk.perform(
            desk.machine.configure("a", [(HookDefinition(["/x"]), memory)], current: nil, at: desk.now))
        #expect(desk.started == [] && desk.machine.isSettled && desk.machine.debts(of: "a").isEmpty)
    }

    @Test("the hooks of a pipeline run one after the other; one that fails holds up none of the others")
    func several() {
        var desk = Desk()
        desk.configure("a", ["x", "y"], current: 1)
        desk.offer("a", 2)
        #expect(desk.started == ["a x 2 after 1, attempt 1"])
        desk.fail("a")
        #expect(desk.started == ["a y 2 after 1, attempt 1"])
        desk.succeed("a")
        #expect(desk.started == [])
        #expect(desk.machine.debts(of: "a").map(\.hook.command) == [["/x"]])
        desk.wake()
        #expect(desk.started == ["a x 2 after 1, attempt 2"])
    }

    @Test("so many of all pipelines run at once, and the others in the order in which they came")
    func bounded() {
        var desk = Desk()
        let names = (0..<10).map { "p\($0)" }
        for name in names { desk.configure(name, ["x", "y"], current: 1) }
        for name in names { desk.offer(name, 2) }
        var begun = desk.take()
        #expect(begun == names.prefix(HookMachine.atOnce).map { "\($0) x 2 after 1, attempt 1" })
        var order: [String] = []
        while !begun.isEmpty {
            let line = begun.removeFirst()
            order.append(line)
            desk.succeed(String(line.prefix { $0 != " " }))
            begun += desk.take()
            #expect(begun.count <= HookMachine.atOnce)
        }
        #expect(order.count == 20 && Set(order).count == 20)
        // The second hook of the first comes after the first ones of all.
        #expect(order.prefix(10).allSatisfy { $0.contains(" x ") })
    }

    @Test("when the daemon ends, what was cut short is owed, and nothing more begins for it")
    func cancelled() {
        var desk = Desk()
        desk.configure("a", ["x"], current: 1)
        desk.offer("a", 2)
        desk.end("a", .cancelled)
        #expect(desk.started == [])
        #expect(desk.machine.debts(of: "a").map(\.memory.attempts) == [0])
    }

    @Test("a reload keeps what is known of hooks that stay, and forgets those that go; what runs is left to end")
    func reconfigured() {
        var desk = Desk()
        desk.configure("a", ["x", "y"], current: 1)
        desk.offer("a", 2)
        desk.fail("a")
        #expect(desk.take() == ["a y 2 after 1, attempt 1"])
        // The memory that is given is older than what is known.
        desk.configure("a", ["x"], current: 2, timeout: .seconds(5))
        #expect(desk.started == [])
        #expect(desk.machine.debts(of: "a").map(\.memory.attempts) == [1])
        desk.succeed("a")
        desk.wake()
        #expect(desk.started == ["a x 2 after 1, attempt 2"])
        #expect(desk.orders.last?.hook.timeout == .seconds(5))
        desk.perform(desk.machine.dismiss("a", at: desk.now))
        desk.fail("a")
        desk.advance(.seconds(3_600))
        #expect(desk.started == [] && desk.machine.isSettled && desk.machine.failing == 0)
    }

    @Test("a reload that was told of the copy before the last change does not go back to it")
    func reconfiguredLate() {
        var desk = Desk()
        desk.configure("a", ["x"], current: 1)
        var second = generation(2)
        second.turn = 1
        desk.perform(desk.machine.offer("a", second, causes: "timer", at: desk.now))
        desk.configure("a", ["x", "y"], current: 1)
        desk.succeed("a")
        #expect(desk.started == ["a y 2 after 1, attempt 1"])
        #expect(desk.orders.last?.causes == "timer")
        desk.succeed("a")
        #expect(desk.machine.isSettled && desk.machine.debts(of: "a").isEmpty)
    }

    @Test("what a pipeline without hooks offers is not kept")
    func without() {
        var desk = Desk()
        desk.offer("a", 2)
        #expect(desk.started == [] && desk.machine.isSettled)
    }

    @Test("no two commands are known by the same line")
    func identity() {
        let commands = [
            ["/x", "a b"], ["/x", "a", "b"], ["/x a", "b"], ["/x", "a\\", "b"], ["/x", "a\\ b"], ["/x", "", "a"],
        ]
        #expect(Set(commands.map { HookDefinition($0).identity }).count == commands.count)
        #expect(HookDefinition(["/x"], timeout: .seconds(1)).identity == HookDefinition(["/x"]).identity)
    }
}

private func mark(_ number: Int) -> GenerationIdentity { generation(number).mark }

private func generation(_ number: Int) -> CurrentGeneration {
    CurrentGeneration(
        number: UInt64(number), size: 10, digest: "digest \(number)", committedAt: 0, path: "/current/a")
}

/// The machine and who performs what it says, on a clock of its own.
private struct Desk {
    var machine = HookMachine(seed: 7)
    var now = ContinuousClock.now
    private(set) var orders: [HookMachine.Order] = []
    private(set) var wakeUp: ContinuousClock.Instant?
    private var shown = 0
    private var running: [String: HookMachine.Order] = [:]

    mutating func perform(_ actions: [HookMachine.Action]) {
        for action in actions {
            switch action {
            case .run(let order):
                orders.append(order)
                running[order.pipeline] = order
            case .wake(let instant): wakeUp = instant
            }
        }
    }

    /// What was begun since the last event: see ``take()``.
    var started: [String] { orders.dropFirst(shown).map(Self.line) }

    mutating func take() -> [String] {
        defer { shown = orders.count }
        return started
    }

    private static func line(_ order: HookMachine.Order) -> String {
        let name = order.hook.command[0].dropFirst()
        let told = order.told.map { "\($0.number)" } ?? "nothing"
        return "\(order.pipeline) \(name) \(order.generation.number) after \(told), attempt \(order.attempt)"
    }

    mutating func configure(_ name: String, _ hooks: [String], current: Int?, timeout: Duration = .seconds(30)) {
        let memory = StoredHookState(told: current.map(mark))
        let hooks = hooks.map { (definition: HookDefinition(["/\($0)"], timeout: timeout), memory: memory) }
        shown = orders.count
        perform(machine.configure(name, hooks, current: current.map(generation), at: now))
    }

    mutating func offer(_ name: String, _ number: Int, causes: String? = nil) {
        perform(machine.offer(name, generation(number), causes: causes, at: now))
    }

    mutating func end(_ name: String, _ result: HookMachine.Result) {
        guard let order = running.removeValue(forKey: name) else { return }
        shown = orders.count
        perform(machine.ended(order, result, at: now))
    }

    mutating func succeed(_ name: String) {
        guard let order = running[name] else { return }
        end(name, .ended(order.memory.succeeded()))
    }

    /// - Parameter wakes: the attempt before is to be waited for first.
    mutating func fail(_ name: String, wakes: Bool = false) {
        if wakes { wake() }
        guard let order = running[name] else { return }
        end(name, .ended(order.memory.failed("broken", at: 1_000)))
    }

    /// Goes to the time that the machine said.
    mutating func wake() {
        guard let wakeUp else { return }
        advance(wakeUp - now)
    }

    mutating func advance(_ time: Duration) {
        now += time
        guard let due = wakeUp, due <= now else { return }
        shown = orders.count
        wakeUp = nil
        perform(machine.elapsed(at: now))
    }
}
