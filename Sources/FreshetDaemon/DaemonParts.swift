import FreshetCache
import FreshetConfiguration
import FreshetControl
import FreshetEmitters
import FreshetEventLoop
import FreshetPipelines
import FreshetSystemSignals
import FreshetSystemd
import Glibc
import Logging

/// The engine, the cache, and the sources of the operating system, which need the configuration or the directories.
struct DaemonParts: Sendable {
    let cache: LocalCache
    let store: CacheStore
    /// The index is new, so the last successful runs of hooks are unknown.
    let isIndexNew: Bool
    let http: HTTPClient
    let secrets: SecretReader
    let network: NetworkMonitor
    let fleet: FleetService
    let engine: PipelineEngine
    let requestLimiter: RequestLimiter
    let memory: MemoryBudget
    let hooks: HookScheduler
    let sleep: SleepMonitor
    let sessions: SessionMonitor
    /// The system bus, which `sleep` and `sessions` use too.
    let systemBus: BusConnection
    let files: FileMonitor

    @DaemonActor
    init(
        _ context: DaemonContext, _ configuration: Configuration, _ opened: CacheOpening.Opened,
        _ fileEvents: FileEventPublisher, _ commits: CommitSignals, _ recorder: SignalRecorder,
        _ status: StatusReporter, _ overview: PipelineOverview
    ) async throws {
        let (loop, pools, directories) = (context.loop, context.pools, context.directories)
        // The open cache has locked the state directory. The network is looked at meanwhile.
        async let prepared: Void = pools.programs.run { try ProgramInputFiles.prepareAll(in: directories) }
        let opening = try await CacheOpening(opened, context, configuration, commits)
        (cache, store, isIndexNew) = (opening.cache, opening.store, opening.isIndexNew)
        secrets = SecretReader(
            Credentials(environment: context.options.environment), paths: pools.paths, context.redactor)
        let http = HTTPClient(
            loop, options: HTTPClient.Options(userAgent: "freshet/\(Version.current)"), secretReader: secrets)
        self.http = http
        let fleet = FleetService(context, store, recorder) { status.mayHaveChanged() }
        self.fleet = fleet
        let network = NetworkMonitor(loop) { epoch in
            // On the loop's thread, which is the HTTP client's: before pipelines get the signal, so that none of their
            // requests uses an old connection.
            http.assumeIsolated { $0.beginEpoch(epoch) }
            fleet.beginEpoch(epoch)
        }
        self.network = network
        if case .unavailable(let reason) = network.availability {
            context.log.log(.networkUnknown, [.error: .string(reason)])
        }
        requestLimiter = RequestLimiter(configuration.daemon.requestLimits)
        memory = MemoryBudget(limit: JQTransformer.memoryForLongAnswers(of: configuration.daemon.memoryLimit))
        let gaps = SandboxGapsReport { [log = context.log] in
            log.log(.sandboxIncomplete, [.error: .string("no \($0)")])
        }
        let dependencies = EngineDependencies(
            fetcher: SourceFetcher(
                http: http, commands: CommandRunner(loop, workers: pools.commands),
                files: FileReader(paths: pools.paths, own: DaemonDirectories.own(directories, context.options)),
                copyFiles: FileReader(paths: pools.copies, checksLinks: false),
                copies: directories.cache + "/current"),
            transformer: JQTransformer(loop, workers: pools.helpers, memory: memory, gaps: gaps.report), store: store,
            clock: context.clock, requestLimiter: requestLimiter, memory: memory, prober: http,
            sharing: fleet, helpers: CheckHelpers(context),
            unpacker: Unpacker(loop, workers: pools.helpers, gaps: gaps.report),
            redact: { [redactor = context.redactor] in redactor.text($0) })
        let engine = PipelineEngine(dependencies) { [flapLog = context.flapLog] in
            flapLog.log($0)
        } onStep: {
            overview.mayHaveChanged($0)
        }
        self.engine = engine
        systemBus = BusConnection(loop, .system)
        hooks = HookScheduler(context, store, systemBus, fleet, status)
        sleep = SleepMonitor(loop, bus: systemBus) {
            // At a wake, a new network epoch begins and all pipelines are notified before the signal fires.
            network.beginEpoch()
            engine.woke()
        }
        sessions = SessionMonitor(bus: systemBus, scope: context.options.isSystemService ? .local : .user(geteuid()))
        files = FileMonitor(loop) { path, fact, _ in fileEvents.publish(path, fact) }
        try await prepared
    }
}
