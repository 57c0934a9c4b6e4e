import ArgumentParser
import FreshetControl
import FreshetRender

/// A verb of `freshetctl`: one file each in `Verbs`.
protocol Verb: ParsableCommand {
    var options: GlobalOptions { get }
    func run(_ session: Session) throws(CommandFailure)
}

/// The context of a verb: the process, the global options, the daemon and the output.
struct Session {
    let context: CommandContext
    let options: SessionOptions

    var palette: Palette { .choose(environment: context.environment, isTerminal: context.isTerminal) }

    /// Says, after two seconds without an answer to anybody, that the verb goes on waiting, and how long.
    var notice: ControlClient.Notice {
        ControlClient.Notice {
            message(
                "freshetd has not answered yet; giving up after \(ControlClient.longestSilence.components.seconds) s"
                    + " without an answer")
        }
    }

    /// Connects to the daemon, with a ``notice``.
    func connect() throws(CommandFailure) -> ControlClient {
        return try callDaemon { () throws(ControlClient.Failure) in
            try ControlClient(path: socketPath, notice: notice)
        }
    }

    /// How long a call on a connection of ``connectBeside()`` may wait. A call on the connection of ``connect()``, which
    /// waits meanwhile, cannot end before it.
    static let besideLimit: Duration = .seconds(2)

    /// Connects to the daemon without a message, beside a connection of ``connect()``.
    func connectBeside() throws(ControlClient.Failure) -> ControlClient {
        let client = try ControlClient(path: socketPath, silence: Self.besideLimit, probeTimeout: .zero)
        client.replyTimeout = Self.besideLimit
        return client
    }

    /// Replaces patterns by the names that match, in order and without repetitions. A pattern without a match stays:
    /// the daemon then answers that there is no such pipeline.
    func expanded(_ names: [String], _ client: ControlClient) throws(CommandFailure) -> [String] {
        let patterns = names.filter(GlobPattern.isPattern)
        guard !patterns.isEmpty else { return names }
        let found = try callDaemon { () throws(ControlClient.Failure) in
            try client.summaries(ControlMessage.List(names: patterns)).map(\.name)
        }
        var seen: Set<String> = []
        return names.flatMap { name in
            let fitting =
                GlobPattern.isPattern(name) ? PipelineSelection.ordered(found, as: [name], by: \.self) : []
            return fitting.isEmpty ? [name] : fitting
        }.filter { seen.insert($0).inserted }
    }

    /// Calls the daemon; a failure gets a message with its remedy.
    func callDaemon<Answer>(
        _ call: () throws(ControlClient.Failure) -> Answer
    ) throws(CommandFailure) -> Answer {
        do {
            return try call()
        } catch {
            throw failure(error)
        }
    }

    /// The message and the remedy for a failed call.
    func failure(_ failure: ControlClient.Failure) -> CommandFailure {
        CommandFailure(
            failure, socket: socketPath,
            isInstalled: Check.candidates(ownPath: context.ownPath).contains(where: context.isExecutable),
            times: times)
    }

    var socketPath: String {
        options.socket ?? (options.user ? SocketPath.own(context) : SocketPath.find(context))
    }

    var times: Times { Times(now: context.now(), timeZone: context.timeZone) }

    /// Prints a line of data.
    func print(_ line: String) { context.output(line + "\n") }

    /// Prints JSON, in UTF-8 on every terminal.
    func print(json value: some Encodable) {
        _ = context.outputBytes(Array((ControlJSON.text(of: value) + "\n").utf8)[...])
    }

    func print(_ table: Table, total: String) {
        let lines = table.lines(width: context.columns, legend: !options.noLegend, palette: palette)
        // One write for the whole table.
        context.output((lines + (options.noLegend ? [] : ["", total])).map { $0 + "\n" }.joined())
    }

    /// Prints a message on standard error, unless `--quiet` is given.
    func message(_ line: String) {
        if !options.quiet { context.printError(line + "\n") }
    }
}
