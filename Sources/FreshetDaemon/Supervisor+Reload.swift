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

/// Reading the configuration, at the start and again.
extension Supervisor {
    /// Reads the files, on a worker.
    func load() async -> Configuration {
        let loader = loader
        return await pools.configuration.run("configuration") { loader.load() }
    }

    /// Reads where ``searchPath(_:user:exists:)`` says.
    static func loader(_ options: DaemonOptions) -> ConfigurationLoader {
        ConfigurationLoader(
            searchPath: searchPath(options),
            terms: LoadContext(
                defaultSignals: isSystemService(options) ? StandardSignal.systemDefault : StandardSignal.userDefault,
                busFault: BusMatch.fault(of:)),
            fileSystem: options.copies.isEmpty
                ? fileSystem(options)
                : SubstitutingFileSystem(fileSystem(options), copies: options.copiedContents))
    }

    /// The machine's files; in a process that root started, only those that root alone can change.
    static func fileSystem(_ options: DaemonOptions) -> any ConfigurationFileSystem {
        if let recorded = options.recordedFiles { return recorded }
        guard options.invoker == 0 else { return HostFileSystem() }
        let trust = PathTrust(user: 0, isPersonal: false)
        return GuardedFileSystem(HostFileSystem()) { path in
            do throws(PathTrust.ValidationError) {
                try trust.check(DaemonOptions.absolute(path), as: .configuration)
                return nil
            } catch {
                return FileError(
                    message: "root does not read this configuration: \(error.message)", remedy: error.remedy)
            }
        }
    }

    /// Where flags and environment say; where neither does, the directory of a user other than root, if there is one, else
    /// those of the system.
    ///
    /// - Parameters:
    ///   - user: nil: ``DaemonOptions/owner``.
    ///   - exists: whether there is something at a path.
    static func searchPath(
        _ options: DaemonOptions, user: UInt32? = nil, exists: (String) -> Bool = { access($0, F_OK) == 0 }
    ) -> SearchPath {
        let user = user ?? options.owner
        let own = user == 0 ? nil : ownConfiguration(options.environment, user)
        return SearchPath(
            flags: options.configurationDirectories,
            configurationDirectory: options.environment["CONFIGURATION_DIRECTORY"],
            own: own.flatMap { exists($0) ? $0 : nil })
    }

    /// A user's own directory; nil: nobody says where that would be. It is one, as the user's unit has it.
    private static func ownConfiguration(_ environment: [String: String], _ user: UInt32) -> String? {
        var environment = environment
        // What the others lack is not to be in the way.
        for variable in ["STATE_DIRECTORY", "CACHE_DIRECTORY"] { environment[variable] = "/" }
        return try? ServiceDirectories(name: "freshet", environment: environment, userID: user).configuration.first
    }

    /// SIGHUP: as a reload by the control socket, with the answer in the log.
    func reloadBySignal(_ detail: String) async {
        do throws(ControlError) {
            _ = try await reload(configurationOnly: false, detail: detail)
        } catch {
            // What is wrong was said where it was found.
        }
    }

    /// Reads the configuration and applies what has changed, or rejects it whole and leaves everything as it was.
    ///
    /// An error that only the service can see, such as a credential that it was not given, is an error of its pipeline
    /// alone. A pipeline that runs keeps its previous configuration; one that is new does not run.
    ///
    /// - Parameter detail: who asked, for the signal `reload`.
    /// - Returns: what changed, and all warnings and such errors.
    func reload(
        configurationOnly: Bool, detail: String
    ) async throws(ControlError) -> (ReloadSummary, [ConfigurationDiagnostic]) {
        // The reload under way may have read the files before the edit that this one is about: it does not stand for it.
        await takeReloadTurn()
        defer { endReloadTurn() }
        guard !isEnding, let parts else { throw .busy("the daemon is starting or stopping") }
        notifier.reloading(status: "reading the configuration")
        loop.nameJob("reload")
        let read = WallClock.now
        let files = await refusingProgramFaults(of: wanted(await load()))
        let (new, surroundings, lacking) = await keepingRunning(files)
        loop.nameJob("reload: errors")
        var faults = files.diagnostics.filter { $0.severity == .error }
        if faults.isEmpty, let conflict = await assignFiles(of: new, in: parts) { faults = [conflict] }
        guard faults.isEmpty else {
            refusedReload = RefusedReload(faults, at: WallClock.now, redactor)
            notifier.ready(status: await statusLine())
            for (index, fault) in faults.enumerated() {
                await giveWay(before: index, "errors of a reload")
                say(fault)
            }
            news.finish(.configurationFault)
            log.say(.reloadRefused, [.asker: .string(detail), .faults: .stringConvertible(faults.count)])
            throw .configurationRefused(
                (files.isSound ? faults : new.diagnostics).map(ConfigurationDiagnostic.init))
        }
        loop.nameJob("reload: secrets")
        readers.know(surroundings.groups)
        hidden = surroundings.hidden(with: new)
        redactor.know(hidden.union(secretParameters))
        await parts.http.use(surroundings.secrets, files: surroundings.credentialFiles)
        for diagnostic in lacking { say(diagnostic) }
        news.finish(.configurationFault)
        let summary = await apply(new, configurationOnly: configurationOnly)
        refusedReload = nil
        configurationSince = read
        notifier.ready(status: await statusLine())
        log.say(
            .reloaded,
            [
                .asker: .string(detail), .added: .stringConvertible(summary.added.count),
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

    /// Gives pipelines that run their previous configuration if the service lacks what the new one needs.
    ///
    /// - Returns: the configuration to be applied, its surroundings, and the errors of those pipelines.
    private func keepingRunning(_ new: Configuration) async -> (Configuration, HostEnvironment, [Diagnostic]) {
        let (checked, surroundings) = await checkingSurroundings(of: new)
        let running = Set(surroundings.faults.map(\.pipeline)).filter { pipelines[$0] != nil }
        guard new.isSound, !running.isEmpty else { return (checked, surroundings, []) }
        let lacking = running.sorted().flatMap { checked.faulty[$0] ?? [] }.filter { $0.severity == .error }
        var kept = new
        kept.pipelines = new.pipelines.map { definition in
            running.contains(definition.name) ? pipelines[definition.name]?.definition ?? definition : definition
        }
        let (applied, others) = await checkingSurroundings(of: kept)
        return (applied, others, lacking)
    }

    /// Waits until no other reload is under way, and keeps others waiting until ``endReloadTurn()``.
    func takeReloadTurn() async {
        guard isReloading else {
            isReloading = true
            return
        }
        await withCheckedContinuation { waiter in
            // The other one may have ended since the look: a suspension may let others run first.
            guard isReloading else {
                isReloading = true
                return waiter.resume()
            }
            waitingReloads.append(waiter)
        }
    }

    /// Hands the turn to the one that has waited longest: nobody who comes now gets it before.
    func endReloadTurn() {
        guard waitingReloads.isEmpty else { return waitingReloads.removeFirst().resume() }
        isReloading = false
    }

    /// Applies a sound configuration by its difference: what did not change keeps its state, its run and its back-off.
    ///
    /// - Parameter configurationOnly: the signal `reload` does not follow.
    private func apply(_ new: Configuration, configurationOnly: Bool) async -> ReloadSummary {
        let before = configuration
        let difference = await pools.configuration.run("configuration") { new.difference(from: before) }
        loop.nameJob("reload")
        let isTargetChanged = new.daemon.networkTarget != configuration.daemon.networkTarget
        configuration = new
        faulty = [:]
        await prepareFaulty()
        parts?.slots.change(new.daemon.requestLimits)
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
            // What was kept of the other kind is forgotten, and what a check refused of it.
            if before?.cache.files.isEmpty != definition.cache.files.isEmpty {
                pipelines[definition.name]?.runner.keepsNothingRefused()
            }
            await change(definition)
            // Again, for what a run of before has committed meanwhile; what it commits from here on it looks after itself.
            await parts?.store.setAccess(definition)
            await assignHooks(of: definition, before: before)
        }
        for (index, definition) in difference.added.enumerated() {
            await giveWay(before: index, "reload")
            await host(definition)
            tellHeld(definition.name)
            await assignHooks(of: definition, before: nil)
            if !definition.refresh.on.isEmpty, configurationOnly || !definition.refresh.on.contains(.reload) {
                pipelines[definition.name]?.runner.begin(detail: "the pipeline is new in the configuration")
            }
        }
        news.finish(.held)
        if difference.isDaemonChanged { await applyRoom(new.daemon) }
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

    /// The programs that are not in force already are compiled, in a helper of their own: one that pipelines use may be
    /// busy. At start they are not: that would be milliseconds for each before READY; a run says what is wrong then.
    private func refusingProgramFaults(of new: Configuration) async -> Configuration {
        loop.nameJob("reload: programs")
        let inForce = Set(configuration.pipelines.flatMap(\.programs))
        let transformer = JQTransformer(loop, workers: pools.helpers)
        var verdicts: [ProgramText: String?] = [:]
        var faults: [ProgramError] = []
        for definition in new.pipelines {
            for program in Set(definition.programs).subtracting(inForce).sorted(by: { $0.text < $1.text }) {
                var verdict: String?
                if let known = verdicts[program] {
                    verdict = known
                } else {
                    do throws(FetchError) {
                        verdict = try await transformer.fault(in: program.text, variables: program.variables)
                    } catch {
                        // A program that ends the helper is at fault; a helper that cannot be started is not its.
                        if case .failed(let failure) = error, failure.kind == .content { verdict = failure.message }
                    }
                    verdicts[program] = .some(verdict)
                }
                guard let verdict else { continue }
                faults.append(ProgramError(pipeline: definition.name, program: program.text, message: verdict))
            }
        }
        guard !faults.isEmpty else { return new }
        let loader = loader
        return await pools.configuration.run("configuration") { [faults] in loader.refusing(faults, in: new) }
    }

    /// Reads the credentials that pipelines name and looks for their groups, on a worker. Who lacks one is faulty.
    func checkingSurroundings(of configuration: Configuration) async -> (Configuration, HostEnvironment) {
        let credentials = Credentials(environment: options.environment)
        let loader = loader
        let trust = Self.trust(options)
        let (checked, surroundings) = await pools.configuration.run("configuration") {
            let surroundings = HostEnvironment(of: configuration, credentials, trust)
            var checked = configuration
            if !surroundings.warnings.isEmpty {
                checked = loader.noting(surroundings.warnings, as: .warning, in: checked)
            }
            if !surroundings.faults.isEmpty { checked = loader.noting(surroundings.faults, as: .error, in: checked) }
            return (checked, surroundings)
        }
        return (checked, surroundings)
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

    /// Each fault of the configuration is one message, with its place.
    func say(_ diagnostic: Diagnostic) {
        news.say(.configurationFault, level: diagnostic.severity == .error ? nil : .warning, diagnostic.fields)
    }
}

extension Diagnostic {
    /// Without what stands in the file, which not everybody may read.
    var forEverybody: Diagnostic {
        var diagnostic = self
        diagnostic.excerpt = nil
        diagnostic.quotation = nil
        return diagnostic
    }

    /// The fault on one line: place, severity, what is wrong and what to do.
    var sentence: String { text().split(separator: "\n").first.map(String.init) ?? message }

    /// The fault and its place, for the journal.
    var fields: [JournalField: Logger.MetadataValue] {
        var fields: [JournalField: Logger.MetadataValue] = [.error: .string(sentence), .file: .string(file)]
        if let line { fields[.line] = .stringConvertible(line) }
        if let column { fields[.column] = .stringConvertible(column) }
        return fields
    }
}

extension RefusedReload {
    /// Whoever may look may see it: of the file no more than its name and what is wrong.
    ///
    /// - Parameter faults: one at least, or nothing was refused.
    init?(_ faults: [Diagnostic], at instant: Int64, _ redactor: Redactor) {
        guard let fault = faults.first else { return nil }
        var first = ConfigurationDiagnostic(fault.forEverybody)
        first.message = redactor.text(first.message)
        self.init(at: instant, faults: Int64(faults.count), first: first)
    }
}

extension ReloadSummary {
    /// Such as `1 added, 2 changed`, or `nothing changed`.
    var text: String {
        let parts = [(added.count, "added"), (changed.count, "changed"), (removed.count, "removed")]
            .filter { $0.0 > 0 }.map { "\($0.0) \($0.1)" }
        return parts.isEmpty ? "nothing changed" : parts.joined(separator: ", ")
    }
}

extension ConfigurationDiagnostic {
    init(_ diagnostic: Diagnostic) {
        self.init(
            severity: diagnostic.severity == .error ? .fault : .warning, file: diagnostic.file,
            line: diagnostic.line.map(Int64.init), column: diagnostic.column.map(Int64.init),
            message: diagnostic.explanation(), excerpt: diagnostic.excerpt?.text,
            caret: diagnostic.excerpt.map { Int64($0.caret) })
    }
}
