package import FreshetModel

/// Decides when the hooks of several pipelines run, and for which changes.
///
/// Changes of a hook's pipelines are a burst until none follows for the hook's quiet period, or until the burst is as
/// old as its upper bound. Then the hook runs once, for all pipelines that have changed since its last success. Changes
/// during a run are the next burst. After a failure the hook waits for its backoff; changes meanwhile neither shorten
/// nor prolong that wait, and the next attempt reports them, too.
///
/// ``HookMachine`` has one of these. It decides which hooks get a permit to run, and measures the time. The cost of an
/// event depends on the hooks of its pipeline only, that of a run on its changes.
package struct SharedHookMachine: Sendable {
    typealias Instant = BootInstant

    /// The most changes of one run. The next run, which follows immediately, reports the others.
    package static let mostChanges = 1_000

    /// A hook that is to run.
    package struct Order: Hashable, Sendable {
        package var hook: SharedHookDefinition
        /// The changed pipelines, by name: for each of them the order that its own hook would get.
        package var changes: [HookMachine.Order]
        /// How many more pipelines have changed; the next run reports them.
        package var more: Int
        /// The number of this attempt, counted from 1 after each success.
        package var attempt: Int
    }

    /// How a run has ended.
    package enum Result: Hashable, Sendable {
        /// The new states of the changed pipelines, in the order of ``Order/changes``.
        case ended([StoredHookState])
        /// The daemon stops: the changes stay pending.
        case cancelled
    }

    /// What is known about one pipeline of a hook.
    struct Member: Sendable {
        var memory: StoredHookState
        var current: CurrentGeneration?
        var causes: String?
        /// The generation that the run in progress reports; nil: it does not report this pipeline.
        var reported: GenerationIdentity?

        /// Whether a change has to be reported that the run in progress does not report.
        var isChanged: Bool {
            guard let identity = current?.identity else { return false }
            if let reported { return reported != identity }
            return memory.isPending(identity)
        }
    }

    /// Changes since the last run began.
    private struct Burst {
        /// When the burst ends if no further change comes.
        var end: Instant
        /// When it ends even if further changes come.
        var latest: Instant
        /// When the host's part of the splay ends.
        let splayed: Instant

        var due: Instant { max(end, splayed) }

        /// Shortens the burst if a reload has made the quiet period shorter.
        mutating func shorten(to definition: SharedHookDefinition, at now: Instant) {
            latest = min(latest, now + definition.atMost)
            end = min(end, now + definition.quiet, latest)
        }
    }

    private struct Hook {
        var definition: SharedHookDefinition
        var members: [String: Member] = [:]
        /// The changed pipelines that the run in progress does not report, each with its place in the order in which
        /// they changed.
        var changed: [String: UInt64] = [:]
        var burst: Burst?
        /// The end of the wait after a failure.
        var backoff: Instant?
        /// The failed attempts since the last success.
        var failures = 0
        var isRunning = false

        /// When the hook may run next.
        var due: Instant? { [burst?.due, backoff].compactMap(\.self).max() }
    }

    private var hooks: [String: Hook] = [:]
    /// The hooks of each pipeline that has any, by their identity.
    private var hooksByPipeline: [String: Set<String>] = [:]
    private var changes: UInt64 = 0
    /// The hooks with a burst that does not wait for a backoff.
    private var gathering: Set<String> = []
    /// Whether the bursts go on until ``endBursts()``, and no hook runs before.
    var holdsBursts = false
    private let share: @Sendable (_ hook: String) -> Double

    /// - Parameter share: the part of a splay that a hook waits on this host, from 0 to 1.
    init(share: @escaping @Sendable (_ hook: String) -> Double) { self.share = share }

    // MARK: Events. Each returns the identities of the hooks that may have to run at another time.

    /// Sets the hooks. Hooks that are known already keep their state, and the states of the pipelines that they still
    /// have.
    mutating func use(_ definitions: [SharedHookDefinition], at now: Instant) -> [String] {
        var touched: [String] = []
        let kept = Set(definitions.map(\.identity))
        for identity in hooks.keys where !kept.contains(identity) {
            for pipeline in hooks[identity]?.members.keys.map(\.self) ?? [] { leave(pipeline, identity) }
            hooks[identity] = nil
            gathering.remove(identity)
            touched.append(identity)
        }
        for definition in definitions {
            let identity = definition.identity
            guard let known = hooks[identity]?.definition, known != definition else {
                if hooks[identity] == nil { hooks[identity] = Hook(definition: definition) }
                continue
            }
            hooks[identity]?.definition = definition
            // The administrator may have repaired the hook.
            let isRepaired = known.action != definition.action || known.exactTexts != definition.exactTexts
            if isRepaired { hooks[identity]?.backoff = nil }
            hooks[identity]?.burst?.shorten(to: definition, at: now)
            let pipelines = Set(definition.pipelines)
            for pipeline in hooks[identity]?.members.keys.map(\.self) ?? [] where !pipelines.contains(pipeline) {
                leave(pipeline, identity)
            }
            touched.append(identity)
        }
        return touched.sorted()
    }

    /// Sets what is known about a pipeline of these hooks. If a hook knows the pipeline already, its state there, which
    /// may be newer, stays.
    mutating func join(
        _ pipeline: String, _ memories: [String: StoredHookState], current: CurrentGeneration?, at now: Instant
    ) -> [String] {
        var touched: [String] = []
        for (identity, memory) in memories.sorted(by: { $0.key < $1.key }) {
            guard hooks[identity] != nil else { continue }
            var member = hooks[identity]?.members[pipeline] ?? Member(memory: memory)
            if member.current?.revision ?? 0 <= current?.revision ?? 0 {
                if member.current?.identity != current?.identity { member.causes = nil }
                member.current = current ?? member.current
            }
            hooks[identity]?.members[pipeline] = member
            hooksByPipeline[pipeline, default: []].insert(identity)
            // A failure for an older generation counts, too.
            let failures = max(member.memory.attempts, member.memory.failingSince == nil ? 0 : 1)
            if let known = hooks[identity]?.failures, known < failures { hooks[identity]?.failures = failures }
            review(pipeline, identity, at: now)
            touched.append(identity)
        }
        return touched
    }

    /// A pipeline is gone. A run that reports it goes on.
    mutating func leave(_ pipeline: String) -> [String] {
        let identities = hooksByPipeline[pipeline]?.sorted() ?? []
        for identity in identities { leave(pipeline, identity) }
        return identities
    }

    /// Readers see another generation, or do not find the copy any more. A late event about a generation that was
    /// replaced already is ignored; an event about the known generation does not change its causes.
    mutating func generationChanged(
        _ pipeline: String, _ generation: CurrentGeneration, causes: String?, at now: Instant
    ) -> [String] {
        let identities = hooksByPipeline[pipeline]?.sorted() ?? []
        for identity in identities {
            guard let known = hooks[identity]?.members[pipeline], known.current?.revision ?? 0 <= generation.revision
            else { continue }
            if known.current?.identity != generation.identity || known.causes == nil {
                hooks[identity]?.members[pipeline]?.causes = causes
            }
            hooks[identity]?.members[pipeline]?.current = generation
            // An event about the known generation is not a further change of the burst.
            if known.current?.identity != generation.identity { review(pipeline, identity, at: now) }
        }
        return identities
    }

    /// Ends all bursts, whatever their quiet periods are.
    mutating func endBursts() -> [String] {
        holdsBursts = false
        let identities = hooks.keys.sorted()
        for identity in identities {
            hooks[identity]?.burst = nil
            settle(identity)
        }
        return identities
    }

    /// The hook begins to run.
    ///
    /// - Returns: nil: nothing has changed, or the hook has to wait.
    mutating func begin(_ identity: String, at now: Instant) -> Order? {
        // Removed while it changes, so that its pipelines are not copied.
        guard isReady(identity, at: now), var hook = hooks.removeValue(forKey: identity) else { return nil }
        let oldest = hook.changed.sorted { $0.value < $1.value }.prefix(Self.mostChanges).map(\.key).sorted()
        var orders: [HookMachine.Order] = []
        for pipeline in oldest {
            hook.changed[pipeline] = nil
            guard var member = hook.members[pipeline], let current = member.current else { continue }
            member.memory = member.memory.trying(current.identity)
            member.reported = current.identity
            hook.members[pipeline] = member
            orders.append(
                HookMachine.Order(
                    pipeline: pipeline, hook: hook.definition.action, generation: current, causes: member.causes,
                    notified: member.memory.notified, attempt: member.memory.attempts + 1, memory: member.memory))
        }
        hook.isRunning = true
        hook.burst = nil
        hook.backoff = nil
        hooks[identity] = hook
        gathering.remove(identity)
        return Order(
            hook: hook.definition, changes: orders, more: hook.changed.count, attempt: hook.failures + 1)
    }

    /// A run has ended.
    ///
    /// - Parameter backoff: how long the hook waits after a number of failures.
    mutating func ended(
        _ order: Order, _ result: Result, at now: Instant, backoff: (_ failures: Int) -> Duration
    ) {
        let identity = order.hook.identity
        // A hook that was removed and added again meanwhile is another one.
        guard hooks[identity]?.isRunning == true else { return }
        hooks[identity]?.isRunning = false
        var memories: [StoredHookState?] = order.changes.map { _ in nil }
        if case .ended(let states) = result { memories = states }
        let hasFailed = memories.contains { $0?.tried != nil }
        for (change, memory) in zip(order.changes, memories) {
            guard let member = hooks[identity]?.members[change.pipeline],
                member.reported == change.generation.identity
            else { continue }
            hooks[identity]?.members[change.pipeline]?.reported = nil
            hooks[identity]?.members[change.pipeline]?.memory = memory ?? member.memory
            note(change.pipeline, identity)
        }
        guard case .ended = result else { return }
        if hasFailed {
            hooks[identity]?.failures = order.attempt
            hooks[identity]?.backoff = now + backoff(order.attempt)
        } else {
            hooks[identity]?.failures = 0
        }
        settle(identity)
    }

    // MARK: State

    /// Whether the hook still has the pipeline of a run's change: otherwise the result of the run does not count for
    /// it, even if the pipeline was added to the hook again meanwhile.
    func counts(_ change: HookMachine.Order, of order: Order) -> Bool {
        guard let hook = hooks[order.hook.identity], hook.isRunning else { return false }
        return hook.members[change.pipeline]?.reported == change.generation.identity
    }

    /// Whether this is the identity of a hook of several pipelines.
    func has(_ identity: String) -> Bool { hooks[identity] != nil }

    /// No burst is in progress.
    var isSettled: Bool { gathering.isEmpty }

    func limit(of identity: String) -> HookLimit? { hooks[identity]?.definition.action.limit }

    func isReady(_ identity: String, at now: Instant) -> Bool {
        guard !holdsBursts, let hook = hooks[identity], !hook.isRunning, !hook.changed.isEmpty else { return false }
        return hook.due.map { $0 <= now } ?? true
    }

    /// When a hook may run that does not run, and has changes to report; nil: now, or never.
    func due(_ identity: String, after now: Instant) -> Instant? {
        guard !holdsBursts, let hook = hooks[identity], !hook.isRunning, !hook.changed.isEmpty, let due = hook.due,
            due > now
        else { return nil }
        return due
    }

    /// Whether the last attempt of a hook has failed, and it has not succeeded since.
    func isFailing(_ identity: String) -> Bool {
        guard let hook = hooks[identity] else { return false }
        return hook.failures > 0 && (hook.isRunning || !hook.changed.isEmpty)
    }

    /// The hooks that have to report a change of this pipeline.
    func pendingHooks(of pipeline: String, _ groups: HookGroups) -> [HookMachine.PendingRun] {
        (hooksByPipeline[pipeline]?.sorted() ?? []).compactMap { identity in
            guard let hook = hooks[identity], let member = hook.members[pipeline], let current = member.current,
                member.reported != nil || hook.changed[pipeline] != nil
            else { return nil }
            let isRunning = member.reported != nil
            var pending = HookMachine.PendingRun(
                hook: hook.definition.action, generation: current.number, memory: member.memory, isRunning: isRunning,
                next: hook.isRunning ? nil : hook.due)
            pending.shared = hook.definition.name
            pending.description = hook.definition.description
            guard !isRunning else { return pending }
            if hook.isRunning {
                pending.wait = .ownRun
            } else if hook.backoff != nil {
                pending.wait = .backoff
            } else if let burst = hook.burst {
                pending.wait = burst.splayed > burst.end ? .splay : .quiet
            } else if let limit = hook.definition.action.limit, !groups.permits(limit) {
                pending.wait = .group(limit.group)
            } else {
                pending.wait = .others
            }
            return pending
        }
    }

    // MARK: Changes

    private mutating func leave(_ pipeline: String, _ identity: String) {
        hooks[identity]?.members[pipeline] = nil
        hooksByPipeline[pipeline]?.remove(identity)
        if hooksByPipeline[pipeline]?.isEmpty == true { hooksByPipeline[pipeline] = nil }
        note(pipeline, identity)
        settle(identity)
    }

    /// Records whether a pipeline has a change that has to be reported, and begins or prolongs the burst.
    private mutating func review(_ pipeline: String, _ identity: String, at now: Instant) {
        note(pipeline, identity)
        if let hook = hooks[identity], hook.changed[pipeline] != nil {
            let definition = hook.definition
            if let burst = hook.burst {
                hooks[identity]?.burst?.end = max(burst.end, min(now + definition.quiet, burst.latest))
            } else {
                // The next attempt after a failure reports the change; it does not wait for the splay.
                let splay = hook.backoff == nil ? definition.action.splay * share(identity) : .zero
                hooks[identity]?.burst = Burst(
                    end: now + min(definition.quiet, definition.atMost), latest: now + definition.atMost,
                    splayed: now + splay)
            }
        }
        settle(identity)
    }

    private mutating func note(_ pipeline: String, _ identity: String) {
        if hooks[identity]?.members[pipeline]?.isChanged == true {
            guard hooks[identity]?.changed[pipeline] == nil else { return }
            changes += 1
            hooks[identity]?.changed[pipeline] = changes
        } else {
            hooks[identity]?.changed[pipeline] = nil
        }
    }

    /// Ends the waits of a hook that has nothing to report.
    private mutating func settle(_ identity: String) {
        guard let hook = hooks[identity] else { return }
        if hook.changed.isEmpty {
            hooks[identity]?.burst = nil
            if !hook.isRunning {
                hooks[identity]?.backoff = nil
                hooks[identity]?.failures = 0
            }
        }
        if hooks[identity]?.burst != nil, hook.backoff == nil {
            gathering.insert(identity)
        } else {
            gathering.remove(identity)
        }
    }
}
