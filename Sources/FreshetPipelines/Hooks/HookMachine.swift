package import FreshetModel

/// Decides which hooks are pending, which of them run, and when a failed hook is retried.
///
/// A pipeline runs one hook at a time, in the order of its configuration; all pipelines together run at most
/// ``concurrencyLimit``. A change while a hook runs leads to one more run, with the newest generation: the machine does
/// not queue generations, it only keeps whether a hook is pending. A hook that failed waits, and the other hooks run
/// meanwhile. So do the others while a hook waits for its part of the splay, or for a permit of its group.
///
/// A hook of several pipelines waits in the same queue, under its identity, which no pipeline has as its name. A
/// ``SharedHookMachine`` decides when such a hook runs, and for which changes.
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
        case runShared(SharedHookMachine.Order)
        /// Call ``elapsed(at:)`` at this instant; it replaces any earlier wake-up.
        case wake(Instant)
    }

    /// Why a pending hook does not run yet.
    package enum Wait: Hashable, Sendable {
        /// The host's part of the splay has not passed.
        case splay
        /// The burst of changes goes on; only a hook of several pipelines waits for its end.
        case quiet
        /// The last attempt has failed.
        case backoff
        /// The hook of several pipelines runs for earlier changes.
        case ownRun
        /// The hooks of this group that run already are as many as its limit permits.
        case group(String)
        /// An other hook of the pipeline runs, or as many hooks run as are permitted in all.
        case others
    }

    /// A pending hook, for people.
    package struct PendingRun: Hashable, Sendable {
        package var hook: HookDefinition
        /// The name of the hook of several pipelines; nil: the pipeline's own hook.
        package var shared: String?
        /// The line about the hook of several pipelines.
        package var description: String?
        package var generation: UInt64
        package var memory: StoredHookState
        package var isRunning: Bool
        /// When the next attempt is due; nil: the hook runs, or waits until another hook has ended.
        package var next: Instant?
        /// What the hook waits for; nil: it runs.
        package var wait: Wait?

        init(
            hook: HookDefinition, generation: UInt64, memory: StoredHookState, isRunning: Bool, next: Instant?
        ) {
            self.hook = hook
            self.generation = generation
            self.memory = memory
            self.isRunning = isRunning
            self.next = next
        }

        /// An attempt has failed since the hook's last success.
        package var isFailing: Bool { memory.failingSince != nil }
    }

    private struct Hook {
        var definition: HookDefinition
        var memory: StoredHookState
        /// The hook waits until then.
        var due: Instant?
        /// The hook has begun to wait for its part of the splay. Further changes do not begin that again before it ran.
        var isSplayed = false

        /// Ends the wait.
        mutating func clearWait() {
            due = nil
            isSplayed = false
        }
    }

    private struct Pipeline {
        var hooks: [Hook]
        var current: CurrentGeneration?
        var causes: String?

        /// The indexes of the hooks that may run.
        func ready(at now: Instant) -> [Int] {
            guard let identity = current?.identity else { return [] }
            return hooks.indices.filter { hooks[$0].memory.isPending(identity) && hooks[$0].due ?? now <= now }
        }
    }

    private var pipelines: [String: Pipeline] = [:]
    var shared: SharedHookMachine
    /// The running hooks, by pipeline; those of several pipelines by their identity.
    var running: [String: String] = [:]
    var groups = HookGroups()
    /// Pipelines with a hook that may run, in the order in which they wait; each pipeline once.
    var queue: ArraySlice<String> = []
    var queued: Set<String> = []
    /// Pipelines with hooks that wait after a failure or for the splay, and when the first of these waits ends.
    var waiting = DeadlineQueue()
    /// The number of pending hooks that have failed, of each pipeline that has any.
    private var failingByPipeline: [String: Int] = [:]
    private var wakeUp: Instant?
    private var jitter: Jitter
    private let share: @Sendable (_ pipeline: String) -> Double

    /// - Parameter share: the part of a splay that a pipeline's hooks wait on this host, from 0 to 1.
    package init(seed: UInt64, share: @escaping @Sendable (_ pipeline: String) -> Double = { _ in 0 }) {
        jitter = Jitter(seed: seed)
        self.share = share
        shared = SharedHookMachine(share: share)
    }

    // MARK: Events

    /// Sets the hooks of a pipeline. Hooks that are known already keep their state here, which may be newer than the
    /// given one.
    ///
    /// - Parameter current: the generation that readers saw when the caller looked. A newer one that is known here
    ///   stays.
    package mutating func configure(
        _ name: String, _ hooks: [(definition: HookDefinition, memory: StoredHookState)], current: CurrentGeneration?,
        at now: Instant
    ) -> [Action] {
        guard !hooks.isEmpty else {
            removeOwnHooks(of: name)
            return next(at: now)
        }
        let before = pipelines[name]
        let current = [current, before?.current].compactMap(\.self).max { $0.revision < $1.revision }
        let known = before?.hooks ?? []
        pipelines[name] = Pipeline(
            hooks: hooks.map { hook in
                guard var same = known.first(where: { $0.definition.identity == hook.definition.identity }) else {
                    return Hook(definition: hook.definition, memory: hook.memory)
                }
                // The new splay begins with the wait that goes on.
                if same.isSplayed, same.definition.splay != hook.definition.splay { same.clearWait() }
                same.definition = hook.definition
                return same
            }, current: current, causes: before?.current?.identity == current?.identity ? before?.causes : nil)
        splay(name, at: now)
        enqueue(name, at: now)
        return next(at: now)
    }

    /// Removes a pipeline that is gone, or has no hooks any more. A running hook is not cancelled.
    package mutating func dismiss(_ name: String, at now: Instant) -> [Action] {
        removeOwnHooks(of: name)
        for identity in shared.leave(name) { enqueueShared(identity, at: now) }
        return next(at: now)
    }

    private mutating func removeOwnHooks(of name: String) {
        guard pipelines.removeValue(forKey: name) != nil else { return }
        waiting.set(name, to: nil)
        countFailing(name)
    }

    /// Readers see another generation, or do not find the copy any more. A late event about a generation that was
    /// replaced already is ignored; an event about the known generation does not change its causes.
    ///
    /// - Parameter causes: why the generation became current, for people.
    package mutating func generationChanged(
        _ name: String, _ generation: CurrentGeneration, causes: String?, at now: Instant
    ) -> [Action] {
        for identity in shared.generationChanged(name, generation, causes: causes, at: now) {
            enqueueShared(identity, at: now)
        }
        ownHooks(of: name, generation, causes: causes, at: now)
        return next(at: now)
    }

    private mutating func ownHooks(
        of name: String, _ generation: CurrentGeneration, causes: String?, at now: Instant
    ) {
        guard let known = pipelines[name], known.current?.revision ?? 0 <= generation.revision else { return }
        if known.current?.identity != generation.identity || known.causes == nil { pipelines[name]?.causes = causes }
        pipelines[name]?.current = generation
        // The backoff was for another generation.
        for index in pipelines[name]?.hooks.indices ?? 0..<0
        where pipelines[name]?.hooks[index].memory.tried != generation.identity
            && pipelines[name]?.hooks[index].isSplayed == false
        {
            pipelines[name]?.hooks[index].due = nil
        }
        splay(name, at: now)
        enqueue(name, at: now)
    }

    /// A hook of ``Action/run(_:)`` has ended.
    package mutating func ended(_ order: Order, _ result: Result, at now: Instant) -> [Action] {
        guard running.removeValue(forKey: order.pipeline) != nil else { return [] }
        groups.ended(order.hook.limit)
        if let index = pipelines[order.pipeline]?.hooks.firstIndex(where: {
            $0.definition.identity == order.hook.identity
        }), case .ended(let memory) = result {
            pipelines[order.pipeline]?.hooks[index].memory = memory
            // A hook that failed for a generation that readers do not see any more does not wait.
            let isFailure = memory.tried != nil && memory.tried == pipelines[order.pipeline]?.current?.identity
            if isFailure {
                let due = now + backoff(after: memory.attempts)
                pipelines[order.pipeline]?.hooks[index].isSplayed = false
                pipelines[order.pipeline]?.hooks[index].due = due
            } else if pipelines[order.pipeline]?.hooks[index].isSplayed == false {
                pipelines[order.pipeline]?.hooks[index].due = nil
            }
        }
        if result != .cancelled { enqueue(order.pipeline, at: now) }
        countFailing(order.pipeline)
        return next(at: now)
    }

    mutating func backoff(after failures: Int) -> Duration {
        jitter.duration(upTo: Backoff.ceiling(after: failures, policy: Self.retry))
    }

    /// The instant of ``Action/wake(_:)`` has come.
    package mutating func elapsed(at now: Instant) -> [Action] {
        wakeUp = nil
        for name in waiting.popDue(at: now) {
            if shared.has(name) {
                enqueueShared(name, at: now)
                continue
            }
            for (index, hook) in (pipelines[name]?.hooks ?? []).enumerated() where hook.due.map({ $0 <= now }) ?? false
            {
                pipelines[name]?.hooks[index].due = nil
            }
            enqueue(name, at: now)
        }
        return next(at: now)
    }

    // MARK: State

    /// No hook runs, no burst of changes goes on, and no hook may run before a backoff or a splay ends.
    package var isSettled: Bool { running.isEmpty && queue.isEmpty && shared.isSettled }

    /// The number of pending hooks of this pipeline that have failed.
    package func failing(_ name: String) -> Int { pendingHooks(of: name).count(where: \.isFailing) }

    /// The number of pending hooks that have failed, of all pipelines. It costs the same for any number of pipelines.
    package private(set) var failing = 0

    private mutating func countFailing(_ name: String) {
        setFailing(name, to: ownHooks(of: name).count(where: \.isFailing))
    }

    mutating func setFailing(_ name: String, to count: Int) {
        failing += count - (failingByPipeline[name] ?? 0)
        failingByPipeline[name] = count > 0 ? count : nil
    }

    /// The pending hooks of a pipeline: its own, in the order of the configuration, then those of several pipelines.
    package func pendingHooks(of name: String) -> [PendingRun] {
        ownHooks(of: name) + shared.pendingHooks(of: name, groups)
    }

    private func ownHooks(of name: String) -> [PendingRun] {
        guard let pipeline = pipelines[name], let current = pipeline.current else { return [] }
        return pipeline.hooks.compactMap { hook in
            let isRunning = running[name] == hook.definition.identity
            guard isRunning || hook.memory.isPending(current.identity) else { return nil }
            var pending = PendingRun(
                hook: hook.definition, generation: current.number, memory: hook.memory, isRunning: isRunning,
                next: isRunning ? nil : hook.due)
            guard !isRunning else { return pending }
            if hook.due != nil {
                pending.wait = hook.isSplayed ? .splay : .backoff
            } else if let limit = hook.definition.limit, !groups.permits(limit) {
                pending.wait = .group(limit.group)
            } else {
                pending.wait = .others
            }
            return pending
        }
    }

    // MARK: Queue

    /// Appends a pipeline to the queue if it has a hook that may run, and records whether its hooks wait or have
    /// failed.
    private mutating func enqueue(_ name: String, at now: Instant) {
        guard let pipeline = pipelines[name] else { return }
        waiting.set(name, to: pipeline.hooks.compactMap(\.due).filter { $0 > now }.min())
        countFailing(name)
        guard running[name] == nil, !pipeline.ready(at: now).isEmpty, queued.insert(name).inserted else { return }
        queue.append(name)
    }

    /// The next pipeline of the queue; a pipeline that waits for a permit that is free now comes first.
    private mutating func popNext() -> String? {
        if let name = groups.popPermitted() { return name }
        guard let name = queue.popFirst() else { return nil }
        queued.remove(name)
        return name
    }

    /// Begins the wait for the splay of each hook that is pending and has not been tried for the current generation.
    /// Further changes do not prolong a wait.
    private mutating func splay(_ name: String, at now: Instant) {
        guard let pipeline = pipelines[name], let current = pipeline.current?.identity else { return }
        for (index, hook) in pipeline.hooks.enumerated()
        where hook.definition.splay > .zero && hook.due == nil && !hook.isSplayed && hook.memory.isPending(current)
            && hook.memory.attempts(for: current) == 0
        {
            let delay = hook.definition.splay * share(name)
            guard delay > .zero else { continue }
            pipelines[name]?.hooks[index].due = now + delay
            pipelines[name]?.hooks[index].isSplayed = true
        }
    }

    mutating func next(at now: Instant) -> [Action] {
        var actions: [Action] = []
        while running.count < Self.concurrencyLimit, let name = popNext() {
            if shared.has(name) {
                if let action = startShared(name, at: now) { actions.append(action) }
                continue
            }
            // The pipeline may have been dismissed or changed since it was queued.
            guard running[name] == nil, let pipeline = pipelines[name], let current = pipeline.current else { continue }
            let ready = pipeline.ready(at: now)
            guard let index = ready.first(where: { groups.permits(pipeline.hooks[$0].definition.limit) }) else {
                for index in ready { groups.wait(name, for: pipeline.hooks[index].definition.limit) }
                continue
            }
            let hook = pipeline.hooks[index]
            let memory = hook.memory.trying(current.identity)
            pipelines[name]?.hooks[index].memory = memory
            pipelines[name]?.hooks[index].clearWait()
            running[name] = hook.definition.identity
            groups.began(hook.definition.limit)
            countFailing(name)
            actions.append(
                .run(
                    Order(
                        pipeline: name, hook: hook.definition, generation: current, causes: pipeline.causes,
                        notified: memory.notified, attempt: memory.attempts + 1, memory: memory)))
        }
        if let due = waiting.earliest(), wakeUp.map({ due < $0 }) ?? true {
            wakeUp = due
            actions.append(.wake(due))
        }
        return actions
    }
}
