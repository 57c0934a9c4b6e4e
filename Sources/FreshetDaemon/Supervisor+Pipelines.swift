import FreshetConfiguration
import FreshetControl
import FreshetEventLoop
import FreshetPipelines
import FreshetSignals
import FreshetSystemSignals
import Logging
import Synchronization

/// A pipeline that runs, and the target of the network that it needs.
struct RunningPipeline: Sendable {
    let runner: PipelineRunner
    let target: NetworkTarget

    var definition: PipelineDefinition { runner.definition }
}

/// A pipeline whose files have faults: it does not run, and what it had is still offered.
struct InvalidPipeline: Sendable {
    var message: String
    var remembered: PersistentState
    /// Wall-clock microseconds since 1970.
    var since: Int64
}

extension Supervisor {
    // MARK: Hosting

    /// Starts all pipelines; what is remembered of them is asked for at once.
    ///
    /// Other work goes on meanwhile, and reloads wait.
    func hostAll() async {
        await takeReloadTurn()
        defer { endReloadTurn() }
        guard let parts else { return }
        var remembered = await parts.store.remembered()
        for (index, definition) in configuration.pipelines.enumerated() {
            await giveWay(before: index, "start of pipelines")
            // Somebody may have closed the copy in the configuration while the daemon was away.
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
            reporter.attach(runner)
            let hosted = RunningPipeline(runner: runner, target: target)
            pipelines[definition.name] = hosted
            tellDirectNetworks(hosted)
        }
        await assignHooks(of: configuration.pipelines)
        areHooksForgotten = false
    }

    /// So many pipelines are handled before other work has the loop: that takes some milliseconds.
    static let pipelinesPerPause = 64

    /// Lets other work have the loop now and then, in work for all pipelines.
    ///
    /// - Parameters:
    ///   - index: how many pipelines were handled before.
    ///   - job: what a log calls the work.
    func giveWay(before index: Int, _ job: String) async {
        guard index.isMultiple(of: Self.pipelinesPerPause) else { return }
        if index > 0 { await Task.yield() }
        loop.nameJob(job)
    }

    /// Starts a pipeline. What fires from now on is heard.
    func host(_ definition: PipelineDefinition) async {
        guard let parts else { return }
        let (target, network, reporter) = prepare(definition, in: parts)
        let runner = await parts.engine.add(
            definition, signal: signal(of: definition, target), network: network, splay: splay,
            share: share(of: definition.name)
        ) { reporter.report($0) }
        reporter.attach(runner)
        let hosted = RunningPipeline(runner: runner, target: target)
        pipelines[definition.name] = hosted
        tellDirectNetworks(hosted)
        // It may have changed while the pipeline was being added.
        if let state = targets[target]?.state, state != network { runner.networkChanged(state) }
    }

    private func prepare(
        _ definition: PipelineDefinition, in parts: Parts
    ) -> (target: NetworkTarget, network: NetworkState, reporter: PipelineEventSink) {
        readers.set(definition)
        let target = NetworkTarget(definition, daemonTarget: configuration.daemon.networkTarget)
        let network = follow(target, in: parts)
        let reporter = PipelineEventSink(
            PipelineLogger(name: definition.name, log: log, events: events, desk: news, readers: readers), book,
            committed: { [commits = commitNews, name = definition.name] generation, causes in
                commits.tell(name, generation)
                parts.hooks.offer(name, generation, causes: causes)
            },
            withdrawal: makeWithdrawalNews(definition.name, parts.hooks),
            statusChanged: { [weak self] in self?.statusMayHaveChanged() })
        return (target, network, reporter)
    }

    /// Ends a pipeline; its copy stays.
    func dismiss(_ name: String) async {
        guard let hosted = pipelines.removeValue(forKey: name) else { return }
        readers.remove(name)
        await parts?.engine.remove(hosted.runner)
        release(hosted.target)
        fileWatches[name] = nil
        followedCommits[name] = nil
        parts?.hooks.dismiss(name)
    }

    /// Gives a pipeline another configuration. One that listens to other signals from now on forgets nothing of what it
    /// has heard.
    func change(_ definition: PipelineDefinition) async {
        guard let hosted = pipelines[definition.name], let parts else { return await host(definition) }
        readers.set(definition)
        let target = NetworkTarget(definition, daemonTarget: configuration.daemon.networkTarget)
        let before = hosted.definition.refresh
        let (splay, share) = (splay, share(of: definition.name))
        guard target == hosted.target else {
            let network = follow(target, in: parts)
            parts.engine.listen(hosted.runner, to: signal(of: definition, target))
            hosted.runner.reconfigure(definition, splay: splay, share: share)
            hosted.runner.networkChanged(network)
            release(hosted.target)
            let changed = RunningPipeline(runner: hosted.runner, target: target)
            pipelines[definition.name] = changed
            tellDirectNetworks(changed)
            return
        }
        if definition.refresh.on != before.on || definition.refresh.files != before.files
            || definition.refresh.dbus != before.dbus || definition.refresh.after != before.after
        {
            parts.engine.listen(hosted.runner, to: signal(of: definition, target))
        }
        hosted.runner.reconfigure(definition, splay: splay, share: share)
        tellDirectNetworks(hosted)
    }

    /// All that a pipeline listens to, merged. Its timer is its engine's own, and the operator is always heard.
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

    // MARK: Faulty pipelines

    /// Notes the pipelines whose files have faults, and what each still offers.
    func prepareFaulty() async {
        guard let parts else { return }
        for (name, diagnostics) in configuration.faulty.sorted(by: { $0.key < $1.key }) {
            let message =
                diagnostics.first { $0.severity == .error }?.forEverybody.sentence ?? "its configuration has faults"
            faulty[name] = InvalidPipeline(
                message: message, remembered: await parts.store.remembered(name), since: WallClock.now)
            for diagnostic in diagnostics where diagnostic.severity == .error {
                news.say(.faultyPipeline, diagnostic.fields.merging([.pipeline: .string(name)]) { $1 })
            }
        }
        news.finish(.faultyPipeline)
    }

    // MARK: The network

    /// Follows a target for as long as a pipeline needs it, and says how it stands.
    private func follow(_ target: NetworkTarget, in parts: Parts) -> NetworkState {
        if var known = targets[target] {
            known.users += 1
            targets[target] = known
            return known.state
        }
        let watch = parts.network.watch(target)
        let following = book.follow(watch.signal, row: NetworkTargetFollower.row(of: target))
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
        book.fact(SignalName.network, row: NetworkTargetFollower.row(of: target), fact.text)
        guard var follower = targets[target] else { return }
        let before = follower.state
        follower.state = NetworkState(fact, before: before)
        targets[target] = follower
        guard follower.state != before else { return }
        if follower.state.reachable != before.reachable {
            tellNetworkChange(of: target)
        } else if follower.state.reachable, follower.state.path != before.path {
            tellNetworkChange(of: target, message: JournalMessage.network.text)
        }
        for hosted in pipelines.values where hosted.target == target { hosted.runner.networkChanged(follower.state) }
        statusMayHaveChanged()
    }

    /// A network that comes or goes is told at once; while it flaps the changes are counted, and told when it is calm.
    private func tellNetworkChange(of target: NetworkTarget, message: Logger.Message? = nil) {
        tellNetworkNews()
        let now = ContinuousClock.now
        guard let verdict = targets[target]?.news.changed(at: now) else { return }
        sayNetwork(target, message: message, level: verdict == .say ? .info : .debug)
        armNetworkTimer()
    }

    /// Says what is due of the targets' news.
    private func tellNetworkNews() {
        let now = ContinuousClock.now
        for target in Array(targets.keys) {
            switch targets[target]?.news.elapsed(at: now) {
            case .calm(let changes): sayNetwork(target, changes: changes)
            case .goesOn(let changes): sayNetwork(target, changes: changes, message: "the network keeps changing")
            case nil: break
            }
        }
        armNetworkTimer()
    }

    private func armNetworkTimer() {
        guard let due = targets.values.compactMap(\.news.due).min() else { return }
        let timer =
            networkTimer
            ?? LoopTimer(loop) { [weak self] in
                self?.adopt { [weak self] in await self?.tellNetworkNews() }
            }
        networkTimer = timer
        timer.arm(at: due)
    }

    private func sayNetwork(
        _ target: NetworkTarget, changes: Int? = nil, message: Logger.Message? = nil, level: Logger.Level = .info
    ) {
        guard let follower = targets[target] else { return }
        var fields: [JournalField: Logger.MetadataValue] = [
            .target: .string("\(target)"), .path: .string(follower.watch.fact.description),
        ]
        if let changes { fields[.changes] = .stringConvertible(changes) }
        let state: Logger.Message = follower.state.reachable ? "the network is there" : "the network is gone"
        log.say(.network, text: message ?? state, level: level, fields)
    }
}

/// Carries what a pipeline's engine reports to its voice, in order.
final class PipelineEventSink: Sendable {
    private let voice: Mutex<PipelineLogger>
    private let name: String
    private let book: SignalRegistry
    private let runner = Mutex(WeakRunner())
    private let commits = Mutex(CommitDetector())
    private let committed: @Sendable (CurrentGeneration, _ causes: String?) -> Void
    private let withdrawal: WithdrawalHandler
    private let statusChanged: @Sendable () -> Void

    /// Told that readers find a generation no more, or again, and why in a line.
    typealias WithdrawalHandler = @Sendable (CurrentGeneration, _ causes: String?) -> Void

    /// - Parameters:
    ///   - committed: told of each generation that a run leaves, and of the run's causes in a line.
    ///   - withdrawal: told of the copy that readers find no more, and when they find the same one again.
    init(
        _ voice: PipelineLogger, _ book: SignalRegistry,
        committed: @escaping @Sendable (CurrentGeneration, _ causes: String?) -> Void,
        withdrawal: @escaping WithdrawalHandler = { _, _ in },
        statusChanged: @escaping @Sendable () -> Void
    ) {
        self.withdrawal = withdrawal
        name = voice.name
        self.book = book
        self.voice = Mutex(voice)
        self.committed = committed
        self.statusChanged = statusChanged
    }

    /// Whose reports they are. The runner keeps this object, and so is not kept by it.
    func attach(_ runner: PipelineRunner) {
        self.runner.withLock { $0.runner = runner }
    }

    func report(_ event: EngineEvent) {
        // A pipeline's timer and parameters are its engine's own: this is where they are heard of.
        if case .heard(let cause) = event, [SignalName.timer, SignalName.parameter].contains(cause.signal) {
            book.note(cause.signal, cause.detail, pipeline: name, count: cause.count)
        }
        let status: FreshetPipelines.PipelineStatus? =
            switch event {
            case .runStarted, .runEnded, .withdrawn, .returned: runner.withLock { $0.runner }?.status
            default: nil
            }
        var generation = status?.generation
        switch event {
        case .withdrawn, .returned: generation = status?.kept
        // It is not kept.
        case .withdrawnDamaged(let lost, _): generation = lost
        default: break
        }
        voice.withLock { $0.say(event, generation: generation, isWithdrawn: status?.withdrawn != nil) }
        // What is withdrawn when a run starts is not new when it is back.
        let seen = if case .runStarted = event { status?.kept } else { generation }
        if let new = commits.withLock({ $0.heard(event, generation: seen) }) {
            var causes: String?
            if case .runEnded(let summary, _) = event { causes = summary.causes.summary }
            committed(new, causes)
        }
        switch event {
        case .stateChanged, .expired, .expiredNoMore, .contentExpired, .contentExpiredNoMore: statusChanged()
        case .withdrawn, .withdrawnDamaged, .returned:
            tellWithdrawal(event, generation)
            statusChanged()
        default: break
        }
    }
}

extension PipelineEventSink {
    private func tellWithdrawal(_ event: EngineEvent, _ generation: CurrentGeneration?) {
        guard let generation else { return }
        switch event {
        case .withdrawn where generation.withdrawnSince != nil, .withdrawnDamaged:
            withdrawal(generation, "withdrawn")
        // Another one is told of by whoever made it the copy.
        case .returned(isSame: true, let causes) where generation.withdrawnSince == nil:
            withdrawal(generation, causes?.summary ?? "returned")
        default: break
        }
    }
}

private struct WeakRunner {
    weak var runner: PipelineRunner?
}
