package import FreshetModel
package import FreshetSignals

/// Runs all pipelines in one service.
///
/// One task serves all of them: an idle pipeline has no task, only its part of a subscription and, if a check is
/// planned, a timer. A run is a child task of the service.
package final class PipelineEngine: Sendable {
    let world: EngineDependencies
    private let inbox = CauseInbox()
    let state = Lock(State())
    private let probes: ProbeCoordinator
    private let stepped: @Sendable (_ pipeline: String) -> Void

    struct State {
        var runners: [CauseInbox.Key: PipelineRunner] = [:]
        var lastKey: CauseInbox.Key = PipelineEngine.probesKey
        var goesToSleep = false
        /// See ``PipelineEngine/meteredChanged(_:)``.
        var metered: String?
        /// See ``PipelineEngine/powerChanged(_:)``.
        var power: String?
        var isOver = false

        /// The runners in the order in which they were added, so that tests are reproducible.
        var inOrder: [PipelineRunner] { runners.sorted { $0.key < $1.key }.map(\.value) }
    }

    /// The key of the probe coordinator in the inbox.
    private static let probesKey: CauseInbox.Key = 0

    /// Both closures are called from the service's task and must not block.
    ///
    /// - Parameters:
    ///   - notify: gets the events of probes for the journal.
    ///   - stepped: called after each step of a pipeline, which may have changed its status.
    package init(
        _ world: EngineDependencies, onProbeEvent notify: @escaping @Sendable (ProbeEvent) -> Void = { _ in },
        onStep stepped: @escaping @Sendable (_ pipeline: String) -> Void = { _ in }
    ) {
        self.world = world
        self.stepped = stepped
        probes = ProbeCoordinator(world, Mailbox(inbox: inbox, key: Self.probesKey), notify: notify)
    }

    /// Requests a proof once, shared with all concurrent requests. Returns nil if there is a proof, otherwise a
    /// sentence that says why not. Call this while the service runs.
    package func refusal(of probe: NetworkProbe, epoch: UInt64) async -> String? {
        await probes.refusal(of: ProofRequest(probe, epoch: epoch), newKey())
    }

    /// Adds a pipeline, before or while the service runs. It is subscribed from the call on, and works when this
    /// returns.
    ///
    /// - Parameters: see ``add(_:remembered:signal:network:splay:share:seed:report:)``.
    package func add(
        _ definition: PipelineDefinition, signal: Signal, network: NetworkFeed, splay: Duration = .zero,
        share: Double = 0, seed: UInt64 = .random(in: .min ... .max),
        report: @escaping @Sendable (PipelineReport) -> Void
    ) async -> PipelineRunner {
        let registration = register(definition, signal: signal, network: network)
        let remembered = await world.store.remembered(definition.name)
        let runner = makeRunner(
            definition, remembered: remembered, at: registration, splay: splay, share: share, seed: seed, report: report
        )
        start(runner, at: registration)
        return runner
    }

    /// Adds a pipeline whose stored state is known already.
    ///
    /// - Parameters:
    ///   - remembered: the stored state of the pipeline.
    ///   - signal: all signals that the pipeline subscribes to, merged, without the one that comes with `network`.
    ///   - network: the network of this pipeline's target.
    ///   - splay: this pipeline's share of the daemon's `splay`.
    ///   - share: this host's and pipeline's share of a random delay: 0 or more, less than 1, always the same.
    ///   - seed: the seed of random delays.
    ///   - report: gets all events in order, from the service's task; it must not block.
    package func add(
        _ definition: PipelineDefinition, remembered: PersistentState, signal: Signal, network: NetworkFeed,
        splay: Duration = .zero, share: Double = 0, seed: UInt64 = .random(in: .min ... .max),
        report: @escaping @Sendable (PipelineReport) -> Void
    ) -> PipelineRunner {
        let registration = register(definition, signal: signal, network: network)
        let runner = makeRunner(
            definition, remembered: remembered, at: registration, splay: splay, share: share, seed: seed, report: report
        )
        start(runner, at: registration)
        return runner
    }

    /// The subscription and mailbox of a pipeline that is about to be added.
    package struct Registration: Sendable {
        var key: CauseInbox.Key
        var subscription: CauseSubscription
        var mailbox: Mailbox<RefreshMachine.Event>
        var network: NetworkFeed
        /// The state of the network at the registration.
        var networkState: NetworkState
    }

    /// Subscribes a pipeline, whose runner is made next: see ``makeRunner(_:remembered:at:splay:share:seed:report:)``.
    /// Pipelines take their first steps in the order of the calls of ``start(_:at:)``.
    ///
    /// - Parameters: see ``add(_:remembered:signal:network:splay:share:seed:report:)``.
    package func register(
        _ definition: PipelineDefinition, signal: Signal, network: NetworkFeed
    ) -> Registration {
        let key = newKey()
        let mailbox = Mailbox<RefreshMachine.Event>(inbox: inbox, key: key)
        let state = network.follow(mailbox, receivesSignal: definition.refresh.on.contains(.network))
        return Registration(
            key: key, subscription: inbox.subscribe(to: signal, as: key), mailbox: mailbox, network: network,
            networkState: state)
    }

    private func newKey() -> CauseInbox.Key {
        state.withLock { state in
            state.lastKey += 1
            return state.lastKey
        }
    }

    /// Makes the runner of a registered pipeline, which does nothing before ``start(_:at:)``. Several threads may make
    /// runners at the same time.
    ///
    /// - Parameters: see ``add(_:remembered:signal:network:splay:share:seed:report:)``.
    package func makeRunner(
        _ definition: PipelineDefinition, remembered: PersistentState, at registration: Registration,
        splay: Duration, share: Double, seed: UInt64, report: @escaping @Sendable (PipelineReport) -> Void
    ) -> PipelineRunner {
        PipelineRunner(
            definition, RefreshSettings(definition, splay: splay, share: share, clock: world.clock),
            remembered: remembered, network: registration.network, registration.networkState, world: world,
            subscription: registration.subscription, mailbox: registration.mailbox, probes: probes, seed: seed,
            report: report)
    }

    /// Starts the runner of a registered pipeline: it works when this returns.
    package func start(_ runner: PipelineRunner, at registration: Registration) {
        let (isOver, goesToSleep, metered, power) = state.withLock { state in
            if !state.isOver { state.runners[registration.key] = runner }
            return (state.isOver, state.goesToSleep, state.metered, state.power)
        }
        if isOver {
            runner.close()
        } else {
            if goesToSleep { registration.mailbox.post(.goesToSleep(true)) }
            if let metered { registration.mailbox.post(.metered(metered)) }
            if let power { registration.mailbox.post(.power(power)) }
            // The step takes signals that fired meanwhile, and sets the first timer.
            registration.mailbox.post(.timer)
        }
    }

    /// Subscribes a pipeline to another signal instead of its previous one. Signals that it has received, and its run,
    /// stay. A signal that fires during the change may be counted twice, but is not lost.
    package func subscribe(_ runner: PipelineRunner, to signal: Signal) {
        runner.subscribe(to: inbox.subscribe(to: signal, as: runner.mailbox.key))
    }

    /// Stops a pipeline: its run is cancelled and awaited, and waiting requests are answered. Call this while the
    /// service runs, or afterwards.
    package func remove(_ runner: PipelineRunner) async {
        await runner.stop()
    }

    /// The number of pipelines that take a step before the task yields, when one signal has woken thousands: that takes
    /// one or two milliseconds.
    static let stepsPerYield = 64

    /// Runs all pipelines until the task is cancelled. When it returns, every run has ended, every permit is released,
    /// and every request is answered. Call it once.
    package func run() async {
        await withDiscardingTaskGroup { group in
            while let keys = await inbox.next() {
                for (index, key) in keys.enumerated() {
                    if index > 0, index.isMultiple(of: Self.stepsPerYield) { await Task.yield() }
                    step(key, in: &group)
                }
            }
            for runner in state.withLock({ $0.inOrder }) { runner.beginStop(in: &group) }
            group.cancelAll()
        }
        // All runs have ended; their ends still have to be handled.
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
        // An unknown pipeline was removed, or is about to be added; its first step then takes what has come.
        guard let runner = state.withLock({ $0.runners[key] }) else { return }
        runner.step(in: &group)
        stepped(runner.name)
        if runner.isOver {
            state.withLock { $0.runners[key] = nil }
            runner.close()
        }
    }
}
