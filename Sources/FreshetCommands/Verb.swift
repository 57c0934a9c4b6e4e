import ArgumentParser
import FreshetControl
import FreshetRender

/// A verb of `freshetctl`: one file each in `Verbs`.
protocol Verb: ParsableCommand {
    var options: GlobalOptions { get }
    func run(_ session: Session) throws(CommandFailure)
}

/// A verb's surroundings: the world, the global options, and ways to speak.
struct Session {
    let context: CommandContext
    let options: SessionOptions

    var palette: Palette { .choose(environment: context.environment, isTerminal: context.isTerminal) }

    /// Connects to the daemon.
    func connect() throws(CommandFailure) -> ControlClient {
        try asking { () throws(ControlClient.Failure) in try ControlClient(path: socketPath) }
    }

    /// The names that are meant by these, some of which may be patterns, for verbs that act on each: in this order, and
    /// each once. A pattern that nothing fits stays what it is, and is the name of no pipeline.
    func expanded(_ names: [String], _ client: ControlClient) throws(CommandFailure) -> [String] {
        let patterns = names.filter(GlobPattern.isPattern)
        guard !patterns.isEmpty else { return names }
        let found = try asking { () throws(ControlClient.Failure) in
            try client.summaries(ControlMessage.List(names: patterns)).map(\.name)
        }
        var seen: Set<String> = []
        return names.flatMap { name in
            let fitting =
                GlobPattern.isPattern(name) ? PipelineSelection.ordered(found, as: [name], by: \.self) : []
            return fitting.isEmpty ? [name] : fitting
        }.filter { seen.insert($0).inserted }
    }

    /// Asks the daemon, and tells people what an error means and what to do.
    func asking<Answer>(
        _ question: () throws(ControlClient.Failure) -> Answer
    ) throws(CommandFailure) -> Answer {
        do {
            return try question()
        } catch {
            throw failure(error)
        }
    }

    /// What an error of the daemon, or its absence, means and what to do.
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

    /// Prints JSON, which is UTF-8 whatever the terminal has.
    func print(json value: some Encodable) {
        _ = context.outputBytes(Array((ControlJSON.text(of: value) + "\n").utf8)[...])
    }

    func print(_ table: Table, total: String) {
        let lines = table.lines(width: context.columns, legend: !options.noLegend, palette: palette)
        // One write for all of it.
        context.output((lines + (options.noLegend ? [] : ["", total])).map { $0 + "\n" }.joined())
    }

    /// Says something to people, who may not want to hear it.
    func say(_ line: String) {
        if !options.quiet { context.talk(line + "\n") }
    }
}
