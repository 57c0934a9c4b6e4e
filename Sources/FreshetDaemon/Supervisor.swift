import FreshetCache
import FreshetConfiguration
import FreshetControl
import FreshetEmitters
import FreshetEventLoop
import FreshetPipelines
import FreshetSignals
import FreshetSystemSignals
import FreshetSystemd
import FreshetVarlink
import Glibc
import Logging
import Synchronization

/// Wires the parts of the daemon: configuration, sources of signals, pipelines, cache and control interface.
///
/// ``run()`` is its whole life. All that runs beside it (pipelines, the control server, followers of facts) are child
/// tasks of that one call: when it returns, nothing is left.
actor Supervisor {
    /// How long after a change the status line is told to the service manager: a storm of changes is one line.
    static let statusDelay: Duration = .milliseconds(250)

    let options: DaemonOptions
    /// Looks where it looked when the daemon started, whatever directories come and go.
    let loader: ConfigurationLoader
    let loop: EventLoop
    let log: Logger
    /// What `log` leaves out.
    let threshold: LogThreshold
    let notifier: Notifier
    /// Knows the secrets of the configuration in force.
    let redactor: Redactor
    let pools: ThreadPools
    let clock: LoopEngineClock
    let directories: ServiceDirectories
    let started = WallClock.now

    nonisolated let events = ControlEvents()
    nonisolated let readers = ContentReaders()
    let book: SignalRegistry
    let news: LogLimiter
    let slowJobs: SlowJobLog
    let standard = StandardSignals()
    let operation = Trigger(SignalName.operation)
    /// The sources that are there for as long as the daemon is.
    var followings: [SignalRegistry.Following] = []
    let commitNews = CommitSignals()
    /// What pipelines run after, by the pipelines' names.
    var followedCommits: [String: [SignalRegistry.Following]] = [:]
    /// What no other host has, for delays that are always the same here.
    let identity: [UInt8]

    var configuration = Configuration()
    /// When it was read: wall-clock microseconds since 1970.
    var configurationSince: Int64
    /// The last reload, if it was refused.
    var refusedReload: RefusedReload?
    /// What of it, and of its surroundings, must not be shown.
    var hidden: Set<String> = []
    var pipelines: [String: RunningPipeline] = [:]
    var faulty: [String: InvalidPipeline] = [:]
    var targets: [NetworkTarget: NetworkTargetFollower] = [:]
    var isReloading = false
    /// Reloads that take their turn after the one under way.
    var waitingReloads: [CheckedContinuation<Void, Never>] = []
    private var lastStatus = ""
    private var isStatusDue = false
    private var statusTimer: LoopTimer?
    /// Due when a network that has flapped is to be told of.
    var networkTimer: LoopTimer?
    var sleepNews = SleepLogFilter()
    var busSignals: [BusSignalMatch: SharedBusMatch] = [:]
    /// Nil as long as no pipeline listens to it.
    var sessionBus: BusSignals?
    /// What pipelines follow by `files`, by the pipelines' names.
    var fileWatches: [String: [SharedFileWatch]] = [:]
    let fileNews: FileEventPublisher
    private var termination: SignalDescriptor?
    /// Nil where nobody watches.
    var heartbeat: Heartbeat?
    /// The control socket, if the service manager passed it.
    var inherited: VarlinkListener?
    var socketWatch: DirectoryWatch?
    /// It was said that the socket cannot be made again.
    var isSocketLost = false
    /// The index is new, so that nobody knows what hooks were told of.
    var areHooksForgotten = false

    /// Child tasks to be: closures that the running ``run()`` adds to its group.
    private let jobs: AsyncStream<@Sendable () async -> Void>
    private let jobsInput: AsyncStream<@Sendable () async -> Void>.Continuation
    private let exit = Exit()

    // Made by run(), before anything uses them.
    var parts: Parts?

    /// What needs the configuration or the directories to be made.
    struct Parts: Sendable {
        let cache: LocalCache
        let store: CacheStore
        let http: HTTPClient
        let network: NetworkMonitor
        /// Followed always: what the daemon says of the network as a whole.
        let elsewhere: NetworkWatch
        let engine: PipelineEngine
        let slots: RequestLimiter
        let memory: MemoryBudget
        let sleep: SleepMonitor
        let sessions: SessionMonitor
        /// Of the system's bus, which the two above hear too.
        let systemBus: BusSignals
        let files: FileMonitor
        let hooks: HookScheduler
    }

    /// - Parameters:
    ///   - threshold: that of `log`, for it to be changed while the daemon runs.
    ///   - redactor: that of `log`.
    init(
        options: DaemonOptions, loop: EventLoop, log: Logger, threshold: LogThreshold = LogThreshold(),
        redactor: Redactor = Redactor()
    ) throws {
        self.options = options
        loader = Self.loader(options)
        self.loop = loop
        self.log = log
        self.threshold = threshold
        self.redactor = redactor
        notifier = Notifier(environment: options.environment)
        clock = LoopEngineClock(loop: loop)
        pools = ThreadPools(clock: clock)
        news = LogLimiter(log: log, clock: clock)
        slowJobs = SlowJobLog(log)
        book = SignalRegistry(events: events, log: log, desk: news, clock: clock)
        fileNews = FileEventPublisher(log: log, book: book)
        directories = try Self.directories(options)
        configurationSince = started
        identity = MachineIdentity.read()?.bytes ?? MachineIdentity.hostName
        (jobs, jobsInput) = AsyncStream.makeStream()
    }

    /// What flags name need not be looked for: a user without a name and a home, as in a container, can do without.
    static func directories(_ options: DaemonOptions) throws -> ServiceDirectories {
        let flags = [
            ("STATE_DIRECTORY", options.stateDirectory), ("CACHE_DIRECTORY", options.cacheDirectory),
            ("RUNTIME_DIRECTORY", options.runtimeDirectory),
            // Configuration has a search path of its own.
            ("CONFIGURATION_DIRECTORY", "/"),
        ]
        var environment = options.environment
        for (variable, flag) in flags where flag != nil { environment[variable] = "/" }
        var directories = try ServiceDirectories(name: "freshet", environment: environment, userID: options.owner)
        directories.state = options.stateDirectory ?? directories.state
        directories.cache = options.cacheDirectory ?? directories.cache
        directories.runtime = options.runtimeDirectory ?? directories.runtime
        return directories
    }

    // MARK: Life

    /// Runs the daemon until it is told to end, and says how it ended.
    func run() async -> DaemonExit {
        slowJobs.observe(loop)
        do {
            inherited = try Self.inheritedListener(ListenDescriptors(environment: options.environment).items)
        } catch {
            log.say(.cannotStart, [.error: .string("\(error)")])
            return .configuration
        }
        let surroundings: HostEnvironment
        configurationSince = WallClock.now
        let loaded = await load()
        (configuration, surroundings) = await checkingSurroundings(of: wanted(loaded))
        readers.know(surroundings.groups)
        hidden = surroundings.hidden(with: configuration)
        redactor.know(hidden)
        for diagnostic in configuration.daemonDiagnostics { say(diagnostic) }
        guard configuration.isDaemonSound else {
            inherited?.turnAway()
            return .configuration
        }
        // Only of a configuration that can be read it is known what there is not.
        let known = loaded.pipelines.map(\.name) + loaded.faulty.keys
        let unknown = options.onceNames.filter { !known.contains($0) }
        guard unknown.isEmpty else {
            log.say(.cannotStart, [.error: .string(UnknownPipelines.sentence(unknown, among: known))])
            inherited?.turnAway()
            return .usage
        }
        do {
            parts = try await makeParts()
            await parts?.http.use(surroundings.secrets, files: surroundings.credentialFiles)
        } catch {
            log.say(.cannotStart, [.error: .string("\(error)")])
            return .failure
        }
        await prepareFaulty()
        await begin()
        if let network = parts?.network { followDirectNetworks(network) }
        await withDiscardingTaskGroup { group in
            for await job in jobs { group.addTask { await job() } }
            group.cancelAll()
        }
        // Here, where the loop still turns and a slow disk is no hang.
        if let cache = parts?.cache { await pools.cache.run("index") { cache.flush() } }
        book.finish()
        news.finish()
        log.say(.stopping)
        return exit.status ?? .success
    }

    /// Adds a child task to the running daemon.
    nonisolated func adopt(_ job: @escaping @Sendable () async -> Void) {
        jobsInput.yield(job)
    }

    /// It was told to end.
    nonisolated var isEnding: Bool { exit.status != nil }

    /// Ends the daemon: runs are cancelled and awaited, commits under way are finished.
    nonisolated func end(_ status: DaemonExit = .success) {
        exit.note(status)
        notifier.stopping(status: "stopping")
        jobsInput.finish()
    }

    /// Starts everything. Sources are armed and the socket listens before READY, which waits for no first refresh.
    private func begin() async {
        do {
            try listenToProcessSignals()
            try serveControl()
        } catch {
            log.say(.cannotStart, [.error: .string("\(error)")])
            return end(.failure)
        }
        if let engine = parts?.engine { adopt { await engine.run() } }
        followSources()
        followSleep()
        followSessions()
        await hostAll()
        redactor.know(hidden.union(secretParameters))
        statusTimer = LoopTimer(loop, named: "status line") { [weak self] in
            self?.adopt { [weak self] in await self?.tellStatus() }
        }
        notifier.ready(status: await statusLine())
        beginWatchdog()
        if !notifier.isConnected { log.say(.noManager) }
        log.say(.ready, [.pipelines: .stringConvertible(pipelines.count), .version: .string(Version.current)])
        standard.start.fire("the daemon is ready")
        adopt { await self.removeLeftovers() }
        if options.once { adopt { await self.runOnce() } }
    }

    private func makeParts() async throws -> Parts {
        let directories = directories
        try Self.makeDirectory(directories.state, mode: 0o700)
        try Self.makeDirectory(directories.cache, mode: 0o755)
        try Self.makeDirectory(directories.runtime, mode: 0o755)
        let (room, removed, log) = (CacheQuota(configuration.daemon), removedForRoom, log)
        let (cache, report) = try await pools.cache.run { () throws(CacheError) in
            try LocalCache.open(
                cacheDirectory: directories.cache, stateDirectory: directories.state, reserve: room.reserve,
                limit: room.limit, removed: removed, rebuilt: { IndexLog(log).say($0, at: $1) })
        }
        say(report, at: cache.indexPath)
        let definitions = configuration.pipelines
        try await pools.cache.run { () throws(CacheError) in try cache.assign(definitions) }
        let http = HTTPClient(loop, options: HTTPClient.Options(userAgent: "freshet/\(Version.current)"))
        let network = NetworkMonitor(loop) { epoch in
            // On the loop's thread, which is the client's: connections from before are dropped before anybody hears.
            http.assumeIsolated { $0.beginEpoch(epoch) }
        }
        if case .unavailable(let reason) = network.availability {
            log.say(.networkUnknown, [.error: .string(reason)])
        }
        let store = CacheStore(cache: cache, workers: pools.cache) { [news] pipeline, error in
            news.say(.cacheTrouble, [.pipeline: .string(pipeline), .error: .string(error.description)])
        } heldBack: { [news] pipeline, copy in
            news.say(.heldBack, [.pipeline: .string(pipeline), .generation: .stringConvertible(copy.number)])
        }
        let slots = RequestLimiter(configuration.daemon.requestLimits)
        let memory = MemoryBudget(limit: JQTransformer.memoryForLongAnswers(of: configuration.daemon.memoryLimit))
        let world = EngineDependencies(
            fetcher: SourceFetcher(
                http: http, commands: CommandRunner(loop, workers: pools.commands),
                files: FileReader(paths: pools.paths), copyFiles: FileReader(paths: pools.copies),
                copies: directories.cache + "/current"),
            transformer: JQTransformer(loop, workers: pools.helpers, memory: memory) { [log] gaps in
                log.say(.sandboxIncomplete, [.error: .string("no \(gaps)")])
            }, store: store, clock: clock,
            slots: slots, memory: memory, prober: http, helpers: try await makeCheckHelpers(),
            redact: { [redactor] in redactor.text($0) })
        let engine = PipelineEngine(world) { [log] in log.say($0) }
        let bus = BusConnection(loop, .system)
        let hooks = try await makeHookDesk(store, report.index, bus)
        return Parts(
            cache: cache, store: store, http: http, network: network, elsewhere: network.watch(.elsewhere),
            engine: engine, slots: slots, memory: memory, sleep: watchSleep(bus, network, engine),
            sessions: watchSessions(bus),
            systemBus: BusSignals(bus),
            files: FileMonitor(loop) { [fileNews] path, fact, _ in fileNews.tell(path, fact) }, hooks: hooks)
    }

    /// Makes a directory and those above it, as `mkdir -p -m MODE` does; systemd has made them already.
    static func makeDirectory(_ path: String, mode: mode_t) throws(FreshetEventLoop.SystemCallError) {
        let components = path.split(separator: "/")
        var made = path.hasPrefix("/") ? "" : "."
        for (index, component) in components.enumerated() {
            made += "/\(component)"
            guard mkdir(made, index == components.count - 1 ? mode : 0o755) != 0 else { continue }
            var status = stat()
            let reason = errno
            guard stat(made, &status) == 0, status.st_mode & S_IFMT == S_IFDIR else {
                throw FreshetEventLoop.SystemCallError(
                    "mkdir", errno: reason == EEXIST ? ENOTDIR : reason, subject: made)
            }
        }
    }

    /// A process signal may come at any time from the start on. It is blocked and so stays pending until its
    /// descriptor is read: that must not be before somebody listens.
    private func listenToProcessSignals() throws {
        termination = try SignalDescriptor(loop, [SIGTERM, SIGINT]) { [weak self] _ in self?.end() }
        adopt { await self.listenToHangup() }
    }

    private func listenToHangup() async {
        let hangup: HangupSource
        do {
            hangup = try HangupSource(loop)
        } catch {
            log.say(.cannotStart, [.error: .string("\(error)")])
            return end(.failure)
        }
        // One subscription to both, before the loop reads the descriptor.
        for await causes in Signal.merge(hangup.reloadRequested, hangup.terminalClosed).causes {
            if causes.contains(where: { $0.last.signal == HangupSource.terminalClosedName }) {
                log.say(.terminalClosed)
                end()
            } else {
                await reloadBySignal(causes.first?.last.detail ?? "SIGHUP")
            }
        }
    }

    /// What the cache found and mended at its start.
    private func say(_ report: RecoveryReport, at path: String) {
        IndexLog(log).say(report, at: path)
        for recovery in report.pipelines {
            news.say(
                .cacheMended,
                [
                    .pipeline: .string(recovery.pipeline),
                    .repairs: .string(recovery.repairs.map(\.description).joined(separator: "; ")),
                ])
        }
        news.finish(.cacheMended)
    }

    // MARK: Once

    /// `--once`: pipelines run, each after those that it names, and the daemon ends. A failure outweighs a faulty
    /// configuration, and that what asks for patience.
    private func runOnce() async {
        var exit: DaemonExit = faulty.isEmpty ? .success : .configuration
        for names in Self.turns(pipelines.mapValues(\.definition.refresh.after)) {
            await withTaskGroup(of: DaemonExit.self) { group in
                for name in names {
                    // What the operator holds is not to run, and that is no failure.
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
        // They run already; one that fails is left to the daemon, or to the next time.
        if let hooks = parts?.hooks {
            await hooks.waitUntilSettled()
            if hooks.failing > 0 { exit = .failure }
        }
        end(exit)
    }

    /// What `--once` is to run of a configuration; all of it, if no names were given.
    func wanted(_ configuration: Configuration) -> Configuration {
        guard !options.onceNames.isEmpty else { return configuration }
        var wanted = configuration
        wanted.pipelines.removeAll { !options.onceNames.contains($0.name) }
        wanted.faulty = wanted.faulty.filter { options.onceNames.contains($0.key) }
        return wanted
    }

    /// `--once` does not wait for a network, and asks once for its proof.
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
        news.say(.notRun, [.pipeline: .string(name), .path: .string(obstacle)])
        return false
    }

    // MARK: Status

    /// Something of what the status line says may have changed: it is told soon, once.
    nonisolated func statusMayHaveChanged() {
        guard notifier.isConnected else { return }
        adopt { await self.planStatus() }
    }

    private func planStatus() {
        guard !isStatusDue else { return }
        isStatusDue = true
        statusTimer?.arm(at: .now + Self.statusDelay)
    }

    func tellStatus() async {
        isStatusDue = false
        let line = await statusLine()
        guard line != lastStatus, !isEnding else { return }
        lastStatus = line
        notifier.status(line)
    }
}

/// How the daemon is to end: the first failure counts.
private final class Exit: Sendable {
    private let stored = Mutex<DaemonExit?>(nil)

    /// Nil until it was told to end.
    var status: DaemonExit? { stored.withLock { $0 } }

    func note(_ status: DaemonExit) {
        stored.withLock { if $0 == nil || $0 == .success { $0 = status } }
    }
}
