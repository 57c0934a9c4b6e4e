import FreshetCache
import FreshetConfiguration
import FreshetControl
import FreshetEmitters
package import FreshetEventLoop
import FreshetJQ
import FreshetModel
import FreshetPipelines
import FreshetSignals
import FreshetSystemd
import Glibc

/// The options of a dry run on the command line.
package struct DryRunRequest: Sendable {
    /// The pipeline's name.
    package var name: String
    /// Values of the pipeline's parameters, as `NAME=VALUE`; other parameters have their defaults.
    package var settings: [String] = []
    /// The destination of the content that would be committed: a file, or `-` for standard output.
    package var output: String?
    package var json = false
    /// Prints only errors.
    package var isQuiet = false
    /// Ends with ``DaemonExit/wouldChange`` if the copy would change.
    package var usesDetailedExit = false

    package init(name: String) { self.name = name }
}

extension DaemonEntry {
    /// Runs one pipeline in this process and prints what would change. It needs no daemon and does not affect a running
    /// one. It does not read the index, and writes only the output that the command line names.
    package static func dryRun(
        _ request: DryRunRequest, _ options: DaemonOptions, on loop: EventLoop
    ) async -> DaemonExit {
        let isEnded = OneTimeEvent()
        let termination = try? SignalDescriptor(loop, [SIGTERM, SIGINT, SIGHUP]) { _ in isEnded.happen() }
        defer { withExtendedLifetime(termination) {} }
        let session = DryRunSession(request: request, options: options, loop: loop)
        return await interruptible(by: isEnded, otherwise: .failure) { await session.run() }
    }
}

private struct DryRunSession: Sendable {
    let request: DryRunRequest
    let options: DaemonOptions
    let loop: EventLoop
    let workers = WorkerPool()
    let redactor = Redactor()

    func run() async -> DaemonExit {
        let loader = ConfigurationLocation.loader(options)
        var configuration = await workers.run("configuration") { loader.load() }
        guard configuration.isDaemonValid else { return refuse(configuration.daemonDiagnostics) }
        if let definition = configuration.definition(request.name) {
            configuration = loader.addingProgramErrors(programErrors(of: definition), in: configuration)
        }
        if let template = configuration.definition(request.name)?.template,
            let error = await workers.run("template", { TemplateSyntax.error(in: template) })
        {
            configuration = loader.addingTemplateErrors(
                [TemplateProblem(pipeline: request.name, template, error)], in: configuration)
        }
        guard let definition = configuration.definition(request.name) else { return refuse(configuration) }
        let hostEnvironment = hostEnvironment(of: definition)
        if !hostEnvironment.errors.isEmpty {
            return refuse(loader.adding(hostEnvironment.errors, as: .error, in: configuration))
        }
        warn(configuration)
        let parameters: ParameterValues
        switch values(for: definition) {
        case .success(let values): parameters = values
        case .failure(let refused): return refused.exit
        }
        redactor.setSecrets(
            hostEnvironment.hidden(with: configuration).union(
                definition.parameters.filter(\.isSecret).compactMap { parameters[$0.name] }))
        let http = HTTPClient(
            loop, options: HTTPClient.Options(userAgent: "freshet/\(Version.current)"),
            secretReader: SecretReader(
                Credentials(environment: options.environment), paths: PathPool(clock: LoopEngineClock(loop: loop)),
                redactor))
        await http.use(hostEnvironment.secrets, files: hostEnvironment.credentialFiles)
        let current: String
        do {
            current = try cacheDirectory() + "/current"
        } catch {
            return fail("\(error)")
        }
        // Read before the first request: without a readable copy the dry run fails.
        let path = "\(current)/\(definition.cache.readerFile)"
        let copy: [UInt8]?
        do throws(FreshetEventLoop.SystemCallError) {
            copy = try await workers.run("copy") { () throws(FreshetEventLoop.SystemCallError) in
                try Self.content(of: path)
            }
        } catch {
            return failed(
                "cannot read the current copy for the comparison: \(error); run the command as a user who may read it, "
                    + "or name another cache with --cache-dir")
        }
        let fetcher = SourceFetcher(
            http: http, commands: CommandRunner(loop, workers: workers),
            files: FileReader(
                paths: PathPool(clock: LoopEngineClock(loop: loop)),
                own: DaemonDirectories.own(try? DaemonDirectories.find(options), options)), copies: current)
        let transformer = JQTransformer(loop, workers: workers)
        var files: ProgramInputFiles?
        defer { files?.removeDirectory() }
        do throws(FetchError) {
            if definition.check.exec != nil { files = try await temporaryFiles() }
            let outcome = try await DryRun(
                definition, with: parameters, fetcher: fetcher, transformer: transformer, helpers: helpers(files),
                unpacker: Unpacker(loop, workers: workers), clock: LoopEngineClock(loop: loop),
                limits: configuration.daemon.requestLimits, copy: copy
            ).run()
            return try await show(outcome, of: definition, besides: copy, at: path, transformer)
        } catch {
            guard case .failed(let failure) = error else { return fail("interrupted") }
            return failed(redactor.text(failure.message))
        }
    }

    // MARK: Dependencies

    /// - Parameter files: the directory for candidates that programs inspect.
    private func helpers(_ files: ProgramInputFiles?) -> CheckHelpers {
        let programs = TrustedPrograms(
            commands: CommandRunner(loop, workers: workers), workers: workers, trust: options.trust)
        let isQuiet = request.isQuiet
        return CheckHelpers(
            verifier: ContentVerifier(workers: workers),
            inspector: files.map { files in
                CandidateInspector(programs, files) { [redactor] logging, _, _ in
                    guard case .line(let line) = logging, !isQuiet else { return }
                    let text = "freshetd: check output: \(PlainText.escaping(redactor.text(line)))\n"
                    StandardStream.write(text, to: STDERR_FILENO)
                }
            })
    }

    private func temporaryFiles() async throws(FetchError) -> ProgramInputFiles {
        try await workers.run("program") { () throws(FetchError) in
            do throws(ProgramInputFiles.Refusal) {
                return try .temporary(prefix: "candidate-")
            } catch {
                throw .failed(RunFailure(.local, error.description))
            }
        }
    }

    /// The errors of this pipeline's jq programs. They are compiled in this process, because it has no other work.
    private func programErrors(of definition: PipelineDefinition) -> [ProgramError] {
        Set(definition.programs).sorted { $0.text < $1.text }.compactMap { program in
            JQSyntax.error(in: program.text, variables: program.variables).map {
                ProgramError(pipeline: definition.name, program: program.text, message: $0)
            }
        }
    }

    /// The credentials of a pipeline. A dry run needs neither groups nor watched files nor hooks. If root started this
    /// process, it has become the service's user and may read the service's credentials, because the service manager
    /// permits that to the service's user.
    private func hostEnvironment(of definition: PipelineDefinition) -> HostEnvironment {
        var definition = definition
        definition.cache.group = nil
        definition.refresh.files = []
        definition.hooks = []
        let handed = Credentials(environment: options.environment)
        // The credentials of a user's own configuration are not those of the system service.
        let reader: HostEnvironment.Reader =
            handed.directory != nil || !isSystemPath && options.owner != 0
            ? .service : options.owner == 0 ? .root : .otherUser
        return HostEnvironment(
            of: Configuration(pipelines: [definition]),
            reader == .root ? Credentials(directory: "/run/credentials/freshetd.service") : handed,
            readBy: reader, options.trust)
    }

    private struct Refused: Error {
        var exit: DaemonExit
    }

    private func values(for definition: PipelineDefinition) -> Result<ParameterValues, Refused> {
        var changes: [ParameterChange] = []
        for setting in request.settings {
            guard let equals = setting.firstIndex(of: "="), equals > setting.startIndex else {
                return .failure(Refused(exit: fail("--set needs NAME=VALUE", .usage)))
            }
            changes.append(
                ParameterChange(String(setting[..<equals]), to: String(setting[setting.index(after: equals)...])))
        }
        var settings = ParameterSettings(for: definition)
        do throws(ParameterErrors) {
            try settings.apply(changes, for: definition)
            return .success(settings.values(for: definition))
        } catch {
            for refusal in error.refusals.map(InvalidSetting.init) {
                _ = fail("'\(refusal.parameter)' \(refusal.reason)")
            }
            return .failure(Refused(exit: .failure))
        }
    }

    /// The cache directory of the daemon that uses this configuration. For the system configuration it is the system's
    /// cache, also if another user starts the dry run.
    private func cacheDirectory() throws(ServiceDirectoriesError) -> String {
        if let directory = options.cacheDirectory { return directory }
        return try ServiceDirectories(
            name: "freshet", environment: options.environment, userID: isSystemPath ? 0 : options.owner
        ).cache
    }

    /// Whether the system's daemon uses this configuration.
    private var isSystemPath: Bool { ConfigurationLocation.searchPath(options).isSystemPath }

    // MARK: Results

    private func show(
        _ outcome: DryRun.Outcome, of definition: PipelineDefinition, besides old: [UInt8]?, at path: String,
        _ transformer: JQTransformer
    ) async throws(FetchError) -> DaemonExit {
        let new = outcome.snapshot.body.bytes ?? []
        var report = DryRunReport(
            name: definition.name, outcome: new == old ? .unchanged : .changed, size: Int64(new.count),
            digest: try? ContentDigest(of: new).description, mediaType: outcome.mediaType,
            truncated: outcome.snapshot.truncated, requests: Int64(outcome.requests),
            branches: outcome.failures.isEmpty
                ? nil
                : outcome.failures.map {
                    DryRunReport.Branch(
                        branch: BranchFailure.text($0.path), failure: redactor.text($0.failure.message))
                })
        if let old {
            let digest = (try? ContentDigest(of: old).description) ?? ""
            report.current = DryRunReport.Copy(path: path, size: Int64(old.count), digest: digest)
            if new != old {
                report.difference = try await ContentDifference.between(
                    old, and: new, key: definition.cache.key, by: transformer, on: loop)
            }
        }
        if let output = request.output, !write(new, to: output, mode: definition.cacheMode, besides: path) {
            return .failure
        }
        if request.json {
            guard show(ControlJSON.text(of: report) + "\n") else { return .failure }
        } else if !request.isQuiet {
            guard show(report.text) else { return .failure }
        }
        return request.usesDetailedExit && report.outcome == .changed ? .wouldChange : .success
    }

    /// The content of a file; nil: the file does not exist.
    private static func content(of path: String) throws(FreshetEventLoop.SystemCallError) -> [UInt8]? {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        if descriptor < 0 && errno == ENOENT { return nil }
        let file = try OwnedDescriptor(descriptor, of: "open", subject: path)
        var bytes: [UInt8] = []
        var piece = [UInt8](repeating: 0, count: 64 << 10)
        while true {
            let count = read(file.rawValue, &piece, piece.count)
            if count < 0 && errno == EINTR { continue }
            guard count >= 0 else { throw FreshetEventLoop.SystemCallError("read", errno: errno, subject: path) }
            if count == 0 { return bytes }
            bytes += piece[..<count]
        }
    }

    /// Writes the content to the requested file, but never over the published file.
    private func write(_ bytes: [UInt8], to output: String, mode: UInt32, besides copy: String) -> Bool {
        if output == "-" {
            let isWritten = StandardStream.write(bytes[...], to: STDOUT_FILENO)
            return isWritten || fail("cannot write the content: \(String(cString: strerror(errno)))") == .success
        }
        let file: OwnedDescriptor
        do {
            file = try OwnedDescriptor(
                open(output, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY, mode), of: "open", subject: output)
        } catch {
            let remedy =
                options.invoker == 0 && error.errno == EACCES
                ? "; a dry run of root has the rights of the service's user: use --output - and redirect it" : ""
            return fail("cannot write the content: \(error)\(remedy)") == .success
        }
        var (own, others) = (stat(), stat())
        if fstat(file.rawValue, &own) == 0, stat(copy, &others) == 0, own.st_dev == others.st_dev,
            own.st_ino == others.st_ino
        {
            return fail("'\(output)' is the current copy; a dry run does not change it") == .success
        }
        // Only a regular file has old content to remove.
        if own.st_mode & S_IFMT == S_IFREG, ftruncate(file.rawValue, 0) != 0 {
            return fail("cannot write '\(output)': \(String(cString: strerror(errno)))") == .success
        }
        guard StandardStream.write(bytes[...], to: file.rawValue) else {
            return fail("cannot write '\(output)': \(String(cString: strerror(errno)))") == .success
        }
        return true
    }

    // MARK: Messages

    /// Prints the report: to standard error if the content goes to standard output.
    ///
    /// - Returns: false if standard output did not take the report.
    private func show(_ text: String) -> Bool {
        guard request.output == "-" else { return StandardStream.answer(text) }
        StandardStream.write(text, to: STDERR_FILENO)
        return true
    }

    /// Reports that there is no snapshot, or no readable copy for the comparison.
    private func failed(_ message: String) -> DaemonExit {
        if request.json {
            _ = show(ControlJSON.text(of: DryRunReport(name: request.name, outcome: .failed, failure: message)) + "\n")
        }
        return fail("\(request.name): \(message)")
    }

    private func fail(_ message: String, _ exit: DaemonExit = .failure) -> DaemonExit {
        StandardStream.write("freshetd: \(PlainText.escaping(message))\n", to: STDERR_FILENO)
        return exit
    }

    /// Reports that the pipeline does not exist or that its configuration has errors.
    private func refuse(_ configuration: Configuration) -> DaemonExit {
        if let diagnostics = configuration.invalid[request.name] { return refuse(diagnostics) }
        let names = configuration.pipelines.map(\.name) + configuration.invalid.keys
        return fail(UnknownPipelines.sentence([request.name], among: names))
    }

    private func refuse(_ diagnostics: [Diagnostic]) -> DaemonExit {
        if request.json {
            let message = ControlMessage.Diagnostics(diagnostics: diagnostics.map(ConfigurationDiagnostic.init))
            _ = StandardStream.answer(ControlJSON.text(of: message) + "\n")
        } else {
            StandardStream.write(diagnostics.map { $0.text() + "\n" }.joined(), to: STDERR_FILENO)
        }
        return .configuration
    }

    /// Prints the warnings about the pipeline's own files.
    private func warn(_ configuration: Configuration) {
        guard !request.isQuiet else { return }
        let files = Set(configuration.files[request.name] ?? [])
        for diagnostic in configuration.diagnostics where files.contains(diagnostic.file) {
            StandardStream.write(diagnostic.text() + "\n", to: STDERR_FILENO)
        }
    }
}

/// Names that no pipeline has.
enum UnknownPipelines {
    /// The error message, with suggestions of similar names.
    static func sentence(_ names: [String], among known: [String]) -> String {
        names.map { name in
            let suggestion = NameSuggestion.closest(to: name, among: known.sorted()).map { "; did you mean '\($0)'?" }
            return "there is no pipeline '\(name)'" + (suggestion ?? "")
        }.joined(separator: ", ")
    }
}

extension Configuration {
    fileprivate func definition(_ name: String) -> PipelineDefinition? { pipelines.first { $0.name == name } }
}
