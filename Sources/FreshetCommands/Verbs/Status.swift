import ArgumentParser
import FreshetControl
import FreshetRender

struct Status: Verb {
    static let configuration = CommandConfiguration(
        commandName: "status",
        abstract: "Show the daemon and all pipelines, or one in detail.",
        discussion: """
            Without a name, shows the daemon and one line for each pipeline, as 'list' does. If there are more than \
            \(Self.most) pipelines, only those that failed or are held have a line, unless '--all' is given. With names, \
            shows these pipelines in detail; for a single pipeline also its last journal entries, if systemd runs the \
            daemon.

            Examples:
              freshetctl status
              freshetctl status --all
              freshetctl status jwks
              freshetctl status jwks -n 0
              freshetctl status 'feed-*' --json
            """)

    /// The most pipelines that have a line without `--all`.
    static let most = 100

    @Argument(help: "Pipelines, or patterns of their names.") var names: [String] = []
    @Flag(help: "Show all pipelines, however many there are.") var all = false
    @Option(
        name: [.customShort("n", allowingJoined: true), .customLong("lines")],
        help: ArgumentHelp("Show this many lines of the journal (default: 10).", valueName: "number"))
    var journalLines: Int?
    @OptionGroup var options: GlobalOptions

    /// The output with `--json`: the replies of `GetDaemon` and `List` in one object. With names, only the reply of
    /// `List`.
    private struct Everything: Encodable {
        var daemon: DaemonStatus
        var pipelines: [PipelineStatus]
    }

    func validate() throws {
        if let journalLines, journalLines < 0 { throw ValidationError("-n needs a number of at least 0.") }
        if all, !names.isEmpty { throw ValidationError("--all is for all pipelines; leave out the names.") }
    }

    func run(_ session: Session) throws(CommandFailure) {
        try Self.answer(names, all: all, journalLines: journalLines, session)
    }

    static func answer(
        _ names: [String], all: Bool = false, journalLines: Int? = nil, _ session: Session
    ) throws(CommandFailure) {
        let client = try session.connect()
        guard names.isEmpty else { return try show(names, journalLines: journalLines ?? 10, client, session) }
        if session.options.json {
            let (daemon, pipelines) = try session.callDaemon { () throws(ControlClient.Failure) in
                (try client.daemon(), try client.pipelines())
            }
            return session.print(json: Everything(daemon: daemon, pipelines: pipelines))
        }
        let overview = try session.callDaemon { () throws(ControlClient.Failure) in
            try client.overview(limit: all ? nil : most)
        }
        var lines = DaemonView.lines(
            overview.daemon, session.times, session.palette, columns: session.context.columns)
        if !overview.summaries.isEmpty {
            lines += [""]
            lines += SummaryView.table(overview.summaries, session.times).lines(
                width: session.context.columns, legend: !session.options.noLegend, palette: session.palette)
        }
        if overview.daemon.pipelines.total == 0, !session.options.noLegend {
            lines += [
                "",
                "No pipelines yet: 'freshetctl edit --new NAME' makes one, 'freshetctl edit --examples' lists examples.",
            ]
        }
        if !overview.isComplete, !session.options.noLegend { lines += ["", footer(of: overview)] }
        session.print(lines.joined(separator: "\n"))
    }

    /// Says which pipelines of many are listed.
    private static func footer(of overview: ControlClient.Overview) -> String {
        let selection =
            if overview.summaries.isEmpty {
                "No pipeline has failed or is held"
            } else if overview.isCut {
                "Only the first \(most) pipelines that failed or are held are listed"
            } else {
                "Only pipelines that failed or are held are listed"
            }
        return "\(selection); 'freshetctl status --all' lists all \(overview.daemon.pipelines.total)."
    }

    private static func show(
        _ names: [String], journalLines: Int, _ client: ControlClient, _ session: Session
    ) throws(CommandFailure) {
        let pipelines = try session.callDaemon { () throws(ControlClient.Failure) in try client.named(names) }
        if session.options.json { return session.print(json: ControlMessage.Pipelines(pipelines: pipelines)) }
        let (times, palette) = (session.times, session.palette)
        var blocks = pipelines.map {
            PipelineView(
                pipeline: $0, times: times, palette: palette, hasBars: session.context.isTerminal,
                columns: session.context.columns
            ).lines
        }
        // As systemctl does; without a service manager, the daemon's log is not in the journal.
        if pipelines.count == 1, let pipeline = pipelines.first, let isPersonal = session.isPersonalDaemon {
            let lines = Journal.tail(of: pipeline.name, journalLines, isPersonal: isPersonal, session)
            if !lines.isEmpty {
                blocks.append(
                    lines.map { line in
                        session.context.columns.map {
                            DisplayText.truncated(line, to: $0, ellipsis: palette.charset.ellipsis)
                        } ?? line
                    })
            }
        }
        guard !blocks.isEmpty else { return session.message("No pipeline matches.") }
        session.print(blocks.map { $0.joined(separator: "\n") }.joined(separator: "\n\n"))
    }
}
