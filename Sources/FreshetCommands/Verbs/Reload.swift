import ArgumentParser
import FreshetControl
import FreshetRender

struct Reload: Verb {
    static let configuration = CommandConfiguration(
        commandName: "reload",
        abstract: "Have the daemon read its configuration again.",
        discussion: """
            Pipelines that did not change keep their state. Then the signal 'reload' fires, and those that listen to it \
            check their origins. A configuration with errors changes nothing: the errors are printed, exit status 78. If \
            only the service can see an error, such as a credential that it was not given, the other pipelines are \
            applied; the exit status is 78, too.

            Examples:
              freshetctl check && freshetctl reload
              freshetctl reload --configuration-only
            """)

    @Flag(help: "Leave out the signal 'reload'.") var configurationOnly = false
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
                    Self.tell(diagnostics, session)
                }
            }
            throw session.failure(error)
        }
        if options.json {
            session.print(json: reloaded)
        } else {
            Self.tell(reloaded.diagnostics, session)
            session.say(Self.text(reloaded.summary))
        }
        let errors = reloaded.diagnostics.count { $0.severity == .fault }
        guard errors > 0 else { return }
        throw CommandFailure(
            .configuration,
            "\(Count.text(Int64(errors), "error")) that only the service can see: these pipelines keep their previous "
                + "configuration, or do not run; all others are applied")
    }

    /// The most faults that are printed, and the most names of pipelines. As the unit's `ExecReload=` it prints to the
    /// journal, which drops what is too much.
    static let faultLimit = 100
    static let nameLimit = 20

    private static func tell(_ diagnostics: [ConfigurationDiagnostic], _ session: Session) {
        for diagnostic in diagnostics.prefix(faultLimit) {
            session.context.talk(DiagnosticView.text(diagnostic) + "\n")
        }
        let rest = diagnostics.count - faultLimit
        if rest > 0 { session.context.talk("and \(rest) more, which freshetctl check names too\n") }
    }

    static func text(_ summary: ReloadSummary) -> String {
        let parts = [("added", summary.added), ("changed", summary.changed), ("removed", summary.removed)]
            .filter { !$0.1.isEmpty }
            .map { "\($0.0) \($0.1.count > nameLimit ? "\($0.1.count)" : $0.1.joined(separator: ", "))" }
        let unchanged = "\(Count.text(summary.unchanged, "pipeline")) unchanged"
        return DisplayText.harmless((parts + [unchanged]).joined(separator: "; "))
    }
}
