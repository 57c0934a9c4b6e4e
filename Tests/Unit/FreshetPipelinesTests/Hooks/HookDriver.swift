import FreshetModel
import WorldTestSupport

@testable import FreshetPipelines

func identity(_ number: Int) -> GenerationIdentity { generation(number).identity }

func generation(_ number: Int) -> CurrentGeneration {
    CurrentGeneration(
        number: UInt64(number), size: 10, digest: "digest \(number)", committedAt: 0, path: "/current/a")
}

/// The machine and a performer of its actions, with its own clock.
struct HookDriver {
    /// Each pipeline waits half of a splay.
    var machine = HookMachine(seed: 7) { _ in 0.5 }
    var now = BootInstant.now
    private(set) var orders: [HookMachine.Order] = []
    private(set) var wakeUp: BootInstant?
    private var shown = 0
    private var running: [String: HookMachine.Order] = [:]

    mutating func perform(_ actions: [HookMachine.Action]) {
        for action in actions {
            switch action {
            case .run(let order):
                orders.append(order)
                running[order.pipeline] = order
            case .runShared: break
            case .wake(let instant): wakeUp = instant
            }
        }
    }

    /// The hooks that began since the last call of ``take()``.
    var started: [String] { orders.dropFirst(shown).map(Self.line) }

    mutating func take() -> [String] {
        defer { shown = orders.count }
        return started
    }

    private static func line(_ order: HookMachine.Order) -> String {
        let name = order.hook.command[0].dropFirst()
        let notified = order.notified.map { "\($0.number)" } ?? "nothing"
        return "\(order.pipeline) \(name) \(order.generation.number) after \(notified), attempt \(order.attempt)"
    }

    mutating func configure(
        _ name: String, _ hooks: [String], current: Int?, notified: Int? = nil, timeout: Duration = .seconds(30),
        splay: Duration = .zero, limit: HookLimit? = nil
    ) {
        let memory = StoredHookState(notified: (notified ?? current).map(identity))
        let hooks = hooks.map { name in
            var definition = HookDefinition(["/\(name)"], timeout: timeout)
            (definition.splay, definition.limit) = (splay, limit)
            return (definition: definition, memory: memory)
        }
        shown = orders.count
        perform(machine.configure(name, hooks, current: current.map(generation), at: now))
    }

    mutating func generationChanged(_ name: String, _ number: Int, causes: String? = nil) {
        perform(machine.generationChanged(name, generation(number), causes: causes, at: now))
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

    /// - Parameter wakes: whether to wait until the previous attempt's backoff ends.
    mutating func fail(_ name: String, wakes: Bool = false) {
        if wakes { wake() }
        guard let order = running[name] else { return }
        end(name, .ended(order.memory.failed("broken", at: 1_000)))
    }

    /// Advances to the machine's wake-up time.
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
