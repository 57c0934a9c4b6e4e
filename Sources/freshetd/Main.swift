import ArgumentParser
import FreshetDaemon
import FreshetEventLoop
import FreshetJQ
import FreshetReplay
import FreshetUnpack
import Glibc

@main
struct Main {
    static func main() {
        StandardDescriptors.occupy()
        // The daemon's memory contains credentials, and that of the helpers contains responses of origins.
        ProcessInspection.forbid()
        // The helper processes are the same binary, and do not use the following code.
        switch CommandLine.arguments.dropFirst().first {
        case JQHelper.argument: JQHelper.main()
        case UnpackHelper.argument: UnpackHelper.main()
        default: break
        }
        ProcessMemory.keepLittle()
        // The unit has no arguments, and to set up the parser would be a tenth of the start.
        if CommandLine.arguments.count == 1 { exit(service().rawValue) }
        do {
            var command = try FreshetDaemonCommand.parseAsRoot()
            try command.run()
        } catch let status as ExitCode {
            // For an error, the parser makes the text of the help first, which takes longer than to read a file.
            exit(status.rawValue)
        } catch {
            let message = FreshetDaemonCommand.fullMessage(for: error)
            let status = FreshetDaemonCommand.exitCode(for: error)
            guard !status.isSuccess, !message.isEmpty else { FreshetDaemonCommand.exit(withError: error) }
            // The parser quotes the arguments as they are.
            DaemonEntry.printUsageError(message)
            exit(status.rawValue)
        }
    }

    /// Runs the daemon with its default options.
    private static func service() -> DaemonExit {
        var options = DaemonOptions()
        options.environment = ProcessEnvironment.variables()
        if let failure = DaemonEntry.dropRoot(&options, for: .service) { return failure }
        do {
            return try run { [options] loop in await DaemonEntry.run(options, on: loop) }
        } catch {
            DaemonEntry.printUsageError("freshetd: cannot start: \(error)")
            return .failure
        }
    }

    /// Runs an asynchronous function on the event loop of the process.
    fileprivate static func run(
        _ body: @escaping @Sendable (EventLoop) async -> DaemonExit
    ) throws(SystemCallError) -> DaemonExit {
        DaemonEntry.prepareProcess()
        let loop = try LoopExecutors.install()
        let status = ExitStatus()
        Task {
            status.value = await body(loop)
            loop.stop()
        }
        loop.run()
        return status.value
    }
}

/// The command line of `freshetd`.
struct FreshetDaemonCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "freshetd",
        abstract: "Keep local copies of remote data fresh.",
        discussion: """
            The directories are those in systemd's variables, such as STATE_DIRECTORY; otherwise the system's \
            directories for root and the XDG base directories for other users. Control freshetd with freshetctl.
            """,
        version: DaemonEntry.version)

    @Option(
        name: .customLong("config-dir"),
        help: "Read the configuration from this directory; may be repeated, the first one takes precedence.")
    var configurationDirectories: [String] = []
    @Option(name: .customLong("state-dir"), help: "Keep the index in this directory.")
    var stateDirectory: String?
    @Option(name: .customLong("cache-dir"), help: "Keep the copies in this directory; readers open DIR/current/FILE.")
    var cacheDirectory: String?
    @Option(name: .customLong("runtime-dir"), help: "Create the control socket in this directory.")
    var runtimeDirectory: String?
    @Option(name: .customLong("socket"), help: "Use this path for the control socket.")
    var socket: String?
    @Option(
        name: .customLong("log-level"),
        help: "Set the log level: trace, debug, info, notice, warning, error or critical.")
    var logLevel: String = "info"
    @Flag(
        name: .customLong("check"),
        help: "Print all errors of the configuration, and exit with 0, or with 78 if there are errors.")
    var check = false
    @Flag(
        name: .customLong("polkit"),
        help: """
            With --check: print the polkit rule by which the hooks of all or of the named pipelines may reload their \
            units, instead of warnings.
            """)
    var polkit = false
    @Option(
        name: .customLong("user"),
        help: "If root starts freshetd: run as this user (default: the owner of the state directory, or freshet).")
    var user: String?
    @Option(
        name: .customLong("instead"), parsing: .singleValue,
        help: ArgumentHelp(
            "With --check: read a configuration file, which need not exist yet, from a copy.",
            valueName: "file=copy"))
    var copies: [String] = []
    @Flag(
        name: .customLong("cat"),
        help: "Print the configuration files that take effect, of all or of the named pipelines, and exit.")
    var cat = false
    @Option(
        name: .customLong("dry-run"),
        help: ArgumentHelp(
            "Run one pipeline without the daemon, print what would change, commit nothing, and exit.",
            valueName: "pipeline"))
    var dryRun: String?
    @Option(
        name: .customLong("set"), parsing: .singleValue,
        help: ArgumentHelp("With --dry-run: set a parameter.", valueName: "name=value"))
    var settings: [String] = []
    @Option(
        name: .shortAndLong,
        help: ArgumentHelp(
            "With --dry-run: write the content to this file, or to standard output for '-'.", valueName: "file"))
    var output: String?
    @Flag(
        name: .customLong("fsck"),
        help: "Examine the cache while no daemon runs, and exit with 0, or with 1 if errors are left.")
    var fsck = false
    @Flag(name: .customLong("repair"), help: "With --fsck: repair what can be repaired.")
    var repair = false
    @Flag(name: .customLong("detailed-exitcode"), help: "With --dry-run: exit with 2 if the copy would change.")
    var detailedExitCode = false
    @Flag(name: .shortAndLong, help: "With --dry-run and --fsck: print only errors.")
    var quiet = false
    @Option(
        name: .customLong("replay"),
        help: ArgumentHelp(
            "Show what would have run with this configuration in the time of a recording, and exit.",
            valueName: "file"))
    var replay: String?
    @Flag(name: .customLong("json"), help: "With --check, --cat, --dry-run, --fsck and --replay: print JSON.")
    var json = false
    @Option(
        name: .customLong("fleet"),
        help: ArgumentHelp(
            """
            Manage a fleet and exit: setup creates its buckets, doctor examines them, key shows a public key, \
            accounts prints accounts for nats-server, status prints its state as JSON, refresh demands a check of a pipeline, halt and resume are for its roll-out.
            """,
            valueName: "action"))
    var fleet: FleetAction?
    @Option(
        name: .customLong("seed"),
        help: ArgumentHelp("With --fleet: use the NKEY seed in this file.", valueName: "file"))
    var seed: String?
    @Flag(name: .customLong("new"), help: "With --fleet key: write a new seed to the file, which must not exist.")
    var new = false
    @Flag(name: .customLong("yes"), help: "With --fleet setup: do not ask.")
    var yes = false
    @Option(
        name: .customLong("replicas"),
        help: ArgumentHelp("With --fleet setup: keep each bucket on 1, 3 or 5 servers.", valueName: "count"))
    var replicas = 1
    @Flag(
        name: .customLong("mirror"),
        help: """
            With --fleet setup: create the mirror of this site instead of the buckets. With --leaf: the leaf node has \
            one.
            """)
    var mirror = false
    @Option(
        name: .customLong("domain"),
        help: ArgumentHelp(
            "With --fleet accounts: the domain of JetStream that has the buckets, for sites.", valueName: "name"))
    var domain: String?
    @Flag(name: .customLong("leaf"), help: "With --fleet accounts: the server is a leaf node of the domain.")
    var leaf = false
    @Flag(
        name: .customLong("once"),
        help: """
            Run all or the named pipelines once, and exit with 0, with 1 if a pipeline failed, with 75 if an origin or \
            a budget permits no request yet, or with 78 if a pipeline is invalid.
            """)
    var once = false
    @Argument(
        help: ArgumentHelp("With --once, --cat, --polkit and --fleet: use only these pipelines.", valueName: "pipeline")
    )
    var names: [String] = []

    func validate() throws {
        guard [check, once, dryRun != nil, fsck, cat, fleet != nil, replay != nil].count(where: { $0 }) <= 1 else {
            throw ValidationError("use only one of --check, --cat, --once, --dry-run, --fsck, --fleet and --replay")
        }
        if fleet == nil {
            guard seed == nil, !new, !yes, replicas == 1 else {
                throw ValidationError("--seed, --new, --yes and --replicas need --fleet")
            }
        }
        guard fleet == .accounts || domain == nil && !leaf else {
            throw ValidationError("--domain and --leaf need --fleet accounts")
        }
        guard !leaf || domain != nil else { throw ValidationError("--leaf needs --domain NAME") }
        // It becomes a part of the server's configuration.
        if let name = domain,
            name.isEmpty || !name.allSatisfy({ $0.isASCII && ($0.isLetter || $0.isNumber || "-_".contains($0)) })
        {
            throw ValidationError("the name of a domain has to be letters, digits, '-' and '_', not '\(name)'")
        }
        guard !mirror || fleet == .setup || leaf else {
            throw ValidationError("--mirror needs --fleet setup, or --leaf")
        }
        guard !new || fleet == .key else { throw ValidationError("--new needs --fleet key") }
        guard fleet != .key || seed != nil else { throw ValidationError("--fleet key needs --seed FILE") }
        guard [1, 3, 5].contains(replicas) else { throw ValidationError("--replicas has to be 1, 3 or 5") }
        guard !polkit || check && !json else { throw ValidationError("--polkit needs --check, and excludes --json") }
        if let name = names.first, !once, !cat, !polkit, !(fleet?.needsPipeline ?? false), fleet != .status,
            fleet != .accounts
        {
            throw ValidationError(
                "unexpected argument '\(name)'; only --once, --cat, --polkit and some actions of --fleet accept names "
                    + "of pipelines")
        }
        guard !(fleet?.needsPipeline ?? false) || names.count == 1 else {
            throw ValidationError("--fleet \(fleet?.rawValue ?? "") needs the name of one pipeline")
        }
        guard check || copies.isEmpty else { throw ValidationError("--instead needs --check") }
        for copy in copies where copy.split(separator: "=", maxSplits: 1).count != 2 {
            throw ValidationError("--instead needs FILE=COPY, not '\(copy)'")
        }
        if dryRun == nil {
            guard settings.isEmpty, output == nil, !detailedExitCode, !quiet || fsck else {
                throw ValidationError("--set, --output, --detailed-exitcode and --quiet need --dry-run")
            }
        }
        guard fsck || !repair else { throw ValidationError("--repair needs --fsck") }
        guard DaemonEntry.isLogLevel(logLevel) else {
            throw ValidationError(
                "'\(logLevel)' is not a log level; use trace, debug, info, notice, warning, error or critical")
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
        options.environment = ProcessEnvironment.variables()
        for copy in copies {
            let parts = copy.split(separator: "=", maxSplits: 1).map(String.init)
            if parts.count == 2 { options.copies[parts[0]] = parts[1] }
        }
        if fleet == .accounts {
            throw ExitCode(
                (FleetActionRequest.printAccounts(names, domain: domain, isLeaf: leaf, hasMirror: mirror)
                    ? DaemonExit.success : .failure).rawValue)
        }
        var fleetRequest: FleetActionRequest?
        if let fleet {
            // The file of the seed may be readable by root only.
            guard var request = FleetActionRequest.make(fleet, seed: seed, isNew: new) else {
                throw ExitCode(DaemonExit.failure.rawValue)
            }
            (request.isConfirmed, request.replicas, request.pipelines) = (yes, UInt32(replicas), names)
            request.isForMirror = mirror
            fleetRequest = request
        }
        if fleet == .key { throw ExitCode(DaemonExit.success.rawValue) }
        // A recording may be readable by root only.
        var replayRequest = replay.map(ReplayRequest.init(file:))
        replayRequest?.json = json
        if check, !polkit { options.preparePolkitAuthority() }
        if let failure = DaemonEntry.dropRoot(&options, for: work) { throw ExitCode(failure.rawValue) }
        if polkit { throw ExitCode(DaemonEntry.printPolkitRule(names, options).rawValue) }
        if check { throw ExitCode(DaemonEntry.check(options, json: json).rawValue) }
        if cat { throw ExitCode(DaemonEntry.cat(names, options, json: json).rawValue) }
        if fsck { throw ExitCode(DaemonEntry.examine(examinationRequest, options).rawValue) }
        if let replayRequest { throw ExitCode(Self.perform(replayRequest, options).rawValue) }

        let request = dryRunRequest
        let status: DaemonExit
        do {
            status = try Main.run { [fleetRequest, options] loop in
                if let fleetRequest {
                    await DaemonEntry.manageFleet(fleetRequest, options, on: loop)
                } else if let request {
                    await DaemonEntry.dryRun(request, options, on: loop)
                } else {
                    await DaemonEntry.run(options, on: loop)
                }
            }
        } catch {
            throw ValidationError("cannot start: \(error)")
        }
        throw ExitCode(status.rawValue)
    }

    /// A replay has its own executor, whose clock is the recording's, and needs no event loop.
    private static func perform(_ request: ReplayRequest, _ options: DaemonOptions) -> DaemonExit {
        let executor = ReplayExecutor()
        let status = ExitStatus()
        Task(executorPreference: executor) {
            status.value = await DaemonEntry.replay(request, options, on: executor)
        }
        executor.run()
        return status.value
    }

    private var work: DaemonEntry.Work {
        if fsck {
            .examination
        } else if check || cat || dryRun != nil || fleet != nil || replay != nil {
            .reading
        } else {
            .service
        }
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
        request.usesDetailedExit = detailedExitCode
        return request
    }
}

/// The exit status of the daemon.
///
/// `@unchecked Sendable`: written by the task on the loop's thread, and read there after the loop has returned.
private final class ExitStatus: @unchecked Sendable {
    var value = DaemonExit.failure
}

extension FleetAction: ExpressibleByArgument {}
