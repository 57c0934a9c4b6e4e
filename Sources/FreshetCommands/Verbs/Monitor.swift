import ArgumentParser
import FreshetControl
import FreshetRender

struct Monitor: Verb {
    static let configuration = CommandConfiguration(
        commandName: "monitor",
        abstract: "Print signals, runs and states as they happen.",
        discussion: """
            With --json, prints a JSON text sequence (RFC 7464), the input format of 'jq --seq'.

            Examples:
              freshetctl monitor
              freshetctl monitor jwks
              freshetctl monitor --json | jq --seq 'select(.kind == "runEnded")'
            """)

    @Argument(help: "Pipelines; without a name, all. Signals are always shown.") var names: [String] = []
    @OptionGroup var options: GlobalOptions

    func run(_ session: Session) throws(CommandFailure) {
        let client = try session.connect()
        let names = names.isEmpty ? nil : names
        let palette = session.palette
        try session.callDaemon { () throws(ControlClient.Failure) in
            try client.monitor(names, endingWithReaderOf: session.context.outputDescriptor) { event in
                guard let event else {
                    if session.context.isTerminal { session.message("Waiting for events; end with Ctrl-C.") }
                    return true
                }
                let line =
                    options.json
                    ? "\u{1E}" + ControlJSON.text(of: event)
                    : palette.charset.text(EventView.text(event, session.times, palette))
                return session.context.outputBytes(Array((line + "\n").utf8)[...])
            }
        }
    }
}
