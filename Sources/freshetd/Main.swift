import ArgumentParser
import FreshetDaemon
import FreshetEventLoop
import FreshetJQ
import Glibc

@main
struct Main {
    static func main() {
        StandardDescriptors.occupy()
        // The daemon holds credentials, and the jq helper what origins sent.
        ProcessInspection.forbid()
        // The helper process for jq is this very binary; it needs nothing of the rest.
        if CommandLine.arguments.dropFirst().first == JQHelper.argument { JQHelper.main() }
        ProcessMemory.returnLargeBlocks()
        FreshetDaemonCommand.main()
    }
}

/// The command line of `freshetd`.
struct FreshetDaemonCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "freshetd",
        abstract: "Keeps local copies of remote data fresh.",
        discussion: """
            Directories are those that systemd names (STATE_DIRECTORY and its like), else those of the system for root \
            and of the XDG base directories for others. Talk to it with freshetctl.
            """,
        version: DaemonEntry.version)

    @Option(
        name: .customLong("config-dir"), help: "A configuration directory; may be repeated, the first is the highest.")
    var configurationDirectories: [String] = []
    @Option(name: .customLong("state-dir"), help: "Where the index is kept.")
    var stateDirectory: String?
    @Option(name: .customLong("cache-dir"), help: "Where the copies are; people read DIR/current/FILE.")
    var cacheDirectory: String?
    @Option(name: .customLong("runtime-dir"), help: "Where the control socket is made.")
    var runtimeDirectory: String?
    @Option(name: .customLong("socket"), help: "The control socket itself.")
    var socket: String?
    @Option(name: .customLong("log-level"), help: "trace, debug, info, notice, warning, error or critical.")
    var logLevel: String = "info"
    @Flag(name: .customLong("check"), help: "Name all faults of the configuration, and end: 0, or 78 if there are any.")
    var check = false
    @Option(
        name: .customLong("user"),
        help: "As root: become this user. By default the owner of the state directory, else freshet.")
    var user: String?
    @Option(
        name: .customLong("instead"), parsing: .singleValue,
        help: ArgumentHelp(
            "With --check: read a file of the configuration, which may not be there yet, from a copy.",
            valueName: "file=copy"))
    var copies: [String] = []
    @Flag(
        name: .customLong("cat"),
        help: "Print the files of the configuration that count, of all or of the named pipelines, and end.")
    var cat = false
    @Option(
        name: .customLong("dry-run"),
        help: ArgumentHelp(
            "Run one pipeline beside the daemon, print what would change, commit nothing, and end.",
            valueName: "pipeline"))
    var dryRun: String?
    @Option(
        name: .customLong("set"), parsing: .singleValue,
        help: ArgumentHelp("With --dry-run: a parameter's value.", valueName: "name=value"))
    var settings: [String] = []
    @Option(
        name: .shortAndLong,
        help: ArgumentHelp("With --dry-run: where the content goes; - is standard output.", valueName: "file"))
    var output: String?
    @Flag(
        name: .customLong("fsck"),
        help: "Examine the cache of a daemon that does not run, and end: 0, or 1 if there are faults.")
    var fsck = false
    @Flag(name: .customLong("repair"), help: "With --fsck: repair what can be repaired.")
    var repair = false
    @Flag(name: .customLong("detailed-exitcode"), help: "With --dry-run: end with 2 if the copy would change.")
    var detailedExitCode = false
    @Flag(name: .shortAndLong, help: "With --dry-run and --fsck: say nothing but errors.")
    var quiet = false
    @Flag(name: .customLong("json"), help: "With --check, --cat, --dry-run and --fsck: print JSON.")
    var json = false
    @Flag(
        name: .customLong("once"),
        help: """
            Run every pipeline once, or those that are named, and end: 0, 1 if one failed, 75 if an origin or a budget \
            asks for patience, 78 if one is faulty.
            """)
    var once = false
    @Argument(help: ArgumentHelp("With --once and --cat: the pipelines.", valueName: "pipeline"))
    var names: [String] = []

    func validate() throws {
        guard [check, once, dryRun != nil, fsck, cat].count(where: { $0 }) <= 1 else {
            throw ValidationError("--check, --cat, --once, --dry-run and --fsck exclude each other")
        }
        if let name = names.first, !once, !cat {
            throw ValidationError("'\(name)' is one argument too many; names of pipelines belong to --once and --cat")
        }
        guard check || copies.isEmpty else { throw ValidationError("--instead belongs to --check") }
        for copy in copies where copy.split(separator: "=", maxSplits: 1).count != 2 {
            throw ValidationError("--instead wants FILE=COPY, and not '\(copy)'")
        }
        if dryRun == nil {
            guard settings.isEmpty, output == nil, !detailedExitCode, !quiet || fsck else {
                throw ValidationError("--set, --output, --detailed-exitcode and --quiet belong to --dry-run")
            }
        }
        guard fsck || !repair else { throw ValidationError("--repair belongs to --fsck") }
        guard DaemonEntry.isLogLevel(logLevel) else {
            throw ValidationError(
                "'\(logLevel)' is no log level; use trace, debug, info, notice, warning, error or critical")
        }
    }

    func run() throws {
        var options = DaemonOptions()
        options.configurationDirectories = configurationDirectories
        options.stateDirectory = stateDirectory.map(DaemonOptions.absolute)
        options.cacheDirectory = cacheDirectory.map(DaemonOptions.absolute)
        options.runtimeDirectory = runtimeDirectory.map(DaemonOptions.absolute)
        options.socket = socket
        options.once = once
        options.onceNames = names
        options.logLevel = logLevel
        options.user = user
        options.environment = DaemonEntry.environment()
        for copy in copies {
            let parts = copy.split(separator: "=", maxSplits: 1).map(String.init)
            if parts.count == 2 { options.copies[parts[0]] = parts[1] }
        }
        if let failure = DaemonEntry.leaveRoot(&options, for: work) { throw ExitCode(failure.rawValue) }
        if check { throw ExitCode(DaemonEntry.check(options, json: json).rawValue) }
        if cat { throw ExitCode(DaemonEntry.cat(names, options, json: json).rawValue) }
        if fsck { throw ExitCode(DaemonEntry.examine(examinationRequest, options).rawValue) }

        DaemonEntry.prepareProcess()
        let loop: EventLoop
        do {
            loop = try LoopExecutors.install()
        } catch {
            throw ValidationError("cannot start: \(error)")
        }
        let status = ExitStatus()
        let request = dryRunRequest
        Task {
            status.value =
                if let request {
                    await DaemonEntry.dryRun(request, options, on: loop)
                } else {
                    await DaemonEntry.run(options, on: loop)
                }
            loop.stop()
        }
        loop.run()
        throw ExitCode(status.value.rawValue)
    }

    private var work: DaemonEntry.Work {
        if fsck { .examination } else if check || cat || dryRun != nil { .reading } else { .service }
    }

    private var examinationRequest: ExaminationRequest {
        var request = ExaminationRequest()
        request.repairs = repair
        request.json = json
        request.isQuiet = quiet
        return request
    }

    private var dryRunRequest: DryRunRequest? {
        guard let dryRun else { return nil }
        var request = DryRunRequest(name: dryRun)
        request.settings = settings
        request.output = output
        request.json = json
        request.isQuiet = quiet
        request.tellsChange = detailedExitCode
        return request
    }
}

/// How the daemon ended.
///
/// `@unchecked Sendable`: written by the task on the loop's thread, and read there after the loop has returned.
private final class ExitStatus: @unchecked Sendable {
    var value = DaemonExit.failure
}
