import ArgumentParser
import FreshetControl
import FreshetRender

struct List: Verb {
    static let configuration = CommandConfiguration(abstract: "List the pipelines, one a line.")

    @Argument(help: "Pipelines; all of them if none is named.") var names: [String] = []
    @OptionGroup var options: GlobalOptions

    func run(_ session: Session) throws(CommandFailure) {
        let client = try session.connect()
        let names = names.isEmpty ? nil : names
        let pipelines = try session.asking { () throws(ControlClient.Failure) in try client.pipelines(names) }
        if options.json { return session.print(json: ControlMessage.Pipelines(pipelines: pipelines)) }
        let times = session.times
        let table = Table(
            columns: PipelineView.columns,
            rows: pipelines.map { PipelineView(pipeline: $0, times: times, palette: session.palette).row })
        session.print(table, total: "\(Count.text(pipelines.count, "pipeline")) listed.")
    }
}
