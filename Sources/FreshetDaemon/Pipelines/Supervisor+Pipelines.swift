import FreshetConfiguration
import FreshetControl
import FreshetEventLoop
import FreshetModel
import FreshetPipelines
import FreshetSignals
import FreshetSystemSignals
import Logging
import Synchronization

/// A running pipeline with the network target that it needs.
struct RunningPipeline: Sendable {
    let runner: PipelineRunner
    let target: NetworkTarget

    var definition: PipelineDefinition { runner.definition }
}

/// A pipeline whose configuration has errors. It does not run; its last copy stays published.
struct InvalidPipeline: Sendable {
    var message: String
    var remembered: PersistentState
    /// Wall-clock microseconds since 1970.
    var since: Int64
}

extension Supervisor {
    // MARK: Hosting

    /// Starts all pipelines. One query reads their stored states.
    ///
    /// Other work continues meanwhile, and reloads wait.
    func hostAll() async {
        await reloadLock.acquire()
        defer { reloadLock.release() }
        guard let parts else { return }
        var remembered = await parts.store.remembered()
        for (index, definition) in configuration.pipelines.enumerated() {
            await giveWay(before: index, "start of pipelines")
            // The configuration may have got a stricter mode or another group while the daemon did not run.
            if let state = remembered[definition.name], state.generation != nil,
                state.binding
                    != definition.validatorBinding(
                        with: ParameterSettings(remembered: state.parameters, for: definition).values(for: definition))
            {
                await parts.store.setAccess(definition)
            }
        }
        await settleWithdrawals(&remembered)
        for (index, definition) in configuration.pipelines.enumerated() {
            await giveWay(before: index, "start of pipelines")
            guard let state = remembered[definition.name] else {
                await host(definition)
                continue
            }
            let (target, network, reporter) = prepare(definition, in: parts)
            let runner = parts.engine.add(
                definition, remembered: state, signal: signal(of: definition, target), network: network, splay: splay,
                share: share(of: definition.name)
            ) { reporter.report($0) }
            let hosted = RunningPipeline(runner: runner, target: target)
            pipelines[definition.name] = hosted
            updateDirectNetworks(hosted)
        }
        await assignHooks(of: configuration.pipelines)
        isHookStateLost = false
    }

    /// The number of pipelines that are handled before other work gets the loop. They take some milliseconds.
    static let pipelinesPerPause = 64

    /// Yields the loop after every ``pipelinesPerPause`` pipelines. Call it in loops over all pipelines.
    ///
    /// - Parameters:
    ///   - index: the number of pipelines that were handled before.
    ///   - job: the name of the work in the log.
    func giveWay(before index: Int, _ job: String) async {
        guard index.isMultiple(of: Self.pipelinesPerPause) else { return }
        if index > 0 { await Task.yield() }
        loop.nameJob(job)
    }

    /// Starts a pipeline, which receives its signals from now on.
    func host(_ definition: PipelineDefinition) async {
        guard let parts else { return }
        let (target, network, reporter) = prepare(definition, in: parts)
        let runner = await parts.engine.add(
            definition, signal: signal(of: definition, target), network: network, splay: splay,
            share: share(of: definition.name)
        ) { reporter.report($0) }
        let hosted = RunningPipeline(runner: runner, target: target)
        pipelines[definition.name] = hosted
        updateDirectNetworks(hosted)
        // The network may have changed while the pipeline was being added.
        if let state = targets[target]?.state, state != network { runner.networkChanged(state) }
    }

    private func prepare(
        _ definition: PipelineDefinition, in parts: Parts
    ) -> (target: NetworkTarget, network: NetworkState, reporter: PipelineEventSink) {
        readers.set(definition)
        let target = NetworkTarget(definition, daemonTarget: configuration.daemon.networkTarget)
        let network = follow(target, in: parts)
        let reporter = PipelineEventSink(
            PipelineLogger(name: definition.name, log: log, events: events, limiter: limiter, readers: readers),
            registry,
            committed: { [commits = commitSignals, name = definition.name] generation, causes in
                commits.fire(name, generation)
                parts.hooks.generationChanged(name, generation, causes: causes)
            },
            withdrawal: makeWithdrawalHandler(definition.name, parts.hooks),
            runEnded: { [memoryRelease] in
                memoryRelease.runEnded()
                // Its commit may have made the directory again.
                parts.publishedFiles?.renew()
            },
            statusChanged: { [weak self] in self?.status.mayHaveChanged() })
        return (target, network, reporter)
    }

    /// Stops a pipeline; its copy stays.
    func dismiss(_ name: String) async {
        guard let hosted = pipelines.removeValue(forKey: name) else { return }
        readers.remove(name)
        await parts?.engine.remove(hosted.runner)
        release(hosted.target)
        fileWatches[name] = nil
        followedCommits[name] = nil
        parts?.hooks.dismiss(name)
    }

    /// Applies another configuration to a pipeline. A pipeline that subscribes to other signals from now on keeps the
    /// signals that it has received.
    func change(_ definition: PipelineDefinition) async {
        guard let hosted = pipelines[definition.name], let parts else { return await host(definition) }
        readers.set(definition)
        let target = NetworkTarget(definition, daemonTarget: configuration.daemon.networkTarget)
        let before = hosted.definition.refresh
        let (splay, share) = (splay, share(of: definition.name))
        guard target == hosted.target else {
            let network = follow(target, in: parts)
            parts.engine.subscribe(hosted.runner, to: signal(of: definition, target))
            hosted.runner.reconfigure(definition, splay: splay, share: share)
            hosted.runner.networkChanged(network)
            release(hosted.target)
            let changed = RunningPipeline(runner: hosted.runner, target: target)
            pipelines[definition.name] = changed
            updateDirectNetworks(changed)
            return
        }
        if definition.refresh.on != before.on || definition.refresh.files != before.files
            || definition.refresh.dbus != before.dbus || definition.refresh.after != before.after
        {
            parts.engine.subscribe(hosted.runner, to: signal(of: definition, target))
        }
        hosted.runner.reconfigure(definition, splay: splay, share: share)
        updateDirectNetworks(hosted)
    }

    /// The merged signals of a pipeline. They always include the operator's requests, but not the timer, which belongs
    /// to the engine.
    private func signal(of definition: PipelineDefinition, _ target: NetworkTarget) -> Signal {
        var signals = [operation.signal(activatedBy: definition.name)]
        for name in definition.refresh.on.sorted(by: { $0.rawValue < $1.rawValue }) {
            switch name {
            case .start: signals.append(standard.start.signal)
            case .reload: signals.append(standard.reload.signal)
            case .network: if let follower = targets[target] { signals.append(follower.watch.signal) }
            case .resume: if let sleep = parts?.sleep { signals.append(sleep.resumed) }
            case .foreground: if let sessions = parts?.sessions { signals.append(sessions.foreground) }
            }
        }
        signals += definition.refresh.dbus.compactMap { busSignal($0) }
        signals += filesSignals(of: definition)
        signals += commitSignals(of: definition)
        return .merge(signals)
    }

    /// This host's share of the daemon's `splay`.
    private var splay: Duration {
        configuration.daemon.splay * share(of: "")
    }

    /// This host's share of a random delay of this name, always the same.
    private func share(of name: String) -> Double {
        StableDelay.fraction(identity: identity, name: name)
    }

    // MARK: Invalid pipelines

    /// Logs the invalid pipelines, and reads their stored states, which contain the published copies.
    func prepareInvalid() async {
        guard let parts else { return }
        for (name, diagnostics) in configuration.invalid.sorted(by: { $0.key < $1.key }) {
            let message =
                diagnostics.first { $0.severity == .error }?.forEverybody.sentence ?? "its configuration has errors"
            invalid[name] = InvalidPipeline(
                message: message, remembered: await parts.store.remembered(name), since: WallClock.now)
            for diagnostic in diagnostics where diagnostic.severity == .error {
                limiter.log(.invalidPipeline, diagnostic.fields.merging([.pipeline: .string(name)]) { $1 })
            }
        }
        limiter.finish(.invalidPipeline)
    }

    // MARK: The network

    /// Follows a target for as long as a pipeline needs it; returns its current state.
    private func follow(_ target: NetworkTarget, in parts: Parts) -> NetworkState {
        if var known = targets[target] {
            known.users += 1
            targets[target] = known
            return known.state
        }
        let watch = parts.network.watch(target)
        let following = registry.follow(watch.signal, row: NetworkTargetFollower.row(of: target))
        let follower = NetworkTargetFollower(watch, following, state: NetworkState(watch.fact, before: nil))
        targets[target] = follower
        let ending = follower.ending
        adopt { [weak self] in
            await withDiscardingTaskGroup { group in
                group.addTask { for await fact in watch.facts { await self?.networkChanged(target, fact) } }
                for await isEnding in ending where isEnding { break }
                group.cancelAll()
            }
        }
        return follower.state
    }

    private func release(_ target: NetworkTarget) {
        guard var follower = targets[target] else { return }
        follower.users -= 1
        targets[target] = follower.users > 0 ? follower : nil
        if follower.users == 0 { follower.ending.value = true }
    }

    private func networkChanged(_ target: NetworkTarget, _ fact: NetworkFact) {
        registry.fact(SignalName.network, row: NetworkTargetFollower.row(of: target), fact.text)
        guard var follower = targets[target] else { return }
        let before = follower.state
        follower.state = NetworkState(fact, before: before)
        targets[target] = follower
        guard follower.state != before else { return }
        if follower.state.reachable != before.reachable {
            networkChanged(of: target)
        } else if follower.state.reachable, follower.state.path != before.path {
            networkChanged(of: target, message: JournalMessage.network.text)
        }
        for hosted in pipelines.values where hosted.target == target { hosted.runner.networkChanged(follower.state) }
        status.mayHaveChanged()
    }

    /// Logs the first change of a network immediately, and counts further changes until the network is stable.
    private func networkChanged(of target: NetworkTarget, message: Logger.Message? = nil) {
        logNetworkChanges()
        let now = ContinuousClock.now
        guard let decision = targets[target]?.flapLimiter.changed(at: now) else { return }
        logNetwork(target, message: message, level: decision == .log ? .info : .debug)
        armNetworkTimer()
    }

    /// Logs the summaries of network changes that are due.
    private func logNetworkChanges() {
        let now = ContinuousClock.now
        for target in Array(targets.keys) {
            switch targets[target]?.flapLimiter.elapsed(at: now) {
            case .quiet(let changes): logNetwork(target, changes: changes)
            case .goesOn(let changes): logNetwork(target, changes: changes, message: "the network keeps changing")
            case nil: break
            }
        }
        armNetworkTimer()
    }

    private func armNetworkTimer() {
        guard let due = targets.values.compactMap(\.flapLimiter.due).min() else { return }
        let timer =
            networkTimer
            ?? LoopTimer(loop) { [weak self] in
                self?.adopt { [weak self] in await self?.logNetworkChanges() }
            }
        networkTimer = timer
        timer.arm(at: due)
    }

    private func logNetwork(
        _ target: NetworkTarget, changes: Int? = nil, message: Logger.Message? = nil, level: Logger.Level = .info
    ) {
        guard let follower = targets[target] else { return }
        var fields: [JournalField: Logger.MetadataValue] = [
            .target: .string("\(target)"), .path: .string(follower.watch.fact.description),
        ]
        if let changes { fields[.changes] = .stringConvertible(changes) }
        let state: Logger.Message =
            follower.state.reachable ? "the network is reachable" : "the network is not reachable"
        log.log(.network, text: message ?? state, level: level, fields)
    }
}

/// Passes the events of a pipeline's engine to the pipeline's logger, in order, and reports commits and withdrawals.
final class PipelineEventSink: Sendable {
    private let logger: Mutex<PipelineLogger>
    private let name: String
    private let registry: SignalRegistry
    private let committed: @Sendable (CurrentGeneration, _ causes: String?) -> Void
    private let withdrawal: WithdrawalHandler
    private let runEnded: @Sendable () -> Void
    private let statusChanged: @Sendable () -> Void

    /// Called when a copy was withdrawn or is published again, with the causes in one line.
    typealias WithdrawalHandler = @Sendable (CurrentGeneration, _ causes: String?) -> Void

    /// - Parameters:
    ///   - committed: called for each new generation, with the causes of its run in one line.
    ///   - withdrawal: called when the copy was withdrawn, and when the same copy is published again.
    init(
        _ logger: PipelineLogger, _ registry: SignalRegistry,
        committed: @escaping @Sendable (CurrentGeneration, _ causes: String?) -> Void,
        withdrawal: @escaping WithdrawalHandler = { _, _ in },
        runEnded: @escaping @Sendable () -> Void = {},
        statusChanged: @escaping @Sendable () -> Void
    ) {
        self.withdrawal = withdrawal
        self.runEnded = runEnded
        name = logger.name
        self.registry = registry
        self.logger = Mutex(logger)
        self.committed = committed
        self.statusChanged = statusChanged
    }

    func report(_ report: PipelineReport) {
        let event = report.event
        // A pipeline's timer and parameters belong to its engine and have no other source, so they are recorded here.
        if case .received(let cause) = event, [SignalName.timer, SignalName.parameter].contains(cause.signal) {
            registry.recordOccurrence(cause.signal, cause.detail, pipeline: name, count: cause.count)
        }
        let isWithdrawn = report.copy?.withdrawnSince != nil
        let generation: CurrentGeneration? =
            switch event {
            case .withdrawn, .returned: report.copy
            // A damaged generation is not kept, so it is not the copy.
            case .withdrawnDamaged(let lost, _): lost
            default: isWithdrawn ? nil : report.copy
            }
        logger.withLock { $0.log(event, generation: generation, isWithdrawn: isWithdrawn) }
        switch event {
        case .runEnded(let summary, _):
            if let new = report.committed { committed(new, summary.causes.summary) }
            runEnded()
        case .stateChanged, .expired, .expiredNoMore, .contentExpired, .contentExpiredNoMore: statusChanged()
        case .withdrawn, .withdrawnDamaged, .returned:
            reportWithdrawal(event, generation)
            statusChanged()
        default: break
        }
    }

    private func reportWithdrawal(_ event: EngineEvent, _ generation: CurrentGeneration?) {
        guard let generation else { return }
        switch event {
        case .withdrawn where generation.withdrawnSince != nil, .withdrawnDamaged:
            withdrawal(generation, "withdrawn")
        // A new generation is reported by the code that published it.
        case .returned(isSame: true, let causes) where generation.withdrawnSince == nil:
            withdrawal(generation, causes?.summary ?? "returned")
        default: break
        }
    }
}
