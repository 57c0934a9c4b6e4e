import ArgumentParser
import FreshetControl
import FreshetRender

struct List: Verb {
    static let configuration = CommandConfiguration(
        commandName: "list",
        abstract: "List the pipelines, one a line.",
        discussion: """
            The daemon chooses and counts off: of ten thousand pipelines only those that are shown are sent.

            Examples:
              freshetctl list
              freshetctl list 'feed-*'
              freshetctl list --state failed,waiting
              freshetctl list --no-legend --limit 20
            """)

    @Argument(help: "Pipelines, or patterns of their names; all of them if none is named.") var names: [String] = []
    @Option(
        help: ArgumentHelp(
            "Only those in this state, or in these, with commas between them.", valueName: "states"))
    var state: StateNames?
    @Option(help: ArgumentHelp("The first of them only.", valueName: "number")) var limit: Int64?
    @OptionGroup var options: GlobalOptions

    func validate() throws {
        if let limit, limit < 1 { throw ValidationError("--limit wants a number from 1 on.") }
    }

    func run(_ session: Session) throws(CommandFailure) {
        try Self.answer(names, states: state?.states, limit: limit, session)
    }

    static func answer(
        _ names: [String], states: [PipelineState]? = nil, limit: Int64? = nil, _ session: Session
    ) throws(CommandFailure) {
        let client = try session.connect()
        // One more says whether there are more.
        let request = ControlMessage.List(
            names: names.isEmpty ? nil : names, states: states, limit: limit.map { $0 == .max ? $0 : $0 + 1 })
        let most = limit.map { Int(clamping: $0) } ?? .max
        if session.options.json {
            let pipelines = try session.asking { () throws(ControlClient.Failure) in try client.pipelines(request) }
            return session.print(json: ControlMessage.Pipelines(pipelines: Array(pipelines.prefix(most))))
        }
        let found = try session.asking { () throws(ControlClient.Failure) in try client.summaries(request) }
        let shown = Array(found.prefix(most))
        session.print(
            SummaryView.table(shown, session.times),
            total: "\(Count.text(shown.count, "pipeline")) listed\(found.count > most ? ", and there are more" : "").")
    }
}
