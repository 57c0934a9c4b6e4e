import ArgumentParser
import FreshetControl
import FreshetRender

struct Reload: Verb {
    static let configuration = CommandConfiguration(
        abstract: "Have the daemon read its configuration again.",
        discussion: """
            Pipelines that did not change keep their state. Then the signal 'reload' fires, and those that listen to it \
            check their origins. A configuration with faults changes nothing: the faults are printed, exit status 78.
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
                    for diagnostic in diagnostics { session.context.talk(DiagnosticView.text(diagnostic) + "\n") }
                }
            }
            throw session.failure(error)
        }
        if options.json { return session.print(json: reloaded) }
        for warning in reloaded.diagnostics { session.context.talk(DiagnosticView.text(warning) + "\n") }
        session.say(Self.text(reloaded.summary))
    }

    static func text(_ summary: ReloadSummary) -> String {
        let parts = [("added", summary.added), ("changed", summary.changed), ("removed", summary.removed)]
            .filter { !$0.1.isEmpty }
            .map { "\($0.0) \($0.1.joined(separator: ", "))" }
        let unchanged = "\(Count.text(summary.unchanged, "pipeline")) unchanged"
        return DisplayText.harmless((parts + [unchanged]).joined(separator: "; "))
    }
}
