import FreshetCache
import FreshetConfiguration
import FreshetControl
import FreshetEmitters
import FreshetEventLoop
import FreshetPipelines
import FreshetSignals
import FreshetSystemSignals
import FreshetSystemd
import Glibc
import Logging

/// Reads the configuration at the start and at each reload.
extension Supervisor {
    /// Reloads after SIGHUP, in the same way as after a request by the control socket. The result is logged.
    func reloadBySignal(_ detail: String) async {
        do throws(ControlError) {
            _ = try await reload(configurationOnly: false, detail: detail)
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
        configurationOnly: Bool, detail: String
    ) async throws(ControlError) -> (ReloadSummary, [ConfigurationDiagnostic]) {
        // A reload in progress may have read the files before the latest edit, so this reload reads them again.
        await reloadLock.acquire()
        defer { reloadLock.release() }
        guard !isEnding, let parts else { throw .busy("the daemon is starting or stopping") }
        notifier.reloading(status: "reading the configuration")
        loop.nameJob("reload")
        let read = WallClock.now
        let files = await reader.rejectingProgramErrors(of: reader.selected(await reader.load()), active: configuration)
        let (new, hostEnvironment, lacking) = await keepingRunning(files)
        loop.nameJob("reload: errors")
        var errors = files.diagnostics.filter { $0.severity == .error }
        if errors.isEmpty, let conflict = await assignFiles(of: new, in: parts) { errors = [conflict] }
        guard errors.isEmpty else {
            refusedReload = RefusedReload(errors, at: WallClock.now, redactor)
            await status.ready()
            for (index, error) in errors.enumerated() {
                await giveWay(before: index, "errors of a reload")
                log(error)
            }
            limiter.finish(.configurationError)
            limiter.log(.reloadRefused, [.caller: .string(detail), .errors: .stringConvertible(errors.count)])
            throw .configurationRefused(
                (files.isValid ? errors : new.diagnostics).map(ConfigurationDiagnostic.init))
        }
        loop.nameJob("reload: secrets")
        readers.setGroups(hostEnvironment.groups)
        hidden = hostEnvironment.hidden(with: new)
        redactor.setSecrets(hidden.union(secretParameters))
        await parts.http.use(hostEnvironment.secrets, files: hostEnvironment.credentialFiles)
        for diagnostic in lacking { log(diagnostic) }
        limiter.finish(.configurationError)
        let summary = await apply(new, configurationOnly: configurationOnly)
        refusedReload = nil
        configurationSince = read
        await status.ready()
        limiter.log(
            .reloaded,
            [
                .caller: .string(detail), .added: .stringConvertible(summary.added.count),
                .changed: .stringConvertible(summary.changed.count),
                .removed: .stringConvertible(summary.removed.count),
                .unchanged: .stringConvertible(summary.unchanged),
            ])
        events.publish(.reloaded(detail: summary.text, at: WallClock.now))
        if !configurationOnly {
            standard.reload.fire(detail)
        }
        return (summary, (lacking + new.diagnostics).map(ConfigurationDiagnostic.init))
    }

    /// Keeps the previous configuration of running pipelines whose new configuration needs something that the service
    /// lacks.
    ///
    /// - Returns: the configuration to be applied, its host environment, and the errors of those pipelines.
    private func keepingRunning(_ new: Configuration) async -> (Configuration, HostEnvironment, [Diagnostic]) {
        let (checked, hostEnvironment) = await reader.checkingHostEnvironment(of: new)
        let running = Set(hostEnvironment.errors.map(\.pipeline)).filter { pipelines[$0] != nil }
        guard new.isValid, !running.isEmpty else { return (checked, hostEnvironment, []) }
        let lacking = running.sorted().flatMap { checked.invalid[$0] ?? [] }.filter { $0.severity == .error }
        var kept = new
        kept.pipelines = new.pipelines.map { definition in
            running.contains(definition.name) ? pipelines[definition.name]?.definition ?? definition : definition
        }
        let (applied, others) = await reader.checkingHostEnvironment(of: kept)
        return (applied, others, lacking)
    }

    /// Applies the differences of a valid configuration. An unchanged pipeline keeps its state, its run and its
    /// backoff.
    ///
    /// - Parameter configurationOnly: the signal `reload` is not fired afterwards.
    private func apply(_ new: Configuration, configurationOnly: Bool) async -> ReloadSummary {
        let before = configuration
        let difference = await pools.configuration.run("configuration") { new.difference(from: before) }
        loop.nameJob("reload")
        let isTargetChanged = new.daemon.networkTarget != configuration.daemon.networkTarget
        configuration = new
        invalid = [:]
        await prepareInvalid()
        parts?.requestLimiter.change(new.daemon.requestLimits)
        parts?.memory.change(limit: JQTransformer.memoryForLongAnswers(of: new.daemon.memoryLimit))
        for definition in difference.changed + difference.added { await parts?.store.setAccess(definition) }
        for (index, name) in difference.removed.enumerated() {
            await giveWay(before: index, "reload")
            await forgetHooks(of: name)
            await dismiss(name)
        }
        for (index, definition) in difference.changed.enumerated() {
            await giveWay(before: index, "reload")
            let before = pipelines[definition.name]?.definition
            // A change between one file and several files removes the kept content, including the rejected candidate.
            if before?.cache.files.isEmpty != definition.cache.files.isEmpty {
                pipelines[definition.name]?.runner.keepsNothingRejected()
            }
            await change(definition)
            // Again, because a run with the previous configuration may have committed meanwhile. Later commits use the
            // new mode and group.
            await parts?.store.setAccess(definition)
            await assignHooks(of: definition, before: before)
        }
        for (index, definition) in difference.added.enumerated() {
            await giveWay(before: index, "reload")
            await host(definition)
            logHeld(definition.name)
            await assignHooks(of: definition, before: nil)
            if !definition.refresh.on.isEmpty, configurationOnly || !definition.refresh.on.contains(.reload) {
                pipelines[definition.name]?.runner.begin(detail: "the pipeline is new in the configuration")
            }
        }
        limiter.finish(.held)
        if difference.isDaemonChanged { await applyQuota(new.daemon) }
        if isTargetChanged || difference.isDaemonChanged {
            for (index, name) in difference.unchanged.enumerated() {
                await giveWay(before: index, "reload")
                if let definition = pipelines[name]?.definition { await change(definition) }
            }
        }
        releaseBusSignals()
        return ReloadSummary(
            added: difference.added.map(\.name), changed: difference.changed.map(\.name), removed: difference.removed,
            unchanged: Int64(difference.unchanged.count))
    }

    private func assignFiles(of new: Configuration, in parts: Parts) async -> Diagnostic? {
        return await pools.cache.run {
            do throws(CacheError) {
                try parts.cache.assign(new.pipelines)
                return nil
            } catch {
                return Diagnostic(file: "pipelines", message: error.description)
            }
        }
    }

    /// Logs an error or a warning of the configuration with its location.
    func log(_ diagnostic: Diagnostic) {
        limiter.log(.configurationError, level: diagnostic.severity == .error ? nil : .warning, diagnostic.fields)
    }
}

extension Diagnostic {
    /// The diagnostic without text from the file, which not every user may read.
    var forEverybody: Diagnostic {
        var diagnostic = self
        diagnostic.excerpt = nil
        diagnostic.quotation = nil
        return diagnostic
    }

    /// The diagnostic on one line: location, severity, error and remedy.
    var sentence: String { text().split(separator: "\n").first.map(String.init) ?? message }

    /// The diagnostic and its location, as fields of a log message.
    var fields: [JournalField: Logger.MetadataValue] {
        var fields: [JournalField: Logger.MetadataValue] = [.error: .string(sentence), .file: .string(file)]
        if let line { fields[.line] = .stringConvertible(line) }
        if let column { fields[.column] = .stringConvertible(column) }
        return fields
    }
}

extension RefusedReload {
    /// Makes a record that every client may see: it contains the name of the file and the error, but no text from the
    /// file.
    ///
    /// - Parameter errors: the errors of the configuration; nil is returned if there is none.
    init?(_ errors: [Diagnostic], at instant: Int64, _ redactor: Redactor) {
        guard let error = errors.first else { return nil }
        var first = ConfigurationDiagnostic(error.forEverybody)
        first.message = redactor.text(first.message)
        self.init(at: instant, errors: Int64(errors.count), first: first)
    }
}

extension ReloadSummary {
    /// One line for people, such as `1 added, 2 changed`, or `nothing changed`.
    var text: String {
        let parts = [(added.count, "added"), (changed.count, "changed"), (removed.count, "removed")]
            .filter { $0.0 > 0 }.map { "\($0.0) \($0.1)" }
        return parts.isEmpty ? "nothing changed" : parts.joined(separator: ", ")
    }
}

extension ConfigurationDiagnostic {
    init(_ diagnostic: Diagnostic) {
        self.init(
            severity: diagnostic.severity == .error ? .error : .warning, file: diagnostic.file,
            line: diagnostic.line.map(Int64.init), column: diagnostic.column.map(Int64.init),
            message: diagnostic.explanation(), excerpt: diagnostic.excerpt?.text,
            caret: diagnostic.excerpt.map { Int64($0.caret) })
    }
}
