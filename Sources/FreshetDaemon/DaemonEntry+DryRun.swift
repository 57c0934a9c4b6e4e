import FreshetCache
import FreshetConfiguration
import FreshetControl
import FreshetEmitters
package import FreshetEventLoop
import FreshetJQ
import FreshetPipelines
import FreshetSignals
import FreshetSystemd
import Glibc

/// What the command line asks of a dry run.
package struct DryRunRequest: Sendable {
    /// The pipeline's name.
    package var name: String
    /// Values of its parameters, `NAME=VALUE`; the others have their defaults.
    package var settings: [String] = []
    /// Where the content goes that would be committed: a file, or `-` for standard output.
    package var output: String?
    package var json = false
    /// Says nothing but errors.
    package var isQuiet = false
    /// Has ``DaemonExit/wouldChange`` tell that the copy would change.
    package var tellsChange = false

    package init(name: String) { self.name = name }
}

extension DaemonEntry {
    /// Runs one pipeline by itself and says what it would change: no daemon is needed, and one that runs is not disturbed.
    /// The index is not looked at, and nothing is written but what was asked for.
    package static func dryRun(
        _ request: DryRunRequest, _ options: DaemonOptions, on loop: EventLoop
    ) async -> DaemonExit {
        let isEnded = CurrentValue(false)
        let termination = try? SignalDescriptor(loop, [SIGTERM, SIGINT, SIGHUP]) { _ in isEnded.value = true }
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
        let loader = Supervisor.loader(options)
        var configuration = await workers.run("configuration") { loader.load() }
        guard configuration.isDaemonSound else { return refuse(configuration.daemonDiagnostics) }
        if let definition = configuration.definition(request.name) {
            configuration = loader.refusing(programFaults(of: definition), in: configuration)
        }
        guard let definition = configuration.definition(request.name) else { return refuse(configuration) }
        let surroundings = surroundings(of: definition)
        if !surroundings.faults.isEmpty {
            return refuse(loader.noting(surroundings.faults, as: .error, in: configuration))
        }
        warn(configuration)
        let parameters: ParameterValues
        switch values(for: definition) {
        case .success(let values): parameters = values
        case .failure(let refused): return refused.exit
        }
        redactor.know(
            surroundings.hidden(with: configuration).union(
                definition.parameters.filter(\.isSecret).compactMap { parameters[$0.name] }))
        let http = HTTPClient(loop, options: HTTPClient.Options(userAgent: "freshet/\(Version.current)"))
        await http.use(surroundings.secrets, files: surroundings.credentialFiles)
        let current: String
        do {
            current = try cacheDirectory() + "/current"
        } catch {
            return fail("\(error)")
        }
        // Before anything is asked for: without it there is no answer.
        let path = "\(current)/\(definition.cache.readerFile)"
        let copy: [UInt8]?
        do throws(FreshetEventLoop.SystemCallError) {
            copy = try await workers.run("copy") { () throws(FreshetEventLoop.SystemCallError) in
                try Self.content(of: path)
            }
        } catch {
            return failed(
                "cannot read the current copy, to compare with: \(error); run it as somebody who may, or name another cache "
                    + "with --cache-dir")
        }
        let fetcher = SourceFetcher(
            http: http, commands: CommandRunner(loop, workers: workers),
            files: FileReader(paths: PathPool(clock: LoopEngineClock(loop: loop))), copies: current)
        let transformer = JQTransformer(loop, workers: workers)
        var files: ProgramInputFiles?
        defer { files?.removeDirectory() }
        do throws(FetchError) {
            if definition.check.exec != nil { files = try await temporaryFiles() }
            let outcome = try await DryRun(
                definition, with: parameters, fetcher: fetcher, transformer: transformer, helpers: helpers(files),
                clock: LoopEngineClock(loop: loop), limits: configuration.daemon.requestLimits,
                copy: copy
            ).run()
            return try await tell(outcome, of: definition, besides: copy, at: path, transformer)
        } catch {
            guard case .failed(let failure) = error else { return fail("interrupted") }
            return failed(redactor.text(failure.message))
        }
    }

    // MARK: What it needs

    /// - Parameter files: for candidates that programs look at.
    private func helpers(_ files: ProgramInputFiles?) -> CheckHelpers {
        let programs = TrustedPrograms(
            commands: CommandRunner(loop, workers: workers), workers: workers, trust: Supervisor.trust(options))
        let isQuiet = request.isQuiet
        return CheckHelpers(
            prover: ContentVerifier(workers: workers),
            inspector: files.map { files in
                CandidateInspector(programs, files) { [redactor] saying, _, _ in
                    guard case .line(let line) = saying, !isQuiet else { return }
                    let text = "freshetd: the check says: \(PlainText.escaping(redactor.text(line)))\n"
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

    /// Of this pipeline only; compiled here, since this process does nothing else.
    private func programFaults(of definition: PipelineDefinition) -> [ProgramError] {
        Set(definition.programs).sorted { $0.text < $1.text }.compactMap { program in
            JQSyntax.fault(in: program.text, variables: program.variables).map {
                ProgramError(pipeline: definition.name, program: program.text, message: $0)
            }
        }
    }

    /// The credentials; who may read the copy and what is watched is of no concern here. Root, who became the service's
    /// user, may read what the service was started with: the service manager gives that user the right.
    private func surroundings(of definition: PipelineDefinition) -> HostEnvironment {
        var definition = definition
        definition.cache.group = nil
        definition.refresh.files = []
        definition.hooks = []
        let handed = Credentials(environment: options.environment)
        // Of a configuration of one's own, nobody else has the credentials either.
        let reader: HostEnvironment.Reader =
            handed.directory != nil || !isSystems && options.owner != 0
            ? .service : options.owner == 0 ? .root : .somebody
        return HostEnvironment(
            of: Configuration(pipelines: [definition]),
            reader == .root ? Credentials(directory: "/run/credentials/freshetd.service") : handed,
            readBy: reader, Supervisor.trust(options))
    }

    private struct Refused: Error {
        var exit: DaemonExit
    }

    private func values(for definition: PipelineDefinition) -> Result<ParameterValues, Refused> {
        var changes: [ParameterChange] = []
        for setting in request.settings {
            guard let equals = setting.firstIndex(of: "="), equals > setting.startIndex else {
                return .failure(Refused(exit: fail("--set wants NAME=VALUE", .usage)))
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

    /// Where the daemon whose configuration it is keeps its copies: of the system's configuration that is the system's,
    /// whoever asks.
    private func cacheDirectory() throws(ServiceDirectoriesError) -> String {
        if let directory = options.cacheDirectory { return directory }
        return try ServiceDirectories(
            name: "freshet", environment: options.environment, userID: isSystems ? 0 : options.owner
        ).cache
    }

    /// Whether it is the configuration of the system's daemon.
    private var isSystems: Bool { Supervisor.searchPath(options).isSystems }

    // MARK: What came of it

    private func tell(
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
        return request.tellsChange && report.outcome == .changed ? .wouldChange : .success
    }

    /// Nil: there is none.
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

    /// Writes the content where it was asked for, but never over the copy that readers see.
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
            return fail("'\(output)' is the current copy, which a dry run leaves as it is") == .success
        }
        // A device or a pipe has no length, and keeps nothing of what was there.
        if own.st_mode & S_IFMT == S_IFREG, ftruncate(file.rawValue, 0) != 0 {
            return fail("cannot write '\(output)': \(String(cString: strerror(errno)))") == .success
        }
        guard StandardStream.write(bytes[...], to: file.rawValue) else {
            return fail("cannot write '\(output)': \(String(cString: strerror(errno)))") == .success
        }
        return true
    }

    // MARK: Words

    /// What is said of the result: beside the content where that goes to standard output.
    ///
    /// - Returns: false if that is the answer that was asked for, and could not be written.
    private func show(_ text: String) -> Bool {
        guard request.output == "-" else { return StandardStream.answer(text) }
        StandardStream.write(text, to: STDERR_FILENO)
        return true
    }

    /// It did not come to a snapshot, or to nothing to compare it with.
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

    /// Nothing runs: there is no such pipeline, or its files have faults.
    private func refuse(_ configuration: Configuration) -> DaemonExit {
        if let diagnostics = configuration.faulty[request.name] { return refuse(diagnostics) }
        let names = configuration.pipelines.map(\.name) + configuration.faulty.keys
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

    /// What is doubtful in the pipeline's own files.
    private func warn(_ configuration: Configuration) {
        guard !request.isQuiet else { return }
        let files = Set(configuration.files[request.name] ?? [])
        for diagnostic in configuration.diagnostics where files.contains(diagnostic.file) {
            StandardStream.write(diagnostic.text() + "\n", to: STDERR_FILENO)
        }
    }
}

/// Names that are no pipeline's.
enum UnknownPipelines {
    /// Says so, with what was perhaps meant.
    static func sentence(_ names: [String], among known: [String]) -> String {
        names.map { name in
            let meant = NameSuggestion.closest(to: name, among: known.sorted()).map { "; did you mean '\($0)'?" }
            return "there is no pipeline '\(name)'" + (meant ?? "")
        }.joined(separator: ", ")
    }
}

extension Configuration {
    fileprivate func definition(_ name: String) -> PipelineDefinition? { pipelines.first { $0.name == name } }
}
