import ArgumentParser
import FreshetControl
import FreshetRender

struct SetVerb: Verb {
    static let configuration = CommandConfiguration(
        commandName: "set",
        abstract: "Set or show the parameters of a pipeline.",
        discussion: """
            All values are checked first, and set together or not at all. A run with the new values starts after the \
            quiet period of the parameters, and replaces a run in progress with other values. Values equal to those of \
            the last run start no run. The values stay until 'freshetctl unset', also after a restart of the daemon. \
            Without a value, shows all parameters.

            Examples:
              freshetctl set homepage
              freshetctl set homepage language=de
              freshetctl set homepage query=jazz language=de
            """)

    @Argument(help: "The pipeline.") var name: String
    @Argument(help: "Parameters with values, such as language=de.") var settings: [Assignment] = []
    @OptionGroup var options: GlobalOptions

    /// A parameter, `=`, and its value, which may contain `=`.
    struct Assignment: ExpressibleByArgument {
        var parameter: String
        var value: String

        init?(argument: String) {
            let parts = argument.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard parts.count == 2, !parts[0].isEmpty else { return nil }
            parameter = String(parts[0])
            value = String(parts[1])
        }
    }

    /// The output with `--json` and without a value.
    private struct Shown: Encodable {
        var parameters: [ParameterStatus]
    }

    func validate() throws {
        var known: Set<String> = []
        for setting in settings where !known.insert(setting.parameter).inserted {
            throw ValidationError("'\(setting.parameter)' is set twice.")
        }
    }

    func run(_ session: Session) throws(CommandFailure) {
        let client = try session.connect()
        guard settings.isEmpty else {
            let settings = settings.map { ParameterSetting($0.parameter, $0.value) }
            return try session.change(ControlMessage.SetParameters(name: name, settings: settings), client)
        }
        let name = name
        let pipelines = try session.callDaemon { () throws(ControlClient.Failure) in try client.pipelines([name]) }
        let parameters = pipelines.first?.parameters ?? []
        if options.json { return session.print(json: Shown(parameters: parameters)) }
        guard !parameters.isEmpty else { return session.message(DisplayText.harmless("'\(name)' has no parameters.")) }
        session.print(
            Table(columns: ParameterView.columns, rows: parameters.map(ParameterView.row)),
            total: "\(Count.text(parameters.count, "parameter")) of \(DisplayText.harmless(name)).")
    }
}

extension Session {
    /// Changes parameters, and prints the new values.
    func change(_ request: ControlMessage.SetParameters, _ client: ControlClient) throws(CommandFailure) {
        let reply = try callDaemon { () throws(ControlClient.Failure) in try client.setParameters(request) }
        if options.json { return print(json: reply) }
        guard !reply.changed.isEmpty else { return message("nothing changed: these are the values already") }
        let changed = reply.parameters.filter { reply.changed.contains($0.name) }.map(ParameterView.text)
        message(DisplayText.harmless(changed.joined(separator: ", ")))
    }
}
