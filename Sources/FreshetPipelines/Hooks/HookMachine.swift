/// Which hooks are owed, which of them run, and when the others are tried again.
///
/// Of one pipeline one hook runs at a time, in the order in which they are configured; of all pipelines a few. What
/// changes while a hook runs leads to one more run, with the newest generation: nothing is queued but the fact that
/// something is owed. A hook that fails waits, and holds up none of the others.
package struct HookMachine: Sendable {
    package typealias Instant = ContinuousClock.Instant

    /// How many hooks run at once, of all pipelines.
    package static let atOnce = 4
    /// The waits after failures: full jitter, without end.
    package static let retry = RetryPolicy(from: .seconds(1), to: .seconds(300))

    /// A hook to be run.
    package struct Order: Hashable, Sendable {
        package var pipeline: String
        package var hook: HookDefinition
        /// What it is to be told of.
        package var generation: CurrentGeneration
        /// Why there is that, for people; nil: not known any more.
        package var causes: String?
        /// What it was told of last.
        package var told: GenerationIdentity?
        /// Counted from 1 for each generation.
        package var attempt: Int
        /// What is to be remembered before it is started.
        package var memory: StoredHookState
    }

    package enum Result: Hashable, Sendable {
        /// With what is remembered of it now.
        case ended(StoredHookState)
        /// The daemon ends: it is owed as before.
        case cancelled
    }

    package enum Action: Hashable, Sendable {
        case run(Order)
        /// ``elapsed(at:)`` is to be called then, instead of any time before.
        case wake(Instant)
    }

    /// A hook that is owed, for people.
    package struct PendingRun: Hashable, Sendable {
        package var hook: HookDefinition
        package var generation: UInt64
        package var memory: StoredHookState
        package var isRunning: Bool
        /// The next attempt; nil: it runs, or waits for its turn.
        package var next: Instant?

        /// An attempt has failed since it last succeeded.
        package var isFailing: Bool { memory.failingSince != nil }
    }

    private struct Hook {
        var definition: HookDefinition
        var memory: StoredHookState
        /// Until then it waits, since it failed.
        var due: Instant?
    }

    private struct Pipeline {
        var hooks: [Hook]
        var current: CurrentGeneration?
        var causes: String?

        /// The next hook to be run.
        func ready(at now: Instant) -> Int? {
            guard let mark = current?.mark else { return nil }
            return hooks.firstIndex { $0.memory.owes(mark) && $0.due ?? now <= now }
        }
    }

    private var pipelines: [String: Pipeline] = [:]
    /// The hooks that run, by their pipelines.
    private var running: [String: String] = [:]
    /// Pipelines that have a hook to be run and wait for their turn; each once.
    private var queue: ArraySlice<String> = []
    private var queued: Set<String> = []
    /// The pipelines with hooks that wait after a failure.
    private var waiting: Set<String> = []
    private var wakeUp: Instant?
    private var jitter: Jitter

    package init(seed: UInt64) {
        jitter = Jitter(seed: seed)
    }

    // MARK: Events

    /// A pipeline has these hooks from now on. Of those that are known already, more is known here than is given.
    ///
    /// - Parameter current: what readers see, or saw when that was looked at: a newer one is known if it came in between.
    package mutating func configure(
        _ name: String, _ hooks: [(definition: HookDefinition, memory: StoredHookState)], current: CurrentGeneration?,
        at now: Instant
    ) -> [Action] {
        guard !hooks.isEmpty else { return dismiss(name, at: now) }
        let before = pipelines[name]
        let current = [current, before?.current].compactMap(\.self).max { $0.turn < $1.turn }
        let known = before?.hooks ?? []
        pipelines[name] = Pipeline(
            hooks: hooks.map { hook in
                guard var same = known.first(where: { $0.definition.identity == hook.definition.identity }) else {
                    return Hook(definition: hook.definition, memory: hook.memory)
                }
                same.definition = hook.definition
                return same
            }, current: current, causes: before?.current?.mark == current?.mark ? before?.causes : nil)
        enqueue(name, at: now)
        return next(at: now)
    }

    /// A pipeline is gone, or has no hooks any more. One that runs is left to end.
    package mutating func dismiss(_ name: String, at now: Instant) -> [Action] {
        guard pipelines.removeValue(forKey: name) != nil else { return [] }
        waiting.remove(name)
        return next(at: now)
    }

    /// Readers see another generation, or none any more. News that comes late, of what was replaced already, is none, and
    /// what is known already has its first causes.
    ///
    /// - Parameter causes: why, for people.
    package mutating func offer(
        _ name: String, _ generation: CurrentGeneration, causes: String?, at now: Instant
    ) -> [Action] {
        guard let known = pipelines[name], known.current?.turn ?? 0 <= generation.turn else { return [] }
        if known.current?.mark != generation.mark || known.causes == nil { pipelines[name]?.causes = causes }
        pipelines[name]?.current = generation
        // The wait was for another one.
        for index in pipelines[name]?.hooks.indices ?? 0..<0
        where pipelines[name]?.hooks[index].memory.tried != generation.mark {
            pipelines[name]?.hooks[index].due = nil
        }
        enqueue(name, at: now)
        return next(at: now)
    }

    /// A hook that was to be run has ended.
    package mutating func ended(_ order: Order, _ result: Result, at now: Instant) -> [Action] {
        guard running.removeValue(forKey: order.pipeline) != nil else { return [] }
        if let index = pipelines[order.pipeline]?.hooks.firstIndex(where: {
            $0.definition.identity == order.hook.identity
        }), case .ended(let memory) = result {
            pipelines[order.pipeline]?.hooks[index].memory = memory
            // One that failed for what readers do not see any more is not waited for.
            let isFailure = memory.tried != nil && memory.tried == pipelines[order.pipeline]?.current?.mark
            pipelines[order.pipeline]?.hooks[index].due =
                isFailure
                ? now + jitter.duration(upTo: Backoff.ceiling(after: memory.attempts, policy: Self.retry)) : nil
        }
        if result != .cancelled { enqueue(order.pipeline, at: now) }
        return next(at: now)
    }

    /// It is the time that ``Action/wake(_:)`` said, or later.
    package mutating func elapsed(at now: Instant) -> [Action] {
        wakeUp = nil
        for name in waiting.sorted() { enqueue(name, at: now) }
        return next(at: now)
    }

    // MARK: What is so

    /// Nothing runs, and nothing is to be run before a wait is over.
    package var isSettled: Bool { running.isEmpty && queue.isEmpty }

    /// How many hooks of this pipeline have failed and are owed.
    package func failing(_ name: String) -> Int { debts(of: name).count(where: \.isFailing) }

    /// How many have, of all pipelines.
    package var failing: Int { pipelines.keys.reduce(0) { $0 + failing($1) } }

    /// What is owed of a pipeline, in the order in which its hooks are configured.
    package func debts(of name: String) -> [PendingRun] {
        guard let pipeline = pipelines[name], let current = pipeline.current else { return [] }
        return pipeline.hooks.compactMap { hook in
            let isRunning = running[name] == hook.definition.identity
            guard isRunning || hook.memory.owes(current.mark) else { return nil }
            return PendingRun(
                hook: hook.definition, generation: current.number, memory: hook.memory, isRunning: isRunning,
                next: isRunning ? nil : hook.due)
        }
    }

    // MARK: Inside

    /// Lets a pipeline wait for its turn, if it has something to be run, and notes whether it waits for a time.
    private mutating func enqueue(_ name: String, at now: Instant) {
        guard let pipeline = pipelines[name] else { return }
        let isWaiting = pipeline.hooks.contains { $0.due ?? now > now }
        if isWaiting { waiting.insert(name) } else { waiting.remove(name) }
        guard running[name] == nil, pipeline.ready(at: now) != nil, queued.insert(name).inserted else { return }
        queue.append(name)
    }

    private mutating func next(at now: Instant) -> [Action] {
        var actions: [Action] = []
        while running.count < Self.atOnce, let name = queue.popFirst() {
            queued.remove(name)
            // It may have been dismissed, or changed, since.
            guard running[name] == nil, let pipeline = pipelines[name], let index = pipeline.ready(at: now),
                let current = pipeline.current
            else { continue }
            let hook = pipeline.hooks[index]
            let memory = hook.memory.trying(current.mark)
            pipelines[name]?.hooks[index].memory = memory
            pipelines[name]?.hooks[index].due = nil
            running[name] = hook.definition.identity
            actions.append(
                .run(
                    Order(
                        pipeline: name, hook: hook.definition, generation: current, causes: pipeline.causes,
                        told: memory.told, attempt: memory.attempts + 1, memory: memory)))
        }
        let due = waiting.compactMap { pipelines[$0]?.hooks.compactMap(\.due).filter { $0 > now }.min() }.min()
        if let due, wakeUp.map({ due < $0 }) ?? true {
            wakeUp = due
            actions.append(.wake(due))
        }
        return actions
    }
}
