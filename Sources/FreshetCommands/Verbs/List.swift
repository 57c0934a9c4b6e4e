import ArgumentParser
import FreshetControl
import FreshetRender

struct List: Verb {
    static let configuration = CommandConfiguration(
        commandName: "list",
        abstract: "List the pipelines, one per line.",
        discussion: """
            GEN is the number of the published generation, CAUSES the signals of the last run, or its error if the \
            pipeline fails. The daemon filters, and sends only the pipelines that are shown.

            Examples:
              freshetctl list
              freshetctl list 'feed-*'
              freshetctl list --state failed,waiting
              freshetctl list --no-legend --limit 20
            """)

    @Argument(help: "Pipelines, or patterns of their names; without a name, all.") var names: [String] = []
    @Option(
        help: ArgumentHelp(
            "List only pipelines in these states, separated by commas.", valueName: "states"))
    var state: StateNames?
    @Option(help: ArgumentHelp("List only this many, the first by name.", valueName: "number")) var limit: Int64?
    @OptionGroup var options: GlobalOptions

    func validate() throws {
        if let limit, limit < 1 { throw ValidationError("--limit needs a number of at least 1.") }
    }

    func run(_ session: Session) throws(CommandFailure) {
        try Self.answer(names, states: state?.states, limit: limit, session)
    }

    static func answer(
        _ names: [String], states: [PipelineState]? = nil, limit: Int64? = nil, _ session: Session
    ) throws(CommandFailure) {
        let client = try session.connect()
        // One more shows whether there are more.
        let request = ControlMessage.List(
            names: names.isEmpty ? nil : names, states: states, limit: limit.map { $0 == .max ? $0 : $0 + 1 })
        let most = limit.map { Int(clamping: $0) } ?? .max
        if session.options.json {
            let pipelines = try session.callDaemon { () throws(ControlClient.Failure) in try client.pipelines(request) }
            return session.print(json: ControlMessage.Pipelines(pipelines: Array(pipelines.prefix(most))))
        }
        let found = try session.callDaemon { () throws(ControlClient.Failure) in try client.summaries(request) }
        let shown = Array(found.prefix(most))
        session.print(
            SummaryView.table(shown, session.times),
            total: "\(Count.text(shown.count, "pipeline")) listed\(found.count > most ? ", and there are more" : "").")
    }
}
