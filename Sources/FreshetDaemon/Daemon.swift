import FreshetCache
import FreshetConfiguration
import FreshetControl
import FreshetEmitters
import FreshetEventLoop
import FreshetModel
import FreshetPipelines
import FreshetSignals
import FreshetSystemSignals
import FreshetSystemd
import FreshetVarlink
import Glibc
import Logging
import Synchronization

/// Connects the parts of the daemon: configuration, signal sources, pipelines, cache and control interface.
///
/// ``run()`` runs the daemon. Pipelines, the control server and observers of facts are child tasks of this call, so
/// that no task is left when it returns.
@DaemonActor
final class Supervisor {
    let options: DaemonOptions
    let context: DaemonContext
    let reader: ConfigurationReader
    let reloadLock = ReloadLock()
    nonisolated let status: StatusReporter
    private var watchdog: WatchdogReporter?
    let loop: EventLoop
    let log: Logger
    /// The log level of `log`.
    let threshold: LogThreshold
    let notifier: Notifier
    /// Redacts the secrets of the active configuration.
    let redactor: Redactor
    let pools: ThreadPools
    let clock: LoopEngineClock
    let directories: ServiceDirectories
    let started = WallClock.now

    nonisolated let events: ControlEvents
    nonisolated let readers: ContentReaders
    let registry: SignalRegistry
    let limiter: LogLimiter
    let flapLog: FlapLog
    let slowJobs: SlowJobLog
    let memoryRelease: MemoryRelease
    let standard = StandardSignals()
    let operation = Trigger(SignalName.operation)
    /// The sources that exist for as long as the daemon runs.
    var followings: [SignalRegistry.Following] = []
    let commitSignals = CommitSignals()
    /// The followed commits of other pipelines (`after`), by pipeline.
    var followedCommits: [String: [SignalRegistry.Following]] = [:]
    /// A value that is unique to this host, for delays that are always the same on this host.
    let identity: [UInt8]

    var configuration = Configuration()
    /// When the configuration was read: wall-clock microseconds since 1970.
    var configurationSince: Int64
    /// The last reload, if it was refused.
    var refusedReload: RefusedReload?
    /// Values that must be redacted from logs and status.
    var hidden: Set<String> = []
    var pipelines: [String: RunningPipeline] = [:]
    var invalid: [String: InvalidPipeline] = [:]
    var targets: [NetworkTarget: NetworkTargetFollower] = [:]
    /// Expires when a summary of network changes is due.
    var networkTimer: LoopTimer?
    var sleepLogFilter = SleepLogFilter()
    var busSignals: [BusSignalMatch: SharedBusMatch] = [:]
    /// Nil as long as no pipeline subscribes to a signal of the session bus.
    var sessionBus: BusSignals?
    /// The watched files (`files`), by pipeline.
    var fileWatches: [String: [SharedFileWatch]] = [:]
    let fileEvents: FileEventPublisher
    private var termination: SignalDescriptor?
    /// The control socket, if the service manager passed it.
    private var inherited: VarlinkListener?
    /// The index is new, so the last successful runs of hooks are unknown.
    var isHookStateLost = false

    // Set by run() before any use.
    var parts: Parts?

    /// The objects that need the configuration or the directories.
    struct Parts: Sendable {
        let cache: LocalCache
        let store: CacheStore
        let http: HTTPClient
        let network: NetworkMonitor
        /// The target `elsewhere`, which is always followed. Its fact stands for the network as a whole.
        let elsewhere: NetworkWatch
        let engine: PipelineEngine
        let requestLimiter: RequestLimiter
        let memory: MemoryBudget
        let sleep: SleepMonitor
        let sessions: SessionMonitor
        /// The system bus, which `sleep` and `sessions` use too.
        let systemBus: BusSignals
        let files: FileMonitor
        let hooks: HookScheduler
        /// Nil: removals of published files are not noticed.
        let publishedFiles: PublishedFileWatch?
    }

    /// - Parameters:
    ///   - threshold: the threshold of `log`, which can change while the daemon runs.
    ///   - redactor: the redactor of `log`.
    nonisolated init(
        options: DaemonOptions, loop: EventLoop, log: Logger, threshold: LogThreshold = LogThreshold(),
        redactor: Redactor = Redactor()
    ) throws {
        context = try DaemonContext(options: options, loop: loop, log: log, redactor: redactor)
        self.options = options
        self.loop = loop
        self.log = log
        self.threshold = threshold
        self.redactor = redactor
        reader = ConfigurationReader(context)
        status = StatusReporter(context)
        (events, readers) = (context.events, context.readers)
        (notifier, clock, pools) = (context.notifier, context.clock, context.pools)
        (limiter, flapLog, directories) = (context.limiter, context.flapLog, context.directories)
        slowJobs = SlowJobLog(log)
        memoryRelease = MemoryRelease(loop)
        registry = SignalRegistry(events: events, log: log, limiter: limiter, clock: clock)
        fileEvents = FileEventPublisher(log: flapLog, registry: registry)
        configurationSince = started
        identity = MachineIdentity.read()?.bytes ?? MachineIdentity.hostName
    }

    // MARK: Life

    /// Runs the daemon until ``end(_:)`` is called; returns the exit status.
    func run() async -> DaemonExit {
        slowJobs.observe(loop)
        do {
            inherited = try ControlSocket.inheritedListener(ListenDescriptors(environment: options.environment).items)
        } catch {
            log.log(.cannotStart, [.error: .string("\(error)")])
            return .configuration
        }
        let hostEnvironment: HostEnvironment
        configurationSince = WallClock.now
        let loaded = await reader.load()
        (configuration, hostEnvironment) = await reader.checkingHostEnvironment(of: reader.selected(loaded))
        readers.setGroups(hostEnvironment.groups)
        hidden = hostEnvironment.hidden(with: configuration)
        redactor.setSecrets(hidden)
        for diagnostic in configuration.daemonDiagnostics { log(diagnostic) }
        guard configuration.isDaemonValid else {
            inherited?.turnAway(with: ControlError.notStarted("freshet.yaml has errors").reply)
            return .configuration
        }
        // Unknown names can only be detected after the configuration was read.
        let known = loaded.pipelines.map(\.name) + loaded.invalid.keys
        let unknown = options.onceNames.filter { !known.contains($0) }
        guard unknown.isEmpty else {
            let reason = UnknownPipelines.sentence(unknown, among: known)
            log.log(.cannotStart, [.error: .string(reason)])
            inherited?.turnAway(with: ControlError.notStarted(reason).reply)
            return .usage
        }
        do {
            parts = try await makeParts()
            await parts?.http.use(hostEnvironment.secrets, files: hostEnvironment.credentialFiles)
        } catch {
            log.log(.cannotStart, [.error: .string("\(error)")])
            return .failure
        }
        await prepareInvalid()
        await begin()
        if let network = parts?.network { followDirectNetworks(network) }
        await context.tasks.run()
        // Flushed here, while the loop still runs, so that a slow disk does not count as a hang.
        if let cache = parts?.cache { await pools.cache.run("index") { cache.flush() } }
        registry.finish()
        flapLog.finish()
        limiter.finish()
        log.log(.stopping)
        return context.tasks.exit
    }

    /// Adds a child task to the running daemon.
    nonisolated func adopt(_ job: @escaping @Sendable () async -> Void) {
        context.tasks.add(job)
    }

    /// Whether ``end(_:)`` was called.
    nonisolated var isEnding: Bool { context.tasks.isEnding }

    /// Ends the daemon: cancels runs, waits for them, and finishes commits in progress.
    nonisolated func end(_ status: DaemonExit = .success) {
        context.tasks.end(status)
    }

    /// Starts all parts. Sources are armed and the socket listens before READY; READY does not wait for the first
    /// refresh.
    private func begin() async {
        do {
            try handleProcessSignals()
            let socket = try ControlSocket(context, inherited: inherited, self)
            adopt { await socket.run() }
        } catch {
            log.log(.cannotStart, [.error: .string("\(error)")])
            return end(.failure)
        }
        if let engine = parts?.engine { adopt { await engine.run() } }
        followSources()
        followSleep()
        followSessions()
        await hostAll()
        redactor.setSecrets(hidden.union(secretParameters))
        status.begin { [weak self] in await self?.statusLine() ?? "" }
        await status.ready()
        watchdog = WatchdogReporter(context, status)
        if !notifier.isConnected { log.log(.noManager) }
        log.log(.ready, [.pipelines: .stringConvertible(pipelines.count), .version: .string(Version.current)])
        standard.start.fire("the daemon is ready")
        adopt { await self.removeLeftovers() }
        if options.once { adopt { await self.runOnce() } }
    }

    private func makeParts() async throws -> Parts {
        let directories = directories
        try DaemonDirectories.make(directories.state, mode: 0o700)
        try DaemonDirectories.make(directories.cache, mode: 0o755)
        try DaemonDirectories.make(directories.runtime, mode: 0o755)
        let (quota, removed, log) = (CacheQuota(configuration.daemon), removedForSpace, log)
        let (cache, report) = try await pools.cache.run { () throws(CacheError) in
            try LocalCache.open(
                cacheDirectory: directories.cache, stateDirectory: directories.state, reserve: quota.reserve,
                limit: quota.limit, directories: Self.programDirectories, removed: removed,
                rebuilt: { IndexLog(log).log($0, at: $1) })
        }
        logRecovery(report, at: cache.indexPath)
        let definitions = configuration.pipelines
        try await pools.cache.run { () throws(CacheError) in try cache.assign(definitions) }
        let http = HTTPClient(loop, options: HTTPClient.Options(userAgent: "freshet/\(Version.current)"))
        let network = NetworkMonitor(loop) { epoch in
            // On the loop's thread, which is the HTTP client's: old connections are closed before pipelines get the
            // signal.
            http.assumeIsolated { $0.beginEpoch(epoch) }
        }
        if case .unavailable(let reason) = network.availability {
            log.log(.networkUnknown, [.error: .string(reason)])
        }
        let store = CacheStore(cache: cache, workers: pools.cache) { [limiter] pipeline, error in
            limiter.log(.cacheUpdateFailed, [.pipeline: .string(pipeline), .error: .string(error.description)])
        } heldBack: { [limiter] pipeline, copy in
            limiter.log(.heldBack, [.pipeline: .string(pipeline), .generation: .stringConvertible(copy.number)])
        } restored: { [limiter] pipeline, copy in
            limiter.log(
                .cacheRepaired,
                [
                    .pipeline: .string(pipeline),
                    .repairs: .string(PipelineRecovery.Repair.restored(Int64(clamping: copy.number)).description),
                ])
        }
        let requestLimiter = RequestLimiter(configuration.daemon.requestLimits)
        let memory = MemoryBudget(limit: JQTransformer.memoryForLongAnswers(of: configuration.daemon.memoryLimit))
        let dependencies = EngineDependencies(
            fetcher: SourceFetcher(
                http: http, commands: CommandRunner(loop, workers: pools.commands),
                files: FileReader(paths: pools.paths, own: DaemonDirectories.own(directories, options)),
                copyFiles: FileReader(paths: pools.copies, checksLinks: false),
                copies: directories.cache + "/current"),
            transformer: JQTransformer(loop, workers: pools.helpers, memory: memory) { [log] gaps in
                log.log(.sandboxIncomplete, [.error: .string("no \(gaps)")])
            }, store: store, clock: clock,
            requestLimiter: requestLimiter, memory: memory, prober: http, helpers: try await makeCheckHelpers(),
            redact: { [redactor] in redactor.text($0) })
        let engine = PipelineEngine(dependencies) { [flapLog] in flapLog.log($0) }
        let bus = BusConnection(loop, .system)
        let hooks = try await makeHookScheduler(store, report.index, bus)
        return Parts(
            cache: cache, store: store, http: http, network: network, elsewhere: network.watch(.elsewhere),
            engine: engine, requestLimiter: requestLimiter, memory: memory, sleep: watchSleep(bus, network, engine),
            sessions: watchSessions(bus),
            systemBus: BusSignals(bus),
            files: FileMonitor(loop) { [fileEvents] path, fact, _ in fileEvents.publish(path, fact) }, hooks: hooks,
            publishedFiles: watchPublishedFiles(of: cache))
    }

    /// Starts to handle process signals. A process signal may arrive at any time. It is blocked and stays pending until
    /// its descriptor is read, so the descriptor must not be read before there is a subscriber.
    private func handleProcessSignals() throws {
        termination = try SignalDescriptor(loop, [SIGTERM, SIGINT]) { [weak self] _ in self?.end() }
        adopt { await self.handleHangups() }
    }

    private func handleHangups() async {
        let hangup: HangupSource
        do {
            hangup = try HangupSource(loop)
        } catch {
            log.log(.cannotStart, [.error: .string("\(error)")])
            return end(.failure)
        }
        // One subscription to both signals, before the loop reads the descriptor.
        for await causes in Signal.merge(hangup.reloadRequested, hangup.terminalClosed).causes {
            if causes.contains(where: { $0.last.signal == HangupSource.terminalClosedName }) {
                log.log(.terminalClosed)
                end()
            } else {
                await reloadBySignal(causes.first?.last.detail ?? "SIGHUP")
            }
        }
    }

    /// Logs what the cache found and repaired at the start.
    private func logRecovery(_ report: RecoveryReport, at path: String) {
        IndexLog(log).log(report, at: path)
        if !report.strays.isEmpty {
            let strays = report.strays.map(\.description).joined(separator: "; ")
            log.log(.cacheRepaired, [.pipeline: "none", .repairs: .string(strays)])
        }
        for recovery in report.pipelines {
            limiter.log(
                .cacheRepaired,
                [
                    .pipeline: .string(recovery.pipeline),
                    .repairs: .string(recovery.repairs.map(\.description).joined(separator: "; ")),
                ])
        }
        limiter.finish(.cacheRepaired)
    }

    // MARK: Once

    /// Implements `--once`: runs each pipeline after those that it names in `after`, then ends the daemon. In the exit
    /// status, a failure takes precedence over an invalid pipeline, which takes precedence over `tryLater`.
    private func runOnce() async {
        var exit: DaemonExit = invalid.isEmpty ? .success : .configuration
        for names in Self.dependencyGroups(pipelines.mapValues(\.definition.refresh.after)) {
            await withTaskGroup(of: DaemonExit.self) { group in
                for name in names {
                    // A held pipeline does not run, which is not a failure.
                    if pipelines[name]?.runner.status.heldSince != nil { continue }
                    group.addTask {
                        guard await self.canBeReached(name) else { return .failure }
                        guard let result = try? await self.refresh(name, wait: true, force: false) else {
                            return .failure
                        }
                        return result.failure != nil ? .failure : result.tryLater != nil ? .tryLater : .success
                    }
                }
                for await one in group where one == .failure || exit == .success { exit = one }
            }
        }
        // Hooks run already. The daemon or the next `--once` retries a hook that fails.
        if let hooks = parts?.hooks {
            await hooks.waitUntilSettled()
            if hooks.failing > 0 { exit = .failure }
        }
        end(exit)
    }

    /// Whether `--once` can run a pipeline. It does not wait for the network, and makes a network probe only once.
    private func canBeReached(_ name: String) async -> Bool {
        guard let hosted = pipelines[name], hosted.definition.needsNetwork, let target = targets[hosted.target] else {
            return true
        }
        let isDirect = mayBeOnDirectNetwork(hosted) && parts?.network.directNetworks.value != nil
        var obstacle = target.state.reachable || isDirect ? nil : target.watch.fact.description
        if obstacle == nil, let probe = hosted.definition.refresh.needsNetwork.probe {
            obstacle = await parts?.engine.refusal(of: probe, epoch: target.state.epoch)
        }
        guard let obstacle else { return true }
        limiter.log(.notRun, [.pipeline: .string(name), .path: .string(obstacle)])
        return false
    }
}
