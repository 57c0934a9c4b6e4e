import FreshetConfiguration
import FreshetControl
import FreshetEmitters
package import FreshetEventLoop
import FreshetHelper
import FreshetJQ
import FreshetPipelines
import FreshetSystemd
import Glibc
import Logging

/// The functions that the main file of `freshetd` calls.
package enum DaemonEntry {
    package static let version = Version.current

    /// Prints the lines of a message about the command line, without effects on a terminal.
    package static func printUsageError(_ message: String) {
        let lines = message.split(separator: "\n", omittingEmptySubsequences: false)
        StandardStream.write(
            lines.map { PlainText.escaping(String($0)) + "\n" }.joined(), to: STDERR_FILENO)
    }

    package static func isLogLevel(_ text: String) -> Bool { Logger.Level(rawValue: text) != nil }

    /// Blocks the process signals that the daemon receives as events, and ignores SIGPIPE, so that a peer that closes
    /// its end causes an error of write(2). Call it before any thread starts.
    package static func prepareProcess() {
        SignalDescriptor.block([SIGHUP, SIGTERM, SIGINT] + (OrphanReaper.isNeeded ? [SIGCHLD] : []))
        signal(SIGPIPE, SIG_IGN)
        umask(0o022)
    }

    /// Prints all errors of the configuration, including its jq programs: on standard error, or with `json` on standard
    /// output as diagnostics of the control interface.
    package static func check(_ options: DaemonOptions, json: Bool) -> DaemonExit {
        let loader = ConfigurationLocation.loader(options)
        var configuration = loader.load()
        var compileErrors: [ProgramText: String?] = [:]
        var errors: [ProgramError] = []
        for definition in configuration.pipelines {
            for program in Set(definition.programs).sorted(by: { $0.text < $1.text }) {
                let compileError =
                    compileErrors[program] ?? JQSyntax.error(in: program.text, variables: program.variables)
                compileErrors[program] = .some(compileError)
                guard let compileError else { continue }
                errors.append(ProgramError(pipeline: definition.name, program: program.text, message: compileError))
            }
        }
        configuration = loader.addingProgramErrors(errors, in: configuration)
        configuration = addingTemplateErrors(in: configuration, loader)
        // A restart can change the environment of the service, so problems with it are only warnings.
        let needsService = configuration.pipelines.contains {
            $0.cache.group != nil || !$0.credentials.isEmpty
        }
        let service =
            needsService || ReloadRights.areNeeded(by: configuration) ? ServiceProcess.find(options) : .missing("")
        let hostEnvironment = HostEnvironment(
            checking: configuration, environment: options.environment, isRoot: options.owner == 0, service: service,
            PathTrust(
                user: service.process?.user ?? getpwnam("freshet")?.pointee.pw_uid,
                isPersonal: !options.isSystemService))
        let rights = ReloadRights(of: configuration, service, options)
        let notChecked = hostEnvironment.notChecked(service, options) + rights.notChecked
        configuration = loader.adding(
            hostEnvironment.errors + hostEnvironment.warnings + rights.warnings + unpackWarnings(configuration),
            as: .warning, in: configuration)
        if json {
            let diagnostics = configuration.diagnostics.map(ConfigurationDiagnostic.init)
            let report = CheckReport(diagnostics: diagnostics, notChecked: notChecked.isEmpty ? nil : notChecked)
            let text = ControlJSON.text(of: report)
            let isWritten = StandardStream.answer(text + "\n")
            return !configuration.isValid ? .configuration : isWritten ? .success : .failure
        }
        var text = ""
        for diagnostic in configuration.diagnostics { text += diagnostic.text() + "\n" }
        for subject in notChecked { text += "not checked: \(PlainText.escaping(subject))\n" }
        let errorCount = configuration.diagnostics.count { $0.severity == .error }
        let warningCount = configuration.diagnostics.count - errorCount
        guard errorCount == 0 else {
            StandardStream.write("\(text)\(errorCount) \(errorCount == 1 ? "error" : "errors")\n", to: STDERR_FILENO)
            return .configuration
        }
        let count = configuration.pipelines.count
        let result = "no errors" + (warningCount == 0 ? "" : ", \(warningCount) warning\(warningCount == 1 ? "" : "s")")
        // If there is no pipeline, the message names the search path.
        text +=
            count == 0
            ? "0 pipelines in \(PlainText.escaping(loader.searchPath.text)); \(result)\n"
            : "\(count) \(count == 1 ? "pipeline" : "pipelines"), \(result)\n"
        return StandardStream.answer(text) ? .success : .failure
    }

    /// The configuration with the errors of its templates, which a helper parses; or, without the program of the
    /// helper, with an error for each template. Blocks.
    static func addingTemplateErrors(
        in configuration: Configuration, _ loader: ConfigurationLoader
    ) -> Configuration {
        let templates = configuration.pipelines.compactMap { definition in
            definition.template.map { (definition.name, $0) }
        }
        guard !templates.isEmpty else { return configuration }
        if let problem = TemplateProgram.problem() {
            return loader.adding(
                templates.map {
                    HostEnvironmentError(
                        pipeline: $0.0, keys: ["transform", "template"], message: problem.message,
                        remedy: problem.remedy)
                }, as: .error, in: configuration)
        }
        let errors = templates.compactMap { name, template in
            TemplateSyntax.error(in: template).map { TemplateProblem(pipeline: name, template, $0) }
        }
        return loader.addingTemplateErrors(errors, in: configuration)
    }

    /// A warning for each source whose answer this machine cannot unpack.
    private static func unpackWarnings(_ configuration: Configuration) -> [HostEnvironmentError] {
        configuration.pipelines.flatMap { definition in
            definition.unpackRules.compactMap { keys, rule in
                UnpackLibrary.problem(with: rule).map {
                    HostEnvironmentError(
                        pipeline: definition.name, keys: keys,
                        message: "answers cannot be unpacked: \($0.message)", remedy: $0.remedy)
                }
            }
        }
    }

    /// Runs the daemon on its event loop until the daemon ends.
    package static func run(_ options: DaemonOptions, on loop: EventLoop) async -> DaemonExit {
        let destination = LogDestination.detect(environment: options.environment)
        let threshold = LogThreshold(Logger.Level(rawValue: options.logLevel) ?? .info)
        let redactor = Redactor()
        let handler = JournalLogHandler(
            label: "freshetd", identifier: "freshetd", destination: destination, threshold: threshold,
            loss: JournalLogHandler.LostEntriesReport(
                message: JournalMessage.lost.text.description, messageID: JournalMessage.lost.rawValue),
            redactor: redactor)
        defer { handler.flush(for: .seconds(1)) }
        let log = Logger(label: "freshetd") { _ in handler }
        do {
            // These objects reap or kill orphaned children of the whole process, which has only this loop.
            let orphans: any Sendable = try OrphanReaper.isNeeded ? OrphanReaper(loop) : StrayProcessKiller(loop)
            defer { withExtendedLifetime(orphans) {} }
            return try await Daemon(
                options: options, loop: loop, log: log, threshold: threshold, redactor: redactor
            ).run()
        } catch {
            log.log(.cannotStart, [.error: .string("\(error)")])
            return .failure
        }
    }
}

extension TemplateProblem {
    init(pipeline: String, _ template: TemplateDefinition, _ message: TemplateMessage) {
        self.init(
            pipeline: pipeline, file: template.file, line: message.line, column: message.column,
            message: message.message)
    }
}

/// The JSON of `--check`.
private struct CheckReport: Encodable {
    var diagnostics: [ConfigurationDiagnostic]
    /// What the process could not see, with the reasons; nil: it saw everything.
    var notChecked: [String]?
}

extension HostEnvironment {
    /// What a process outside the service could not see, and why, as sentences.
    fileprivate func notChecked(_ service: ServiceProcess.Search, _ options: DaemonOptions) -> [String] {
        func listed(_ names: Set<String>, _ singular: String) -> String {
            "\(singular)\(names.count == 1 ? "" : "s") " + names.sorted().map { "'\($0)'" }.joined(separator: ", ")
        }
        var sentences: [String] = []
        if !uncheckedCredentials.isEmpty {
            var reason = "only the service sees its credentials"
            if case .missing(let why) = service, options.owner == 0 {
                reason = why
            } else if options.owner != 0, options.checksSystemService {
                reason += "; as root, this check sees them too"
            }
            sentences.append("\(listed(uncheckedCredentials, "the credential")): \(reason)")
        }
        if case .missing(let why) = service, !uncheckedGroups.isEmpty {
            sentences.append("whether the service's user is in \(listed(uncheckedGroups, "the group")): \(why)")
        }
        return sentences
    }
}

enum StandardStream {
    /// Writes the requested output to standard output. If standard output does not take everything, it writes an error
    /// message to standard error, because a program that stores the output has to know.
    ///
    /// - Returns: false if standard output did not take everything.
    static func answer(_ text: String) -> Bool { answer(Array(text.utf8)[...]) }

    static func answer(_ bytes: ArraySlice<UInt8>) -> Bool {
        if write(bytes, to: STDOUT_FILENO) { return true }
        write("freshetd: cannot write the output: \(String(cString: strerror(errno)))\n", to: STDERR_FILENO)
        return false
    }

    /// Writes a text; stops without an error if the reader goes away.
    static func write(_ text: String, to descriptor: Int32) {
        _ = write(Array(text.utf8)[...], to: descriptor)
    }

    /// Writes bytes until all are written or write(2) fails.
    ///
    /// - Returns: false if write(2) failed; `errno` has the reason.
    static func write(_ bytes: ArraySlice<UInt8>, to descriptor: Int32) -> Bool {
        var rest = bytes
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            if count < 0 && errno == EINTR { continue }
            guard count > 0 else { return false }
            rest = rest.dropFirst(count)
        }
        return true
    }
}
