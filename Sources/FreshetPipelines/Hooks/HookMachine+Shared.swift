package import FreshetModel

/// Hooks of several pipelines in the queue of all hooks.
extension HookMachine {
    /// Sets the hooks of several pipelines. Their pipelines join them by ``join(_:_:current:at:)``.
    package mutating func useShared(_ hooks: [SharedHookDefinition], at now: Instant) -> [Action] {
        for identity in shared.use(hooks, at: now) { enqueueShared(identity, at: now) }
        return next(at: now)
    }

    /// Sets the stored states that hooks of several pipelines have for a pipeline, by their identities. A state that is
    /// known here already stays.
    package mutating func join(
        _ name: String, _ memories: [String: StoredHookState], current: CurrentGeneration?, at now: Instant
    ) -> [Action] {
        for identity in shared.join(name, memories, current: current, at: now) { enqueueShared(identity, at: now) }
        return next(at: now)
    }

    /// From now on, bursts of changes do not end, and hooks of several pipelines do not run, until ``endBursts(at:)``.
    package mutating func holdBursts() { shared.holdsBursts = true }

    /// No more changes are expected: hooks of several pipelines do not wait for their quiet periods.
    package mutating func endBursts(at now: Instant) -> [Action] {
        for identity in shared.endBursts() { enqueueShared(identity, at: now) }
        return next(at: now)
    }

    /// A hook of ``Action/runShared(_:)`` has ended.
    package mutating func ended(
        _ order: SharedHookMachine.Order, _ result: SharedHookMachine.Result, at now: Instant
    ) -> [Action] {
        let identity = order.hook.identity
        guard running.removeValue(forKey: identity) != nil else { return [] }
        groups.ended(order.hook.action.limit)
        // Drawn in advance: the machine of the other hooks has no random numbers.
        let rest = backoff(after: order.attempt)
        shared.ended(order, result, at: now) { _ in rest }
        if result != .cancelled { enqueueShared(identity, at: now) }
        return next(at: now)
    }

    /// Whether the result of a run has to be stored for one of its changes: not if the hook does not have the pipeline
    /// any more, even if the pipeline was added again meanwhile.
    package func counts(_ change: Order, of order: SharedHookMachine.Order) -> Bool { shared.counts(change, of: order) }

    // MARK: Queue

    /// Appends a hook of several pipelines to the queue if it may run, and records whether it waits or has failed.
    mutating func enqueueShared(_ identity: String, at now: Instant) {
        waiting.set(identity, to: running[identity] == nil ? shared.due(identity, after: now) : nil)
        setFailing(identity, to: shared.isFailing(identity) ? 1 : 0)
        guard running[identity] == nil, shared.isReady(identity, at: now), queued.insert(identity).inserted else {
            return
        }
        queue.append(identity)
    }

    /// Starts a hook of several pipelines, unless it was removed, or has nothing to report, or has to wait.
    mutating func startShared(_ identity: String, at now: Instant) -> Action? {
        guard running[identity] == nil, shared.isReady(identity, at: now) else { return nil }
        let limit = shared.limit(of: identity)
        guard groups.permits(limit) else {
            groups.wait(identity, for: limit)
            return nil
        }
        guard let order = shared.begin(identity, at: now) else { return nil }
        running[identity] = identity
        groups.began(limit)
        enqueueShared(identity, at: now)
        return .runShared(order)
    }
}
