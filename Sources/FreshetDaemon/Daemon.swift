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

/// The daemon: starts and ends its collaborators, and connects them.
///
/// ``run()`` runs the daemon. Pipelines, the control server and followed sources are child tasks of this call, so that
/// no task is left when it returns.
@DaemonActor
final class Daemon {
    private let context: DaemonContext
    private let threshold: LogThreshold
    private let started = WallClock.now
    private let slowJobs: SlowJobLog
    private let recorder: SignalRecorder
    private let status: StatusReporter
    private let reader: ConfigurationReader
    private let standard = StandardSignals()
    /// Nil before ``run()`` has made them.
    private(set) var collaborators: Collaborators?
    private var watchdog: WatchdogReporter?
    private var termination: SignalDescriptor?

    /// The parts that need the configuration.
    struct Collaborators {
        let parts: DaemonParts
        let host: PipelineHost
        let pipelines: PipelineAdministrator
        let administrator: CacheAdministrator
        let reloader: ConfigurationReloader
        let restorer: PublishedFileRestorer
        let overview: PipelineOverview
        let services: ControlServices
    }

    /// - Parameters:
    ///   - threshold: the threshold of `log`, which can change while the daemon runs.
    ///   - redactor: the redactor of `log`.
    nonisolated init(
        options: DaemonOptions, loop: EventLoop, log: Logger, threshold: LogThreshold = LogThreshold(),
        redactor: Redactor = Redactor()
    ) throws {
        context = try DaemonContext(options: options, loop: loop, log: log, redactor: redactor)
        self.threshold = threshold
        slowJobs = SlowJobLog(log)
        recorder = SignalRecorder(
            events: context.events, log: log, limiter: context.limiter, clock: context.clock,
            reports: DeferredReports(context.loop))
        status = StatusReporter(context)
        reader = ConfigurationReader(context)
    }

    /// Ends the daemon.
    nonisolated func end() { context.tasks.end() }

    /// Runs the daemon until it is ended; returns the exit status.
    func run() async -> DaemonExit {
        slowJobs.observe(context.loop)
        let inherited: VarlinkListener?
        do {
            inherited = try ControlSocket.inheritedListener(
                ListenDescriptors(environment: context.options.environment).items)
        } catch {
            return refuse("\(error)", .configuration)
        }
        let since = WallClock.now
        let (removed, repairs) = (RemovedContentLog(context.limiter), CopyRepairs())
        let (found, early) = await read(removed, repairs)
        let (loaded, configuration, hostEnvironment) = (found.loaded, found.configuration, found.environment)
        context.readers.setGroups(hostEnvironment.groups)
        let hidden = found.hidden
        context.redactor.setSecrets(hidden)
        for diagnostic in configuration.daemonDiagnostics { context.limiter.log(diagnostic) }
        guard configuration.isDaemonValid else {
            inherited?.turnAway(with: ControlError.notStarted("freshet.yaml has errors").reply)
            return .configuration
        }
        // Unknown names can only be detected after the configuration was read.
        let known = loaded.pipelines.map(\.name) + loaded.invalid.keys
        let unknown = context.options.onceNames.filter { !known.contains($0) }
        guard unknown.isEmpty else {
            let reason = UnknownPipelines.sentence(unknown, among: known)
            defer { inherited?.turnAway(with: ControlError.notStarted(reason).reply) }
            return refuse(reason, .usage)
        }
        let made: Collaborators
        do {
            let opened =
                if let early = try early.get() { early } else {
                    try await CacheOpening.open(context, configuration.daemon, removed, repairs)
                }
            made = try await makeCollaborators(configuration, opened, removed, since: since)
            await made.parts.http.use(hostEnvironment.secrets, files: hostEnvironment.credentialFiles)
        } catch {
            return refuse("\(error)", .failure)
        }
        collaborators = made
        made.host.hide(hidden)
        await made.host.replaceInvalid(configuration.invalid)
        made.host.useHooks(of: configuration)
        await begin(made, configuration, inherited)
        await context.tasks.run()
        status.finish()
        // Flushed here, while the loop still runs, so that a slow disk does not count as a hang.
        await context.pools.cache.run("index") { [cache = made.parts.cache] in cache.flush() }
        recorder.finish()
        context.flapLog.finish()
        context.limiter.finish()
        context.log.log(.stopping)
        return context.tasks.exit
    }

    /// Reads the configuration, and opens the cache while another thread reads the files of the pipelines, unless the
    /// daemon may not start at all. The list of the files is released here: ``run()`` would keep it until the daemon ends.
    private func read(
        _ removed: RemovedContentLog, _ repairs: CopyRepairs
    ) async -> (ConfigurationReader.AtStart, Result<CacheOpening.Opened?, any Error>) {
        let load = await reader.begin()
        return await reader.finish(load) { [context] helpers in
            await Self.opened(
                context, context.options.onceNames.isEmpty ? load.daemon : nil, removed, repairs, helpers)
        }
    }

    /// Opens the cache; without a definition of the daemon it is too early for that.
    private nonisolated static func opened(
        _ context: DaemonContext, _ daemon: DaemonDefinition?, _ removed: RemovedContentLog, _ repairs: CopyRepairs,
        _ helpers: StartHelpers
    ) async -> Result<CacheOpening.Opened?, any Error> {
        guard let daemon else { return .success(nil) }
        do {
            return .success(try await CacheOpening.open(context, daemon, removed, repairs, with: helpers))
        } catch {
            return .failure(error)
        }
    }

    private func refuse(_ reason: String, _ exit: DaemonExit) -> DaemonExit {
        context.log.log(.cannotStart, [.error: .string(reason)])
        return exit
    }

    /// Makes the collaborators and connects them.
    private func makeCollaborators(
        _ configuration: Configuration, _ opened: CacheOpening.Opened, _ removed: RemovedContentLog, since: Int64
    ) async throws -> Collaborators {
        let repairs = opened.repairs
        let fileEvents = FileEventPublisher(log: context.flapLog, recorder: recorder)
        let commits = CommitSignals()
        let overview = PipelineOverview()
        let parts = try await DaemonParts(
            context, configuration, opened, fileEvents, commits, recorder, status, overview)
        let networks = NetworkSources(parts.network, context, recorder)
        let signals = SignalRegistry(context, recorder)
        let host = PipelineHost(
            context, parts.engine, parts.store, parts.fleet,
            HookAssigner(context, parts.hooks, parts.store, isStateLost: parts.isIndexNew), signals, networks, commits,
            recorder, status, overview, ReloadLock())
        overview.begin { [weak host] in host?[$0].map(PipelineOverview.Entry.init) }
        host.use(configuration.daemon)
        await parts.fleet.use(configuration.daemon.fleet)
        let administrator = CacheAdministrator(
            context, parts.cache, parts.store, host, reader, commits, status)
        let restorer = PublishedFileRestorer(context, host, directory: parts.cache.publishedDirectory) {
            [weak administrator] in administrator?.copyLost($0)
        }
        host.publishedFiles = restorer.watch
        repairs.begin(
            CopyRepairs.Handlers { [tasks = context.tasks, weak restorer] pipeline in
                tasks.add { [weak restorer] in await restorer?.retryLater(pipeline) }
            } repaired: { [tasks = context.tasks, weak administrator] pipeline, generation in
                tasks.add { [weak administrator] in await administrator?.followed(pipeline, generation) }
            })
        removed.onRejected { [tasks = context.tasks, weak administrator] rejected in
            tasks.add { [weak administrator] in await administrator?.forgetRejected(rejected) }
        }
        let reloader = ConfigurationReloader(
            configuration, since: since, context, reader, parts, host, administrator, status,
            reloadSignal: standard.reload)
        signals.addSources(
            context, recorder, parts, networks, commits, fileEvents, standard, status, host, overview)
        let pipelines = PipelineAdministrator(context, host, overview, parts.secrets)
        let daemon = DaemonAdministrator(
            context, parts, overview, networks, reloader, slowJobs, threshold, started: started)
        return Collaborators(
            parts: parts, host: host, pipelines: pipelines, administrator: administrator, reloader: reloader,
            restorer: restorer, overview: overview,
            services: ControlServices(
                pipelines: pipelines, generations: administrator, cache: administrator, signals: signals, daemon: daemon
            ))
    }

    /// Starts all parts. Sources are armed and the socket listens before READY; READY does not wait for the first
    /// refresh.
    private func begin(_ made: Collaborators, _ configuration: Configuration, _ inherited: VarlinkListener?) async {
        let (tasks, host) = (context.tasks, made.host)
        do {
            try handleProcessSignals(made.reloader)
            let socket = try ControlSocket(context, inherited: inherited, made.services)
            tasks.add { await socket.run() }
        } catch {
            context.log.log(.cannotStart, [.error: .string("\(error)")])
            return tasks.end(.failure)
        }
        await host.start(configuration.pipelines)
        // The secrets of the configuration are hidden already; the rest are values of parameters.
        if configuration.pipelines.contains(where: { $0.parameters.contains(where: \.isSecret) }) {
            host.hide(parameters: [])
        }
        let composer = StatusComposer(
            context: context, parts: made.parts, overview: made.overview, networks: host.networks,
            reloader: made.reloader)
        status.begin { await composer.line() }
        await status.ready()
        watchdog = WatchdogReporter(context, status)
        if !context.notifier.isConnected { context.log.log(.noManager) }
        context.log.log(
            .ready, [.pipelines: .stringConvertible(host.running.count), .version: .string(Version.current)])
        // Another thread loads libcurl before the first request needs it, but not before READY: meanwhile each start of
        // a thread waits for glibc's lock of the list of libraries, and the start needs some threads.
        if configuration.pipelines.contains(where: \.makesRequests) {
            context.pools.helpers.perform("libcurl") { CurlLibrary.load() }
        }
        // The first steps of the pipelines need not delay READY.
        tasks.add { await made.parts.engine.run() }
        standard.start.fire("the daemon is ready")
        tasks.add { await made.administrator.removeLeftovers() }
        if context.options.once { tasks.add { tasks.end(await OnceRun(host, made.pipelines).run()) } }
        tasks.add { await host.followDirectNetworks() }
    }

    /// Starts to handle process signals. A process signal may arrive at any time. It is blocked and stays pending until
    /// its descriptor is read, so the descriptor must not be read before there is a subscriber.
    private func handleProcessSignals(_ reloader: ConfigurationReloader) throws {
        termination = try SignalDescriptor(context.loop, [SIGTERM, SIGINT]) { [tasks = context.tasks] _ in tasks.end() }
        context.tasks.add { [context] in await Self.handleHangups(context, reloader) }
    }

    private static func handleHangups(_ context: DaemonContext, _ reloader: ConfigurationReloader) async {
        let hangup: HangupSource
        do {
            hangup = try HangupSource(context.loop)
        } catch {
            context.log.log(.cannotStart, [.error: .string("\(error)")])
            return context.tasks.end(.failure)
        }
        // One subscription to both signals, before the loop reads the descriptor.
        for await causes in Signal.merge(hangup.reloadRequested, hangup.terminalClosed).causes {
            if causes.contains(where: { $0.last.signal == HangupSource.terminalClosedName }) {
                context.log.log(.terminalClosed)
                context.tasks.end()
            } else {
                await reloader.reloadBySignal(causes.first?.last.detail ?? "SIGHUP")
            }
        }
    }
}
