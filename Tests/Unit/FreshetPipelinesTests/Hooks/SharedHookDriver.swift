import FreshetModel
import WorldTestSupport

@testable import FreshetPipelines

/// The machine with hooks of several pipelines, and a performer of its actions, with its own clock.
struct SharedHookDriver {
    /// Each hook waits half of a splay.
    var machine = HookMachine(seed: 7) { _ in 0.5 }
    var now = BootInstant.now
    private(set) var wakeUp: BootInstant?
    private var started: [String] = []
    private(set) var running: [String: SharedHookMachine.Order] = [:]
    private(set) var runningOwn: [String: HookMachine.Order] = [:]

    static func hook(
        _ name: String, _ pipelines: [String], quiet: Duration = .seconds(2), atMost: Duration = .seconds(10),
        splay: Duration = .zero, limit: HookLimit? = nil
    ) -> SharedHookDefinition {
        var action = HookDefinition(["/\(name)"])
        (action.splay, action.limit) = (splay, limit)
        var hook = SharedHookDefinition(name, on: pipelines, action)
        (hook.quiet, hook.atMost) = (quiet, atMost)
        return hook
    }

    /// The runs since the last call, such as `all: a 2, b 3`.
    mutating func take() -> [String] {
        defer { started = [] }
        return started
    }

    private mutating func perform(_ actions: [HookMachine.Action]) {
        for action in actions {
            switch action {
            case .run(let order):
                runningOwn[order.pipeline] = order
                started.append("\(order.pipeline) alone \(order.generation.number)")
            case .runShared(let order):
                running[order.hook.name] = order
                let changes = order.changes.map { "\($0.pipeline) \($0.generation.number)" }.joined(separator: ", ")
                let more = order.more > 0 ? ", \(order.more) more" : ""
                let attempt = order.attempt > 1 ? ", attempt \(order.attempt)" : ""
                started.append("\(order.hook.name): \(changes)\(more)\(attempt)")
            case .wake(let instant): wakeUp = instant
            }
        }
    }

    mutating func use(_ hooks: SharedHookDefinition...) { perform(machine.useShared(hooks, at: now)) }

    /// - Parameter memory: the stored state; nil: the hook is new for the pipeline.
    mutating func join(_ pipeline: String, _ hooks: String..., current: Int?, memory: StoredHookState? = nil) {
        let state = memory ?? StoredHookState(notified: current.map(identity))
        let memories = hooks.map { (SharedHookDefinition.identity(of: $0), state) }
        perform(
            machine.join(
                pipeline, Dictionary(memories) { first, _ in first }, current: current.map(generation), at: now))
    }

    mutating func configureOwn(_ pipeline: String, current: Int, limit: HookLimit? = nil) {
        var hook = HookDefinition(["/own"])
        hook.limit = limit
        let memory = StoredHookState(notified: identity(current))
        perform(machine.configure(pipeline, [(hook, memory)], current: generation(current), at: now))
    }

    mutating func dismiss(_ pipeline: String) { perform(machine.dismiss(pipeline, at: now)) }

    mutating func change(_ pipeline: String, _ number: Int, causes: String? = nil) {
        perform(machine.generationChanged(pipeline, generation(number), causes: causes, at: now))
    }

    mutating func endBursts() { perform(machine.endBursts(at: now)) }

    mutating func succeed(_ hook: String) {
        guard let order = running.removeValue(forKey: hook) else { return }
        perform(machine.ended(order, .ended(order.changes.map { $0.memory.succeeded() }), at: now))
    }

    mutating func fail(_ hook: String) {
        guard let order = running.removeValue(forKey: hook) else { return }
        perform(machine.ended(order, .ended(order.changes.map { $0.memory.failed("broken", at: 1_000) }), at: now))
    }

    mutating func cancel(_ hook: String) {
        guard let order = running.removeValue(forKey: hook) else { return }
        perform(machine.ended(order, .cancelled, at: now))
    }

    mutating func succeedOwn(_ pipeline: String) {
        guard let order = runningOwn.removeValue(forKey: pipeline) else { return }
        perform(machine.ended(order, .ended(order.memory.succeeded()), at: now))
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

    func pending(_ pipeline: String) -> [HookMachine.PendingRun] { machine.pendingHooks(of: pipeline) }
}
