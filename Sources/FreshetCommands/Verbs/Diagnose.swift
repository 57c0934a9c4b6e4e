import ArgumentParser
import FreshetControl
import FreshetRender
import Glibc

struct Diagnose: Verb {
    static let configuration = CommandConfiguration(
        commandName: "diagnose",
        abstract: "Find out why a pipeline is stuck, and what to do.",
        discussion: """
            Checks everything that a new copy depends on, one line each: the configuration, the signals, the network, \
            the last run, the checks, the copy and the hooks. The last lines name the first problem and a command that \
            helps. Exit status: 0 if nothing is stuck, 1 if something is, 69 if the daemon does not run.

            Examples:
              freshetctl diagnose jwks
              freshetctl is-fresh --quiet jwks || freshetctl diagnose jwks
            """)

    @Argument(help: "The pipeline.") var name: String
    @OptionGroup var options: GlobalOptions

    func run(_ session: Session) throws(CommandFailure) {
        let client: ControlClient
        let name = name
        let daemon: DaemonStatus
        do throws(ControlClient.Failure) {
            client = try ControlClient(path: session.socketPath)
            daemon = try client.daemon()
        } catch {
            let failure = session.failure(error)
            let isHanging: Bool
            switch error {
            case .notRunning where !options.json: isHanging = false
            case .notAnswering where !options.json: isHanging = true
            default: throw failure
            }
            let lines = failure.message.split(separator: "\n", maxSplits: 1).map(String.init)
            show(
                .withoutDaemon(
                    lines.first ?? "", isHanging: isHanging,
                    remedy: Self.systemctl(isHanging ? "status" : "start", session)),
                session)
            throw CommandFailure(failure.status)
        }
        let (pipelines, wirings, signals) = try session.callDaemon { () throws(ControlClient.Failure) in
            (try client.pipelines([name]), try client.descriptions([name]), try client.signals())
        }
        guard pipelines.count == 1, let pipeline = pipelines.first, let wiring = wirings.first else {
            throw CommandFailure(
                .failure,
                DisplayText.harmless("'\(name)' matches \(Count.text(pipelines.count, "pipeline")); name one"))
        }
        let path = pipeline.generation.map { $0.directory ?? $0.path }
        let diagnosis = Diagnosis(
            .init(
                daemon: daemon, pipeline: pipeline, wiring: wiring, signals: signals,
                isFileThere: path.map(session.context.exists) ?? false), session.times)
        if options.json {
            session.print(json: Report(diagnosis, of: name))
        } else {
            show(diagnosis, session)
        }
        if diagnosis.stuck != nil { throw CommandFailure(.failure) }
    }

    /// The systemctl command for the daemon of this socket; nil if no service manager runs it.
    private static func systemctl(_ verb: String, _ session: Session) -> String? {
        session.isPersonalDaemon.map { "systemctl \($0 ? "--user " : "")\(verb) freshetd" }
    }

    private func show(_ diagnosis: Diagnosis, _ session: Session) {
        let palette = session.palette
        let width = diagnosis.steps.map(\.title.count).max() ?? 0
        var lines = diagnosis.steps.map { step in
            let (mark, style): (String, Palette.Style) =
                switch step.verdict {
                case .good: ("✓", .good)
                case .bad: ("✗", .bad)
                case .neither: ("–", .faint)
                }
            let padding = String(repeating: " ", count: width - step.title.count)
            let text = "\(step.title)\(padding)  \(DisplayText.harmless(step.evidence))"
            // One line each, cut to the terminal: `status` shows the whole text.
            let width = session.context.columns.map { max(20, $0 - 2) } ?? .max
            return
                "\(palette.paint(mark, style)) \(DisplayText.truncated(text, to: width, ellipsis: palette.charset.ellipsis))"
        }
        let conclusion = diagnosis.conclusion
        lines.append("")
        lines += WrappedText.lines(DisplayText.harmless(conclusion.text), columns: session.context.columns ?? .max)
            .map { palette.paint($0, diagnosis.stuck == nil ? .good : .bad) }
        if let command = conclusion.command { lines.append("  " + DisplayText.harmless(command)) }
        session.print(lines.joined(separator: "\n"))
    }

    /// The output with `--json`.
    private struct Report: Encodable {
        struct Step: Encodable {
            /// `good`, `bad` or `neither`.
            var verdict: String
            var title: String
            var evidence: String
        }
        var name: String
        var stuck: Bool
        var steps: [Step]
        var conclusion: String
        var command: String?

        init(_ diagnosis: Diagnosis, of name: String) {
            self.name = name
            stuck = diagnosis.stuck != nil
            steps = diagnosis.steps.map {
                Step(verdict: "\($0.verdict)", title: $0.title, evidence: $0.evidence)
            }
            conclusion = diagnosis.conclusion.text
            command = diagnosis.conclusion.command
        }
    }
}
