import ArgumentParser
import FreshetControl

/// `metrics`: prints metrics, or writes them to a file.
struct Metrics: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "metrics",
        abstract: "Print metrics for Prometheus, or write them to a file.",
        usage: """
            freshetctl metrics [<names> ...]
            freshetctl metrics write <path>
            """,
        discussion: """
            Prints OpenMetrics 1.0. 'write' writes the Prometheus text format for the textfile collector of \
            node_exporter, and replaces the file as a whole; the unit freshet-metrics.timer does so each minute.

            Examples:
              freshetctl metrics
              freshetctl metrics write /var/lib/prometheus/node-exporter/freshet.prom
            """,
        subcommands: [MetricsPrint.self, MetricsWrite.self],
        defaultSubcommand: MetricsPrint.self)
}

struct MetricsPrint: Verb {
    static let configuration = CommandConfiguration(commandName: "print", abstract: "Print the metrics.")

    @Argument(help: "Pipelines; without a name, all.") var names: [String] = []
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
            // UTF-8 in every locale.
            _ = session.context.outputBytes(Array(metrics.text(.openMetrics).utf8)[...])
            return
        }
        session.print(
            json: Everything(daemon: metrics.daemon, signals: metrics.signals, pipelines: metrics.counters))
    }
}

struct MetricsWrite: Verb {
    static let configuration = CommandConfiguration(
        commandName: "write", abstract: "Write the metrics to a file with a name that ends with .prom.")

    @Argument(help: "The file; it is replaced as a whole.") var path: String
    @OptionGroup var options: GlobalOptions

    func run(_ session: Session) throws(CommandFailure) {
        let text = try MetricsView(of: [], session).text(.prometheus)
        do throws(EditFailure) {
            // The file need not survive a power failure: the metrics would be old.
            try EditedFile(path, mayBeLink: false).replace(with: Array(text.utf8), isLasting: false)
        } catch {
            throw error.failure
        }
    }
}

extension MetricsView {
    /// Requests the metrics from the daemon.
    fileprivate init(of names: [String], _ session: Session) throws(CommandFailure) {
        let client = try session.connect()
        let names = names.isEmpty ? nil : names
        self = try session.callDaemon { () throws(ControlClient.Failure) in
            MetricsView(
                daemon: try client.daemon(), signals: try client.signals(), pipelines: try client.pipelines(names),
                counters: try client.counters(names))
        }
    }
}
