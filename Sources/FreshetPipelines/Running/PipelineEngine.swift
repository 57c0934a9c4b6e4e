package import FreshetSignals

/// All pipelines at work, in one service.
///
/// One task listens for all of them: a pipeline at rest has none, but its part of a subscription and, if a check is
/// planned, a timer. A run is a child task of the service.
package final class PipelineEngine: Sendable {
    let world: EngineDependencies
    private let inbox = CauseInbox()
    let state = Lock(State())
    private let probes: ProbeCoordinator

    struct State {
        var runners: [CauseInbox.Key: PipelineRunner] = [:]
        var lastKey: CauseInbox.Key = PipelineEngine.probesKey
        var goesToSleep = false
        var isOver = false

        /// In the order in which they were added, so that what happened once can happen again.
        var inOrder: [PipelineRunner] { runners.sorted { $0.key < $1.key }.map(\.value) }
    }

    /// The desk's for probes, in the inbox.
    private static let probesKey: CauseInbox.Key = 0

    /// - Parameter tell: is told what people should know of probes, from the service's task; it must not block.
    package init(_ world: EngineDependencies, probeNews tell: @escaping @Sendable (ProbeEvent) -> Void = { _ in }) {
        self.world = world
        probes = ProbeCoordinator(world, Mailbox(inbox: inbox, key: Self.probesKey), tell: tell)
    }

    /// Asks for a proof once, with all who ask at the same time; nil if there is one, else a sentence that says why not.
    /// To be called while the service runs.
    package func refusal(of probe: NetworkProbe, epoch: UInt64) async -> String? {
        await probes.refusal(of: ProofRequest(probe, epoch: epoch), newKey())
    }

    /// Adds a pipeline, before or while the service runs. It listens from the call on, and works when this returns.
    ///
    /// - Parameters: see ``add(_:remembered:signal:network:splay:share:seed:report:)``.
    package func add(
        _ definition: PipelineDefinition, signal: Signal, network: NetworkState, splay: Duration = .zero,
        share: Double = 0, seed: UInt64 = .random(in: .min ... .max), report: @escaping @Sendable (EngineEvent) -> Void
    ) async -> PipelineRunner {
        let place = listen(to: signal)
        let remembered = await world.store.remembered(definition.name)
        return start(
            definition, RefreshSettings(definition, splay: splay, share: share), remembered, network, seed, at: place,
            report)
    }

    /// The same for one of which is known already what the store remembers.
    ///
    /// - Parameters:
    ///   - remembered: what the store remembers of it.
    ///   - signal: all that the pipeline listens to, merged.
    ///   - network: the network's present state, for this pipeline's target.
    ///   - splay: this pipeline's share of the daemon's `splay`.
    ///   - share: this host's and pipeline's share of a random delay: 0 or more, less than 1, always the same.
    ///   - seed: where random delays begin.
    ///   - report: is told what happens, in order, from the service's task; it must not block.
    package func add(
        _ definition: PipelineDefinition, remembered: PersistentState, signal: Signal, network: NetworkState,
        splay: Duration = .zero, share: Double = 0, seed: UInt64 = .random(in: .min ... .max),
        report: @escaping @Sendable (EngineEvent) -> Void
    ) -> PipelineRunner {
        start(
            definition, RefreshSettings(definition, splay: splay, share: share), remembered, network, seed,
            at: listen(to: signal), report)
    }

    /// Where a pipeline that is about to be added hears what comes.
    private struct Place {
        var key: CauseInbox.Key
        var subscription: CauseSubscription
        var mailbox: Mailbox<RefreshMachine.Event>
    }

    private func listen(to signal: Signal) -> Place {
        let key = newKey()
        return Place(
            key: key, subscription: inbox.subscribe(to: signal, as: key), mailbox: Mailbox(inbox: inbox, key: key))
    }

    private func newKey() -> CauseInbox.Key {
        state.withLock { state in
            state.lastKey += 1
            return state.lastKey
        }
    }

    private func start(
        _ definition: PipelineDefinition, _ settings: RefreshSettings, _ remembered: PersistentState,
        _ network: NetworkState, _ seed: UInt64, at place: Place, _ report: @escaping @Sendable (EngineEvent) -> Void
    ) -> PipelineRunner {
        let runner = PipelineRunner(
            definition, settings, remembered: remembered, network: network, world: world,
            subscription: place.subscription, mailbox: place.mailbox, probes: probes, seed: seed, report: report)
        let (isOver, goesToSleep) = state.withLock { state in
            if !state.isOver { state.runners[place.key] = runner }
            return (state.isOver, state.goesToSleep)
        }
        if isOver {
            runner.close()
        } else {
            if goesToSleep { place.mailbox.post(.goesToSleep(true)) }
            // What fired meanwhile is found, and the first timer is set.
            place.mailbox.post(.timer)
        }
        return runner
    }

    /// Has a pipeline hear another signal from now on, instead of the one before. What it has heard of that, and what it
    /// is doing, stays. What fires at this very moment in both may be counted twice, and is missed in neither.
    package func listen(_ runner: PipelineRunner, to signal: Signal) {
        runner.listen(to: inbox.subscribe(to: signal, as: runner.mailbox.key))
    }

    /// Ends a pipeline's work: its run is cancelled and awaited, and those who wait for it are answered. To be called
    /// while the service runs, or after.
    package func remove(_ runner: PipelineRunner) async {
        await runner.stop()
    }

    /// So many pipelines take a step before other tasks have the thread, when one signal has woken thousands: that takes one or
    /// two milliseconds.
    static let stepsPerTurn = 64

    /// Does the work of all pipelines until the task is cancelled. When it returns every run has ended, every slot was
    /// given back, and everybody who waited was answered. To be called once.
    package func run() async {
        await withDiscardingTaskGroup { group in
            while let keys = await inbox.next() {
                for (index, key) in keys.enumerated() {
                    if index > 0, index.isMultiple(of: Self.stepsPerTurn) { await Task.yield() }
                    step(key, in: &group)
                }
            }
            for runner in state.withLock({ $0.inOrder }) { runner.beginStop(in: &group) }
            group.cancelAll()
        }
        // By now the last runs have returned; what is left is to say so.
        let rest = state.withLock { state in
            state.isOver = true
            defer { state.runners = [:] }
            return state.inOrder
        }
        await withDiscardingTaskGroup { group in
            for runner in rest { runner.beginStop(in: &group) }
        }
        for runner in rest { runner.close() }
        probes.close()
    }

    private func step(_ key: CauseInbox.Key, in group: inout DiscardingTaskGroup) {
        guard key != Self.probesKey else { return probes.step(in: &group) }
        // Unknown: it was removed, or is only about to be added and looks by itself then.
        guard let runner = state.withLock({ $0.runners[key] }) else { return }
        runner.step(in: &group)
        if runner.isOver {
            state.withLock { $0.runners[key] = nil }
            runner.close()
        }
    }
}
