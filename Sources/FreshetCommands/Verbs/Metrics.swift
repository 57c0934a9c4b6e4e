import ArgumentParser
import FreshetControl

/// `metrics`: prints them, or writes them to a file.
struct Metrics: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "metrics",
        abstract: "Print metrics for Prometheus, or write them to a file.",
        usage: """
            freshetctl metrics [<names> ...]
            freshetctl metrics write <path>
            """,
        discussion: """
            The format is OpenMetrics 1.0. 'write' replaces a file as a whole, in Prometheus' own format, for the textfile \
            collector of node_exporter; the unit freshet-metrics.timer does so each minute.

            Examples:
              freshetctl metrics
              freshetctl metrics write /var/lib/prometheus/node-exporter/freshet.prom
            """,
        subcommands: [MetricsPrint.self, MetricsWrite.self],
        defaultSubcommand: MetricsPrint.self)
}

struct MetricsPrint: Verb {
    static let configuration = CommandConfiguration(commandName: "print", abstract: "Print the metrics.")

    @Argument(help: "Pipelines; all of them if none is named.") var names: [String] = []
    @OptionGroup var options: GlobalOptions

    /// With `--json`: the replies of `GetDaemon`, `Signals` and `Metrics` in one object.
    private struct Everything: Encodable {
        var daemon: DaemonStatus
        var signals: [SignalStatus]
        var pipelines: [PipelineCounters]
    }

    func run(_ session: Session) throws(CommandFailure) {
        let metrics = try MetricsView(of: names, session)
        guard options.json else {
            // As it is in any locale: names are those of series.
            _ = session.context.outputBytes(Array(metrics.text(.openMetrics).utf8)[...])
            return
        }
        session.print(
            json: Everything(daemon: metrics.daemon, signals: metrics.signals, pipelines: metrics.counters))
    }
}

struct MetricsWrite: Verb {
    static let configuration = CommandConfiguration(
        commandName: "write", abstract: "Write the metrics to a file, whose name is to end with .prom.")

    @Argument(help: "The file; it is replaced as a whole.") var path: String
    @OptionGroup var options: GlobalOptions

    func run(_ session: Session) throws(CommandFailure) {
        let text = try MetricsView(of: [], session).text(.prometheus)
        do throws(EditFailure) {
            // What is lost in a power cut is old by then.
            try EditedFile(path, mayBeLink: false).replace(with: Array(text.utf8), isLasting: false)
        } catch {
            throw error.failure
        }
    }
}

extension MetricsView {
    /// Asks the daemon.
    fileprivate init(of names: [String], _ session: Session) throws(CommandFailure) {
        let client = try session.connect()
        let names = names.isEmpty ? nil : names
        self = try session.asking { () throws(ControlClient.Failure) in
            MetricsView(
                daemon: try client.daemon(), signals: try client.signals(), pipelines: try client.pipelines(names),
                counters: try client.counters(names))
        }
    }
}
