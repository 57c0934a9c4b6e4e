import FreshetConfiguration
import FreshetControl
package import FreshetEventLoop
import FreshetJQ
import FreshetPipelines
import FreshetSystemd
import Glibc
import Logging

/// What `freshetd`'s main file calls: the process, its log, and the daemon's life.
package enum DaemonEntry {
    package static let version = Version.current

    package static func isLogLevel(_ text: String) -> Bool { Logger.Level(rawValue: text) != nil }

    /// The environment of this process.
    package static func environment() -> [String: String] {
        var result: [String: String] = [:]
        var entry = environ
        while let pointer = entry.pointee {
            let text = String(cString: pointer)
            if let equals = text.firstIndex(of: "=") {
                result[String(text[..<equals])] = String(text[text.index(after: equals)...])
            }
            entry += 1
        }
        return result
    }

    /// To be called before any thread is started: the signals that the daemon hears as events are blocked, and a peer
    /// that closes its end is an error of write(2) and no death.
    package static func prepareProcess() {
        SignalDescriptor.block([SIGHUP, SIGTERM, SIGINT] + (OrphanReaper.isNeeded ? [SIGCHLD] : []))
        signal(SIGPIPE, SIG_IGN)
        umask(0o022)
    }

    /// Names all faults of the configuration, its jq programs included: on standard error, or with `json` on standard
    /// output as the control interface's diagnostics.
    package static func check(_ options: DaemonOptions, json: Bool) -> DaemonExit {
        let loader = Supervisor.loader(options)
        var configuration = loader.load()
        var verdicts: [ProgramText: String?] = [:]
        var faults: [ProgramError] = []
        for definition in configuration.pipelines {
            for program in Set(definition.programs).sorted(by: { $0.text < $1.text }) {
                let verdict = verdicts[program] ?? JQSyntax.fault(in: program.text, variables: program.variables)
                verdicts[program] = .some(verdict)
                guard let verdict else { continue }
                faults.append(ProgramError(pipeline: definition.name, program: program.text, message: verdict))
            }
        }
        configuration = loader.refusing(faults, in: configuration)
        // What the service is started with is not known here for certain, so that none of it is an error.
        let surroundings = HostEnvironment(
            checking: configuration, environment: options.environment, isRoot: options.owner == 0,
            PathTrust(
                user: getpwnam("freshet")?.pointee.pw_uid, isPersonal: !Supervisor.isSystemService(options)))
        configuration = loader.noting(surroundings.faults + surroundings.warnings, as: .warning, in: configuration)
        if json {
            let diagnostics = configuration.diagnostics.map(ConfigurationDiagnostic.init)
            let text = ControlJSON.text(of: ControlMessage.Diagnostics(diagnostics: diagnostics))
            let isWritten = StandardStream.answer(text + "\n")
            return !configuration.isSound ? .configuration : isWritten ? .success : .failure
        }
        var text = ""
        for diagnostic in configuration.diagnostics { text += diagnostic.text() + "\n" }
        let errors = configuration.diagnostics.count { $0.severity == .error }
        guard errors == 0 else {
            StandardStream.write("\(text)\(errors) \(errors == 1 ? "fault" : "faults")\n", to: STDERR_FILENO)
            return .configuration
        }
        let count = configuration.pipelines.count
        // Of nothing it is to be seen where it was looked for.
        text +=
            count == 0
            ? "0 pipelines in \(PlainText.escaping(loader.searchPath.text)); no faults\n"
            : "\(count) \(count == 1 ? "pipeline" : "pipelines"), no faults\n"
        text += polkitRule(for: configuration, options)
        return StandardStream.answer(text) ? .success : .failure
    }

    /// What an administrator has to allow, where hooks reload units; empty: nothing.
    private static func polkitRule(for configuration: Configuration, _ options: DaemonOptions) -> String {
        let units = Set(configuration.pipelines.flatMap { $0.hooks.compactMap(\.unit) }).sorted()
        guard !units.isEmpty, Supervisor.isSystemService(options) else { return "" }
        let rule = Polkit.rule(for: units, user: "freshet")
        return
            "hooks reload \(units.joined(separator: ", ")): they may if /etc/polkit-1/rules.d/50-freshet.rules has\n\(rule)\n"
    }

    /// The daemon's life on its loop.
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
            // They look after all children of the process, which has this one loop.
            let orphans: any Sendable = try OrphanReaper.isNeeded ? OrphanReaper(loop) : StrayProcessKiller(loop)
            defer { withExtendedLifetime(orphans) {} }
            return try await Supervisor(
                options: options, loop: loop, log: log, threshold: threshold, redactor: redactor
            ).run()
        } catch {
            log.say(.cannotStart, [.error: .string("\(error)")])
            return .failure
        }
    }
}

enum StandardStream {
    /// Writes what was asked for to standard output. Whoever keeps it has to know if that is not all of it, which is said
    /// on standard error.
    ///
    /// - Returns: false if it did not take all.
    static func answer(_ text: String) -> Bool { answer(Array(text.utf8)[...]) }

    static func answer(_ bytes: ArraySlice<UInt8>) -> Bool {
        if write(bytes, to: STDOUT_FILENO) { return true }
        write("freshetd: cannot write the output: \(String(cString: strerror(errno)))\n", to: STDERR_FILENO)
        return false
    }

    /// Writes all of a text, or what the reader takes of it.
    static func write(_ text: String, to descriptor: Int32) {
        _ = write(Array(text.utf8)[...], to: descriptor)
    }

    /// Writes all of the bytes, or what the reader takes of them.
    ///
    /// - Returns: false, and `errno`, if it did not take all.
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
