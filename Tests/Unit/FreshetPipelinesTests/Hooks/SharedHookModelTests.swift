import FreshetModel
import TestSupport
import Testing
import WorldTestSupport

@testable import FreshetPipelines

/// The index and the programs of hooks: what is stored, and what was reported.
private struct World {
    struct Key: Hashable {
        var hook: String
        var pipeline: String
    }

    /// The index: one state for each hook and pipeline.
    var index: [Key: StoredHookState] = [:]
    /// What each hook was told last about each pipeline, by runs that succeeded.
    var reported: [Key: Int] = [:]
    var current: [String: Int] = [:]
    var running: [String: SharedHookMachine.Order] = [:]
    var runningOwn: [String: HookMachine.Order] = [:]
    var runs = 0
    var machine = HookMachine(seed: 3) { _ in 0.5 }
    var now = BootInstant.now
    var wakeUp: BootInstant?
    var hooks: [String: [String]] = [:]

    mutating func perform(_ actions: [HookMachine.Action]) {
        for action in actions {
            switch action {
            case .run(let order): runningOwn[order.pipeline] = order
            case .runShared(let order):
                runs += 1
                #expect(running[order.hook.name] == nil && !order.changes.isEmpty)
                #expect(order.changes.map(\.pipeline) == order.changes.map(\.pipeline).sorted())
                for change in order.changes {
                    let key = Key(hook: order.hook.name, pipeline: change.pipeline)
                    #expect(change.notified?.number == reported[key].map(UInt64.init))
                    #expect(Int(change.generation.number) == current[change.pipeline])
                    if index[key] != nil { index[key] = change.memory }
                }
                running[order.hook.name] = order
            case .wake(let instant): wakeUp = instant
            }
        }
        #expect(running.count + runningOwn.count <= HookMachine.concurrencyLimit)
    }

    mutating func end(_ hook: String, succeeds: Bool) {
        guard let order = running.removeValue(forKey: hook) else { return }
        var states: [StoredHookState] = []
        for change in order.changes {
            let state = succeeds ? change.memory.succeeded() : change.memory.failed("broken", at: 0)
            let key = Key(hook: hook, pipeline: change.pipeline)
            states.append(state)
            if machine.counts(change, of: order) {
                index[key] = state
                if succeeds { reported[key] = Int(change.generation.number) }
            }
        }
        perform(machine.ended(order, .ended(states), at: now))
    }

    mutating func endOwn(_ pipeline: String) {
        guard let order = runningOwn.removeValue(forKey: pipeline) else { return }
        perform(machine.ended(order, .ended(order.memory.succeeded()), at: now))
    }

    /// The hooks with their pipelines, as after a reload: states of other pairs are deleted, and new pairs are as the
    /// current generation.
    mutating func configure(_ hooks: [String: [String]]) {
        self.hooks = hooks
        let limit = HookLimit(group: "g", atOnce: 2)
        perform(
            machine.useShared(
                hooks.sorted { $0.key < $1.key }.map {
                    SharedHookDriver.hook($0.key, $0.value, splay: .seconds(1), limit: $0.key == "x" ? nil : limit)
                }, at: now))
        let wanted = Set(hooks.flatMap { hook, pipelines in pipelines.map { Key(hook: hook, pipeline: $0) } })
        index = index.filter { wanted.contains($0.key) }
        reported = reported.filter { wanted.contains($0.key) }
        for key in wanted.sorted(by: { ($0.hook, $0.pipeline) < ($1.hook, $1.pipeline) }) {
            if index[key] == nil {
                index[key] = StoredHookState(notified: current[key.pipeline].map(identity))
                reported[key] = current[key.pipeline]
            }
        }
        for pipeline in Set(wanted.map(\.pipeline)).sorted() { join(pipeline) }
    }

    mutating func join(_ pipeline: String) {
        let states = index.filter { $0.key.pipeline == pipeline }.map {
            (SharedHookDefinition.identity(of: $0.key.hook), $0.value)
        }
        perform(
            machine.join(
                pipeline, Dictionary(states) { first, _ in first }, current: current[pipeline].map(generation), at: now)
        )
    }

    /// The daemon is killed and starts again, with the index as it is.
    mutating func restart() {
        (running, runningOwn, wakeUp) = ([:], [:], nil)
        machine = HookMachine(seed: UInt64(runs)) { _ in 0.5 }
        configure(hooks)
    }

    mutating func advance(_ time: Duration) {
        let end = now + time
        while let due = wakeUp, due <= end {
            now = max(now, due)
            wakeUp = nil
            perform(machine.elapsed(at: now))
        }
        now = end
    }

    /// The pairs whose hook was not told of the current generation.
    var unreported: Set<Key> {
        Set(index.keys.filter { key in current[key.pipeline].map { $0 != reported[key] } ?? false })
    }

    /// No pair is forgotten: each unreported one is pending, with a time, a run, or another hook to wait for.
    func check(_ names: [String]) {
        var failing = 0
        var failingHooks: Set<String> = []
        for name in names {
            let pending = machine.pendingHooks(of: name)
            let shared = Set(pending.compactMap(\.shared))
            let missing = Set(unreported.filter { $0.pipeline == name }.map(\.hook)).subtracting(shared)
            #expect(missing.isEmpty, "\(name): \(missing)")
            for hook in pending {
                // A hook that was removed and added again during its run waits for the end of that run.
                let waits = hook.shared.map { running[$0] == nil } ?? true
                if waits, let next = hook.next, next > now { #expect(wakeUp.map { $0 <= next } == true) }
                if hook.isFailing, let name = hook.shared { failingHooks.insert(name) }
                if hook.isFailing, hook.shared == nil { failing += 1 }
            }
        }
        #expect(failingHooks.count + failing <= machine.failing)
    }
}

@Suite("Hooks of several pipelines, compared with a model")
struct SharedHookModelTests {
    @Test("after any events, kills and reloads, each change is reported, and none twice", arguments: 1..<21)
    func random(seed: UInt64) {
        var dice = SeededGenerator(seed: seed)
        var world = World()
        let names = (0..<6).map { "p\($0)" }
        func hooks() -> [String: [String]] {
            Dictionary(
                uniqueKeysWithValues: ["x", "y", "z", "w", "v"].prefix(Int.random(in: 1...5, using: &dice)).map {
                    hook in
                    (hook, names.filter { _ in Int.random(in: 0..<3, using: &dice) > 0 } + ["p0"])
                }
            ).mapValues { Array(Set($0)).sorted() }
        }
        func change(_ name: String) {
            world.current[name, default: 0] += 1
            let number = world.current[name, default: 1]
            world.perform(world.machine.generationChanged(name, generation(number), causes: nil, at: world.now))
        }
        world.configure(hooks())
        for _ in 0..<600 {
            let name = names[Int.random(in: 0..<names.count, using: &dice)]
            let hook = world.running.keys.sorted().randomElement(using: &dice) ?? "x"
            switch Int.random(in: 0..<24, using: &dice) {
            case 0..<8: change(name)
            case 8..<12: world.end(hook, succeeds: true)
            case 12..<15: world.end(hook, succeeds: false)
            case 15..<21: world.advance(.milliseconds(Int.random(in: 0..<3_000, using: &dice)))
            case 21: world.restart()
            case 22:
                // The result of a hook that is removed while it runs does not count.
                let next = hooks()
                for gone in world.running.keys.sorted() where next[gone] == nil { world.end(gone, succeeds: true) }
                world.configure(next)
            default:
                if Bool.random(using: &dice) {
                    world.perform(
                        world.machine.configure(
                            name,
                            [(HookDefinition(["/own"]), StoredHookState(notified: world.current[name].map(identity)))],
                            current: world.current[name].map(generation), at: world.now))
                } else if let own = world.runningOwn.keys.sorted().first {
                    world.endOwn(own)
                }
            }
            world.check(names)
        }
        // Time passes, and all hooks succeed.
        for _ in 0..<200 {
            world.advance(.seconds(20))
            for hook in world.running.keys.sorted() { world.end(hook, succeeds: true) }
            for name in world.runningOwn.keys.sorted() { world.endOwn(name) }
        }
        #expect(world.unreported.isEmpty && world.machine.isSettled && world.machine.failing == 0)
        #expect(names.flatMap { world.machine.pendingHooks(of: $0) }.isEmpty)
        let runs = world.runs
        world.advance(.seconds(3_600))
        world.restart()
        world.advance(.seconds(3_600))
        #expect(world.runs == runs && world.runs > 10)
    }
}
