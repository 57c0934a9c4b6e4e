package import FreshetModel

/// Decides which hooks are pending, which of them run, and when a failed hook is retried.
///
/// A pipeline runs one hook at a time, in the order of its configuration; all pipelines together run at most
/// ``concurrencyLimit``. A change while a hook runs leads to one more run, with the newest generation: the machine does
/// not queue generations, it only keeps whether a hook is pending. A hook that failed waits, and the other hooks run
/// meanwhile.
package struct HookMachine: Sendable {
    package typealias Instant = BootInstant

    /// The most hooks that run at the same time, over all pipelines.
    package static let concurrencyLimit = 4
    /// The backoff after failures: full jitter, without a limit on the number of attempts.
    package static let retry = RetryPolicy(from: .seconds(1), to: .seconds(300))

    /// A hook that is to run.
    package struct Order: Hashable, Sendable {
        package var pipeline: String
        package var hook: HookDefinition
        /// The generation that the hook is run for.
        package var generation: CurrentGeneration
        /// Why the generation became current, for people; nil: not known any more.
        package var causes: String?
        /// The generation of the hook's last successful run.
        package var notified: GenerationIdentity?
        /// The number of this attempt, counted from 1 for each generation.
        package var attempt: Int
        /// The state that is stored before the hook starts.
        package var memory: StoredHookState
    }

    package enum Result: Hashable, Sendable {
        /// The hook has ended; its new state.
        case ended(StoredHookState)
        /// The daemon stops: the hook stays pending.
        case cancelled
    }

    package enum Action: Hashable, Sendable {
        case run(Order)
        /// Call ``elapsed(at:)`` at this instant; it replaces any earlier wake-up.
        case wake(Instant)
    }

    /// A pending hook, for people.
    package struct PendingRun: Hashable, Sendable {
        package var hook: HookDefinition
        package var generation: UInt64
        package var memory: StoredHookState
        package var isRunning: Bool
        /// When the next attempt is due; nil: the hook runs, or waits until another hook has ended.
        package var next: Instant?

        /// An attempt has failed since the hook's last success.
        package var isFailing: Bool { memory.failingSince != nil }
    }

    private struct Hook {
        var definition: HookDefinition
        var memory: StoredHookState
        /// The hook has failed and waits until then.
        var due: Instant?
    }

    private struct Pipeline {
        var hooks: [Hook]
        var current: CurrentGeneration?
        var causes: String?

        /// The index of the next hook that may run.
        func ready(at now: Instant) -> Int? {
            guard let identity = current?.identity else { return nil }
            return hooks.firstIndex { $0.memory.isPending(identity) && $0.due ?? now <= now }
        }
    }

    private var pipelines: [String: Pipeline] = [:]
    /// The running hooks, by pipeline.
    private var running: [String: String] = [:]
    /// Pipelines with a hook that may run, in the order in which they wait; each pipeline once.
    private var queue: ArraySlice<String> = []
    private var queued: Set<String> = []
    /// Pipelines with hooks that wait after a failure.
    private var waiting: Set<String> = []
    private var wakeUp: Instant?
    private var jitter: Jitter

    package init(seed: UInt64) {
        jitter = Jitter(seed: seed)
    }

    // MARK: Events

    /// Sets the hooks of a pipeline. Hooks that are known already keep their state here, which may be newer than the
    /// given one.
    ///
    /// - - Parameter current: the generation that readers saw when the caller looked. A newer one that is known here
    ///   stays.
    package mutating func configure(
        _ name: String, _ hooks: [(definition: HookDefinition, memory: StoredHookState)], current: CurrentGeneration?,
        at now: Instant
    ) -> [Action] {
        guard !hooks.isEmpty else { return dismiss(name, at: now) }
        let before = pipelines[name]
        let current = [current, before?.current].compactMap(\.self).max { $0.revision < $1.revision }
        let known = before?.hooks ?? []
        pipelines[name] = Pipeline(
            hooks: hooks.map { hook in
                guard var same = known.first(where: { $0.definition.identity == hook.definition.identity }) else {
                    return Hook(definition: hook.definition, memory: hook.memory)
                }
                same.definition = hook.definition
                return same
            }, current: current, causes: before?.current?.identity == current?.identity ? before?.causes : nil)
        enqueue(name, at: now)
        return next(at: now)
    }

    /// Removes a pipeline that is gone, or has no hooks any more. A running hook is not cancelled.
    package mutating func dismiss(_ name: String, at now: Instant) -> [Action] {
        guard pipelines.removeValue(forKey: name) != nil else { return [] }
        waiting.remove(name)
        return next(at: now)
    }

    /// Readers see another generation, or do not find the copy any more. A late event about a generation that was
    /// replaced already is ignored; an event about the known generation does not change its causes.
    ///
    /// - Parameter causes: why the generation became current, for people.
    package mutating func generationChanged(
        _ name: String, _ generation: CurrentGeneration, causes: String?, at now: Instant
    ) -> [Action] {
        guard let known = pipelines[name], known.current?.revision ?? 0 <= generation.revision else { return [] }
        if known.current?.identity != generation.identity || known.causes == nil { pipelines[name]?.causes = causes }
        pipelines[name]?.current = generation
        // The backoff was for another generation.
        for index in pipelines[name]?.hooks.indices ?? 0..<0
        where pipelines[name]?.hooks[index].memory.tried != generation.identity {
            pipelines[name]?.hooks[index].due = nil
        }
        enqueue(name, at: now)
        return next(at: now)
    }

    /// A hook of ``Action/run(_:)`` has ended.
    package mutating func ended(_ order: Order, _ result: Result, at now: Instant) -> [Action] {
        guard running.removeValue(forKey: order.pipeline) != nil else { return [] }
        if let index = pipelines[order.pipeline]?.hooks.firstIndex(where: {
            $0.definition.identity == order.hook.identity
        }), case .ended(let memory) = result {
            pipelines[order.pipeline]?.hooks[index].memory = memory
            // A hook that failed for a generation that readers do not see any more does not wait.
            let isFailure = memory.tried != nil && memory.tried == pipelines[order.pipeline]?.current?.identity
            pipelines[order.pipeline]?.hooks[index].due =
                isFailure
                ? now + jitter.duration(upTo: Backoff.ceiling(after: memory.attempts, policy: Self.retry)) : nil
        }
        if result != .cancelled { enqueue(order.pipeline, at: now) }
        return next(at: now)
    }

    /// The instant of ``Action/wake(_:)`` has come.
    package mutating func elapsed(at now: Instant) -> [Action] {
        wakeUp = nil
        for name in waiting.sorted() { enqueue(name, at: now) }
        return next(at: now)
    }

    // MARK: State

    /// No hook runs, and no hook may run before a backoff ends.
    package var isSettled: Bool { running.isEmpty && queue.isEmpty }

    /// The number of pending hooks of this pipeline that have failed.
    package func failing(_ name: String) -> Int { pendingHooks(of: name).count(where: \.isFailing) }

    /// The number of pending hooks that have failed, of all pipelines.
    package var failing: Int { pipelines.keys.reduce(0) { $0 + failing($1) } }

    /// The pending hooks of a pipeline, in the order of the configuration.
    package func pendingHooks(of name: String) -> [PendingRun] {
        guard let pipeline = pipelines[name], let current = pipeline.current else { return [] }
        return pipeline.hooks.compactMap { hook in
            let isRunning = running[name] == hook.definition.identity
            guard isRunning || hook.memory.isPending(current.identity) else { return nil }
            return PendingRun(
                hook: hook.definition, generation: current.number, memory: hook.memory, isRunning: isRunning,
                next: isRunning ? nil : hook.due)
        }
    }

    // MARK: Queue

    /// Appends a pipeline to the queue if it has a hook that may run, and records whether one of its hooks is in
    /// backoff.
    private mutating func enqueue(_ name: String, at now: Instant) {
        guard let pipeline = pipelines[name] else { return }
        let isWaiting = pipeline.hooks.contains { $0.due ?? now > now }
        if isWaiting { waiting.insert(name) } else { waiting.remove(name) }
        guard running[name] == nil, pipeline.ready(at: now) != nil, queued.insert(name).inserted else { return }
        queue.append(name)
    }

    private mutating func next(at now: Instant) -> [Action] {
        var actions: [Action] = []
        while running.count < Self.concurrencyLimit, let name = queue.popFirst() {
            queued.remove(name)
            // The pipeline may have been dismissed or changed since it was queued.
            guard running[name] == nil, let pipeline = pipelines[name], let index = pipeline.ready(at: now),
                let current = pipeline.current
            else { continue }
            let hook = pipeline.hooks[index]
            let memory = hook.memory.trying(current.identity)
            pipelines[name]?.hooks[index].memory = memory
            pipelines[name]?.hooks[index].due = nil
            running[name] = hook.definition.identity
            actions.append(
                .run(
                    Order(
                        pipeline: name, hook: hook.definition, generation: current, causes: pipeline.causes,
                        notified: memory.notified, attempt: memory.attempts + 1, memory: memory)))
        }
        let due = waiting.compactMap { pipelines[$0]?.hooks.compactMap(\.due).filter { $0 > now }.min() }.min()
        if let due, wakeUp.map({ due < $0 }) ?? true {
            wakeUp = due
            actions.append(.wake(due))
        }
        return actions
    }
}
