import ArgumentParser
import FreshetControl
import FreshetRender

struct Reload: Verb {
    static let configuration = CommandConfiguration(
        commandName: "reload",
        abstract: "Reload the configuration of the daemon.",
        discussion: """
            Pipelines that did not change keep their state. Then the signal 'reload' fires, and pipelines that \
            subscribe to it check their origins. A configuration with errors is refused: the errors are printed, the \
            previous configuration stays active, and the exit status is 78. If only the service can see an error, such \
            as a missing credential, the other pipelines are applied; the exit status is 78, too.

            Examples:
              freshetctl check && freshetctl reload
              freshetctl reload --configuration-only
            """)

    @Flag(help: "Do not fire the signal 'reload'.") var configurationOnly = false
    @OptionGroup var options: GlobalOptions

    func run(_ session: Session) throws(CommandFailure) {
        let client = try session.connect()
        let reloaded: ControlMessage.Reloaded
        do throws(ControlClient.Failure) {
            reloaded = try client.reload(configurationOnly: configurationOnly)
        } catch {
            if case .refused(.configurationRefused(let diagnostics)) = error {
                if options.json {
                    session.print(json: ControlMessage.Diagnostics(diagnostics: diagnostics))
                } else {
                    Self.printDiagnostics(diagnostics, session)
                }
            }
            throw session.failure(error)
        }
        if options.json {
            session.print(json: reloaded)
        } else {
            Self.printDiagnostics(reloaded.diagnostics, session)
            session.message(Self.text(reloaded.summary))
        }
        let errors = reloaded.diagnostics.count { $0.severity == .error }
        guard errors > 0 else { return }
        throw CommandFailure(
            .configuration,
            "\(Count.text(Int64(errors), "error")) above: these pipelines keep their previous configuration, or do not run; "
                + "all others are applied. Correct the errors and reload again")
    }

    /// The most errors and the most names of pipelines that are printed: the output of the unit's `ExecReload=` goes to
    /// the journal, which drops bursts of lines.
    static let errorLimit = 100
    static let nameLimit = 20

    private static func printDiagnostics(_ diagnostics: [ConfigurationDiagnostic], _ session: Session) {
        for diagnostic in diagnostics.prefix(errorLimit) {
            session.context.printError(DiagnosticView.text(diagnostic) + "\n")
        }
        let rest = diagnostics.count - errorLimit
        if rest > 0 { session.context.printError("and \(rest) more; 'freshetctl check' prints all\n") }
    }

    static func text(_ summary: ReloadSummary) -> String {
        let parts = [("added", summary.added), ("changed", summary.changed), ("removed", summary.removed)]
            .filter { !$0.1.isEmpty }
            .map { "\($0.0) \($0.1.count > nameLimit ? "\($0.1.count)" : $0.1.joined(separator: ", "))" }
        let unchanged = "\(Count.text(summary.unchanged, "pipeline")) unchanged"
        return DisplayText.harmless((parts + [unchanged]).joined(separator: "; "))
    }
}
