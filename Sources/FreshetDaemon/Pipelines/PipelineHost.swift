import FreshetConfiguration
import FreshetControl
import FreshetModel
import FreshetPipelines
import FreshetSignals
import FreshetSystemSignals
import FreshetSystemd
import Logging

/// The pipelines of the active configuration: starts, changes and stops them, and passes changes of the network on.
@DaemonActor
final class PipelineHost {
    let context: DaemonContext
    let engine: PipelineEngine
    let store: CacheStore
    let fleet: FleetService
    let hooks: HookAssigner
    let signals: SignalRegistry
    let networks: NetworkSources
    let recorder: SignalRecorder
    let status: StatusReporter
    let overview: PipelineOverview
    /// Taken while pipelines are added and removed.
    let lock: ReloadLock
    /// Watches the published files; a commit may make their directory again.
    var publishedFiles: PublishedFileWatch?
    private let commits: CommitSignals
    let memoryRelease: MemoryRelease
    /// A value that is unique to this host, for delays that are always the same on this host.
    let identity = MachineIdentity.read()?.bytes ?? MachineIdentity.hostName
    /// The maximum random delay of the active configuration (`splay`).
    private var splayLimit: Duration = .zero
    /// Values of configuration and credentials that must be redacted.
    private var hidden: Set<String> = []
    var hosted: [String: HostedPipeline] = [:]
    /// Pipelines that a reload is about to stop, because their configuration has errors.
    private var becomingInvalid: [String: InvalidPipeline] = [:]

    init(
        _ context: DaemonContext, _ engine: PipelineEngine, _ store: CacheStore, _ fleet: FleetService,
        _ hooks: HookAssigner, _ signals: SignalRegistry, _ networks: NetworkSources, _ commits: CommitSignals,
        _ recorder: SignalRecorder,
        _ status: StatusReporter, _ overview: PipelineOverview, _ lock: ReloadLock
    ) {
        self.context = context
        self.engine = engine
        self.store = store
        self.fleet = fleet
        self.hooks = hooks
        self.signals = signals
        self.networks = networks
        self.commits = commits
        self.recorder = recorder
        self.status = status
        self.overview = overview
        self.lock = lock
        memoryRelease = MemoryRelease(context.loop)
        networks.onChange = { [status] in status.mayHaveChanged() }
    }

    // MARK: Look-up

    /// The names of all pipelines, sorted.
    var names: [String] {
        let names = sortedNames ?? hosted.keys.sorted()
        sortedNames = names
        return names
    }
    /// Nil: a pipeline was added or removed since they were sorted.
    var sortedNames: [String]?

    var running: [RunningPipeline] { hosted.values.compactMap(\.running) }

    var invalid: [String: InvalidPipeline] { hosted.compactMapValues(\.invalid) }

    subscript(name: String) -> HostedPipeline? { hosted[name] }

    func running(_ name: String) -> RunningPipeline? { hosted[name]?.running }

    func invalid(_ name: String) -> InvalidPipeline? { hosted[name]?.invalid }

    /// The running pipeline of this name.
    func hosted(_ name: String) throws(ControlError) -> RunningPipeline {
        if let pipeline = running(name) { return pipeline }
        // A reload may have removed it since it was looked up.
        throw self[name] == nil ? .noSuchPipeline(name: name, suggestion: nil) : .invalidPipeline(name: name)
    }

    /// Changes the stored state of a pipeline that does not run.
    func changeInvalid(_ name: String, _ change: (inout PersistentState) -> Void) {
        if var invalid = becomingInvalid[name] {
            change(&invalid.remembered)
            becomingInvalid[name] = invalid
        } else if var invalid = invalid(name) {
            change(&invalid.remembered)
            put(.invalid(invalid), as: name)
        }
    }

    private func put(_ pipeline: HostedPipeline?, as name: String) {
        if pipeline == nil || hosted[name] == nil { sortedNames = nil }
        hosted[name] = pipeline
        overview.mayHaveChanged(name)
    }

    // MARK: Copies

    /// The current generation of a pipeline, as far as the daemon knows it without reading the disk.
    func published(_ name: String) -> CurrentGeneration? {
        running(name)?.runner.status.generation ?? invalid(name)?.remembered.published
    }

    /// The withdrawn copy of a pipeline, as far as the daemon knows it without reading the disk.
    func withdrawn(_ name: String) -> CurrentGeneration? {
        running(name)?.runner.status.withdrawn ?? invalid(name)?.remembered.withdrawn
    }

    /// What ``CommitSource`` shows of a pipeline that others run after.
    func copyStatus(of name: String) -> (fact: String, unavailable: String?) {
        let fact = published(name).map(GenerationStatus.init).map {
            "generation \($0.number), \($0.size) bytes, since \($0.age.rounded)"
        }
        return (
            fact ?? (withdrawn(name) == nil ? "no copy yet" : "its copy is withdrawn"),
            invalid(name).map { "it does not run: \($0.message)" }
        )
    }

    // MARK: Start and stop

    /// Applies the values of the daemon's configuration to pipelines that are started or changed from now on.
    func use(_ daemon: DaemonDefinition) {
        splayLimit = daemon.splay
        networks.daemonTarget = daemon.networkTarget
    }

    /// Starts a pipeline, which receives its signals from now on.
    func host(_ definition: PipelineDefinition) async { await host(definition, needs(of: definition)) }

    func host(_ definition: PipelineDefinition, _ needs: SignalNeeds) async {
        let (lease, network) = subscribe(definition, needs)
        let sink = makeSink(definition.name)
        let runner = await engine.add(
            definition, signal: lease.signal, network: network, splay: splay, share: share(of: definition.name)
        ) { sink.report($0) }
        add(RunningPipeline(runner: runner, lease: lease))
    }

    func subscribe(
        _ definition: PipelineDefinition, _ needs: SignalNeeds
    ) -> (lease: SignalLease, network: NetworkFeed) {
        context.readers.set(definition)
        fleet.share(definition)
        let lease = signals.subscribe(needs)
        return (lease, networks.feed(of: needs.target))
    }

    /// What decides which sources a pipeline uses.
    func needs(of definition: PipelineDefinition) -> SignalNeeds {
        SignalNeeds(definition, target: networks.target(of: definition))
    }

    private func add(_ pipeline: RunningPipeline) {
        put(.running(pipeline), as: pipeline.runner.name)
        updateDirectNetworks(pipeline)
    }

    private func makeSink(_ name: String) -> PipelineEventSink {
        PipelineEventSink(PipelineLogger(name: name, logDestinations), eventHandlers)
    }

    lazy var logDestinations = PipelineLogger.Destinations(
        log: context.log, events: context.events, limiter: context.limiter, readers: context.readers)

    lazy var eventHandlers: PipelineEventSink.Handlers = {
        let (commits, scheduler) = (commits, hooks.scheduler)
        return PipelineEventSink.Handlers(
            recorder,
            committed: { name, generation, causes in
                commits.fire(name, generation)
                scheduler.generationChanged(name, generation, causes: causes)
            },
            withdrawal: { name, generation, causes in
                scheduler.generationChanged(name, generation, causes: causes)
                if generation.withdrawnSince == nil { commits.fireAgain(name, generation) }
            },
            runEnded: { [memoryRelease, publishedFiles] in
                memoryRelease.mayBeUseful()
                // Its commit may have made the directory again.
                publishedFiles?.renew()
            },
            statusChanged: { [status] in status.mayHaveChanged() })
    }()

    /// Stops a pipeline; its copy stays.
    func dismiss(_ name: String) async {
        guard let pipeline = running(name) else { return }
        put(becomingInvalid.removeValue(forKey: name).map(HostedPipeline.invalid), as: name)
        context.readers.remove(name)
        fleet.forget(name)
        await engine.remove(pipeline.runner)
        pipeline.lease.end()
        hooks.scheduler.dismiss(name)
    }

    /// Applies another configuration to a pipeline. A pipeline that subscribes to other signals from now on keeps the
    /// signals that it has received.
    ///
    /// - Returns: whether there is no copy of this configuration any more.
    @discardableResult
    func change(_ definition: PipelineDefinition) async -> Bool {
        guard let pipeline = running(definition.name) else {
            await host(definition)
            return true
        }
        let (splay, share) = (splay, share(of: definition.name))
        // Another target is another source.
        let needs = needs(of: definition)
        guard !pipeline.lease.covers(needs) else {
            context.readers.set(definition)
            fleet.share(definition)
            let isOther = pipeline.runner.reconfigure(definition, splay: splay, share: share)
            updateDirectNetworks(pipeline)
            return isOther
        }
        let (lease, network) = subscribe(definition, needs)
        engine.subscribe(pipeline.runner, to: lease.signal)
        let isOther = pipeline.runner.reconfigure(definition, network: network, splay: splay, share: share)
        pipeline.lease.end()
        add(RunningPipeline(runner: pipeline.runner, lease: lease))
        return isOther
    }

    /// This host's share of the daemon's `splay`.
    var splay: Duration { splayLimit * splayShare }

    private lazy var splayShare = share(of: "")

    /// This host's share of a random delay of this name, always the same.
    private func share(of name: String) -> Double {
        StableDelay.fraction(identity: identity, name: name)
    }

    // MARK: Invalid pipelines

    /// Replaces the invalid pipelines, logs them, and reads their stored states, which contain the published copies. A
    /// running pipeline becomes invalid when it is dismissed.
    func replaceInvalid(_ all: [String: [Diagnostic]]) async {
        for name in invalid.keys { put(nil, as: name) }
        becomingInvalid = [:]
        for (name, diagnostics) in all.sorted(by: { $0.key < $1.key }) {
            let message =
                diagnostics.first { $0.severity == .error }?.forEverybody.sentence ?? "its configuration has errors"
            let invalid = InvalidPipeline(
                message: message, remembered: await store.remembered(name), since: WallClock.now)
            if running(name) == nil { put(.invalid(invalid), as: name) } else { becomingInvalid[name] = invalid }
            for diagnostic in diagnostics where diagnostic.severity == .error {
                context.limiter.log(
                    .invalidPipeline, diagnostic.fields.merging([.pipeline: .string(name)]) { $1 })
            }
        }
        context.limiter.finish(.invalidPipeline)
    }

    /// Sets the hooks of several pipelines, and logs those that have errors.
    ///
    /// - Returns: whether anything has changed. Then the hooks of all pipelines have to be assigned.
    @discardableResult
    func useHooks(of configuration: Configuration) -> Bool {
        for (name, diagnostics) in configuration.invalidHooks.sorted(by: { $0.key < $1.key }) {
            for diagnostic in diagnostics where diagnostic.severity == .error {
                context.limiter.log(.invalidHook, diagnostic.fields.merging([.hook: .string(name)]) { $1 })
            }
        }
        context.limiter.finish(.invalidHook)
        return hooks.use(configuration)
    }

    // MARK: Secrets

    /// Redacts these values of configuration and credentials from now on, and the values of secret parameters.
    func hide(_ values: Set<String>) {
        hidden = values
        hide(parameters: [])
    }

    /// Redacts the current values of secret parameters from now on.
    ///
    /// - Parameter new: values that the parameters are about to have.
    func hide(parameters new: [String]) {
        let current = running.flatMap { $0.runner.parameters.filter(\.definition.isSecret).map(\.value) }
        context.redactor.setSecrets(hidden.union(current).union(new))
    }

    // MARK: The network

    /// Passes changes of the directly connected networks on until the task is cancelled. An origin with a host name may
    /// be on such a network while there is no route to elsewhere.
    nonisolated func followDirectNetworks() async {
        for await _ in networks.directNetworks { await directNetworksChanged() }
    }

    private func directNetworksChanged() {
        guard networks.needsDirectNetworks else { return }
        for pipeline in running { updateDirectNetworks(pipeline) }
        status.mayHaveChanged()
    }

    /// Passes the directly connected networks on to a pipeline.
    private func updateDirectNetworks(_ pipeline: RunningPipeline) {
        guard networks.needsDirectNetworks else { return }
        pipeline.runner.directNetworksChanged(
            pipeline.mayBeOnDirectNetwork ? networks.directNetworks.value : nil)
    }
}

extension GenerationStatus {
    /// How long ago it was committed, by the wall clock.
    fileprivate var age: Duration { .microseconds(max(0, WallClock.now - committedAt)) }
}
