import ArgumentParser
import FreshetControl

struct Status: Verb {
    static let configuration = CommandConfiguration(
        abstract: "Show what pipelines do and offer.",
        discussion: "Without a name, shows the daemon and all pipelines.")

    @Argument(help: "Pipelines.") var names: [String] = []
    @OptionGroup var options: GlobalOptions

    /// With `--json`: the replies of `GetDaemon` and `List` in one object; with names, that of `List` alone.
    private struct Everything: Encodable {
        var daemon: DaemonStatus
        var pipelines: [PipelineStatus]
    }

    func run(_ session: Session) throws(CommandFailure) {
        let client = try session.connect()
        let names = names
        let (daemon, pipelines) = try session.asking { () throws(ControlClient.Failure) in
            (names.isEmpty ? try client.daemon() : nil, try client.pipelines(names.isEmpty ? nil : names))
        }
        if options.json {
            guard let daemon else { return session.print(json: ControlMessage.Pipelines(pipelines: pipelines)) }
            return session.print(json: Everything(daemon: daemon, pipelines: pipelines))
        }
        let times = session.times
        let palette = session.palette
        var blocks = daemon.map { [DaemonView.lines($0, times, palette)] } ?? []
        blocks += pipelines.map {
            PipelineView(pipeline: $0, times: times, palette: palette, hasBars: session.context.isTerminal).lines
        }
        session.print(blocks.map { $0.joined(separator: "\n") }.joined(separator: "\n\n"))
    }
}
