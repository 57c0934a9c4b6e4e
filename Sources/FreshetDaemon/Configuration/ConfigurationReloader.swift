import FreshetCache
import FreshetConfiguration
import FreshetControl
import FreshetEmitters
import FreshetEventLoop
import FreshetPipelines
import FreshetSignals
import FreshetSystemd
import Logging

/// The active configuration, and reloads of it: one at a time, with all its changes or none.
@DaemonActor
final class ConfigurationReloader {
    let reader: ConfigurationReader
    /// When the active configuration was read: wall-clock microseconds since 1970.
    private(set) var since: Int64
    /// The last reload, if it was refused.
    private(set) var refused: RefusedReload?
    private var active: Configuration
    /// The hooks of several pipelines that do not run, because their files have errors.
    private(set) var invalidHooks: [InvalidHook]
    private let context: DaemonContext
    private let parts: DaemonParts
    private let host: PipelineHost
    private let administrator: CacheAdministrator
    private let status: StatusReporter
    /// Fires after a reload whose caller requests all origins.
    private let reloadSignal: SignalSource

    /// - Parameters:
    ///   - active: the configuration that the daemon started with.
    ///   - since: when it was read: wall-clock microseconds since 1970.
    init(
        _ active: Configuration, since: Int64, _ context: DaemonContext, _ reader: ConfigurationReader,
        _ parts: DaemonParts, _ host: PipelineHost, _ administrator: CacheAdministrator, _ status: StatusReporter,
        reloadSignal: SignalSource
    ) {
        self.active = active
        invalidHooks = InvalidHook.all(of: active, context.redactor)
        self.since = since
        self.context = context
        self.reader = reader
        self.parts = parts
        self.host = host
        self.administrator = administrator
        self.status = status
        self.reloadSignal = reloadSignal
    }

    /// Reloads after SIGHUP, and fires the signal `reload`. The result is logged.
    func reloadBySignal(_ detail: String) async {
        do throws(ControlError) {
            _ = try await reload(.refresh, detail: detail)
        } catch {
            // The error has been logged already.
        }
    }

    /// Reads the configuration and applies the changes. If it has errors, the reload is refused and nothing changes.
    ///
    /// An error that only the service can see, such as a missing credential, affects only its pipeline: a running
    /// pipeline keeps its previous configuration, and a new one does not run.
    ///
    /// - Parameter detail: the caller, for the signal `reload`.
    /// - Returns: the changes, and all warnings and errors of single pipelines.
    func reload(
        _ scope: ReloadScope, detail: String
    ) async throws(ControlError) -> (ReloadSummary, [ConfigurationDiagnostic]) {
        // A reload in progress may have read the files before the latest edit, so this reload reads them again.
        await host.lock.acquire()
        defer { host.lock.release() }
        guard !context.tasks.isEnding else { throw .busy("the daemon is starting or stopping") }
        context.notifier.reloading(status: "reading the configuration")
        context.loop.nameJob("reload")
        let read = WallClock.now
        let files = await reader.rejectingProgramErrors(of: reader.selected(await reader.load()), active: active)
        let (new, hostEnvironment, lacking) = await keepingRunning(files)
        context.loop.nameJob("reload: errors")
        var errors = files.diagnostics.filter { $0.severity == .error }
        if errors.isEmpty, let conflict = await assignFiles(of: new) { errors = [conflict] }
        guard errors.isEmpty else {
            refused = RefusedReload(errors, at: WallClock.now, context.redactor)
            await status.ready()
            for (index, error) in errors.enumerated() {
                await context.giveWay(before: index, "errors of a reload")
                context.limiter.log(error)
            }
            context.limiter.finish(.configurationError)
            context.limiter.log(.reloadRefused, [.caller: .string(detail), .errors: .stringConvertible(errors.count)])
            throw .configurationRefused(
                (files.isValid ? errors : new.diagnostics).map(ConfigurationDiagnostic.init))
        }
        context.loop.nameJob("reload: secrets")
        context.readers.setGroups(hostEnvironment.groups)
        host.hide(hostEnvironment.hidden(with: new))
        await parts.http.use(hostEnvironment.secrets, files: hostEnvironment.credentialFiles)
        for diagnostic in lacking { context.limiter.log(diagnostic) }
        context.limiter.finish(.configurationError)
        let summary = await apply(new, scope)
        refused = nil
        since = read
        await status.ready()
        context.limiter.log(
            .reloaded,
            [
                .caller: .string(detail), .added: .stringConvertible(summary.added.count),
                .changed: .stringConvertible(summary.changed.count),
                .removed: .stringConvertible(summary.removed.count),
                .unchanged: .stringConvertible(summary.unchanged),
            ])
        context.events.publish(.reloaded(detail: summary.text, at: WallClock.now))
        if scope == .refresh { reloadSignal.fire(detail) }
        return (summary, (lacking + new.diagnostics).map(ConfigurationDiagnostic.init))
    }

    /// Keeps the previous configuration of running pipelines whose new configuration needs something that the service
    /// lacks.
    ///
    /// - Returns: the configuration to be applied, its host environment, and the errors of those pipelines.
    private func keepingRunning(_ new: Configuration) async -> (Configuration, HostEnvironment, [Diagnostic]) {
        let (checked, hostEnvironment) = await reader.checkingHostEnvironment(of: new)
        let running = Set(hostEnvironment.errors.map(\.pipeline)).filter { host.running($0) != nil }
        guard new.isValid, !running.isEmpty else { return (checked, hostEnvironment, []) }
        let lacking = running.sorted().flatMap { checked.invalid[$0] ?? [] }.filter { $0.severity == .error }
        var kept = new
        kept.pipelines = new.pipelines.map { definition in
            running.contains(definition.name) ? host.running(definition.name)?.definition ?? definition : definition
        }
        let (applied, others) = await reader.checkingHostEnvironment(of: kept)
        return (applied, others, lacking)
    }

    /// Applies the differences of a valid configuration. An unchanged pipeline keeps its state, its run and its
    /// backoff.
    ///
    /// New pipelines get a first run, and so do changed pipelines whose copy is not one of their configuration any
    /// more, unless `scope` excludes them. Pipelines without a signal run only when they are requested.
    private func apply(_ new: Configuration, _ scope: ReloadScope) async -> ReloadSummary {
        var requested: [RequestedRun] = []
        func begin(_ definition: PipelineDefinition, _ signal: String, _ detail: String) {
            guard !definition.refresh.on.isEmpty, let runner = host.running(definition.name)?.runner else { return }
            requested.append(RequestedRun(definition.name, after: Int64(clamping: runner.lastRunNumber)))
            // Otherwise the signal `reload`, which follows, requests the run.
            if scope != .refresh || !definition.refresh.on.contains(.reload) { runner.begin(signal, detail: detail) }
        }
        let before = active
        let difference = await context.pools.configuration.run("configuration") { new.difference(from: before) }
        context.loop.nameJob("reload")
        let isTargetChanged = new.daemon.networkTarget != before.daemon.networkTarget
        active = new
        invalidHooks = InvalidHook.all(of: new, context.redactor)
        host.use(new.daemon)
        await parts.fleet.use(new.daemon.fleet)
        await host.replaceInvalid(new.invalid)
        let isSharedChanged = host.useHooks(of: new)
        parts.requestLimiter.change(new.daemon.requestLimits)
        parts.memory.change(limit: JQTransformer.memoryForLongAnswers(of: new.daemon.memoryLimit))
        for definition in difference.changed + difference.added { await parts.store.setAccess(definition) }
        for (index, name) in difference.removed.enumerated() {
            await context.giveWay(before: index, "reload")
            if let definition = host.running(name)?.definition { await host.hooks.forget(definition) }
            await host.dismiss(name)
        }
        for (index, definition) in difference.changed.enumerated() {
            await context.giveWay(before: index, "reload")
            let before = host.running(definition.name)?.definition
            // A change between one file and several files removes the kept content, including the rejected candidate.
            if before?.cache.files.isEmpty != definition.cache.files.isEmpty {
                host.running(definition.name)?.runner.keepsNothingRejected()
            }
            let isOther = await host.change(definition)
            if isOther, scope != .configurationOnly {
                begin(definition, SignalName.reload, "the configuration of the pipeline has changed")
            }
            // Again, because a run with the previous configuration may have committed meanwhile. Later commits use the
            // new mode and group.
            await parts.store.setAccess(definition)
            await assignHooks(of: definition, before: before)
        }
        for (index, definition) in difference.added.enumerated() {
            await context.giveWay(before: index, "reload")
            await host.host(definition)
            host.logHeld(definition.name)
            await assignHooks(of: definition, before: nil)
            begin(
                definition, definition.refresh.on.contains(.reload) ? SignalName.reload : SignalName.start,
                "the pipeline is new in the configuration")
        }
        context.limiter.finish(.held)
        if isSharedChanged {
            await host.hooks.assign(host.running.map { $0.definition }.sorted { $0.name < $1.name }) {
                host.running($0)?.runner.status.kept
            }
        }
        if difference.isDaemonChanged { await administrator.applyQuota(new.daemon) }
        if isTargetChanged || difference.isDaemonChanged {
            for (index, name) in difference.unchanged.enumerated() {
                await context.giveWay(before: index, "reload")
                if let definition = host.running(name)?.definition { await host.change(definition) }
            }
        }
        host.signals.closeUnused()
        return ReloadSummary(
            added: difference.added.map(\.name), changed: difference.changed.map(\.name), removed: difference.removed,
            unchanged: Int64(difference.unchanged.count), requestedRuns: requested.isEmpty ? nil : requested,
            changedHooks: isSharedChanged ? new.changedHooks(from: before) : nil)
    }

    private func assignFiles(of new: Configuration) async -> Diagnostic? {
        await context.pools.cache.run { [cache = parts.cache] in
            do throws(CacheError) {
                try cache.assign(new.pipelines)
                return nil
            } catch {
                return Diagnostic(file: "pipelines", message: error.description)
            }
        }
    }

    /// Sets the hooks of a pipeline if its configuration has changed them.
    private func assignHooks(of definition: PipelineDefinition, before: PipelineDefinition?) async {
        let hasNewShared = before == nil && !host.hooks.shared(of: definition.name).isEmpty
        let hasNewTexts = !definition.hooks.isEmpty && definition.exactTexts != before?.exactTexts
        guard hasNewShared || hasNewTexts || definition.hooks != before?.hooks ?? [] else { return }
        await host.hooks.assign([definition]) { host.running($0)?.runner.status.kept }
    }
}
