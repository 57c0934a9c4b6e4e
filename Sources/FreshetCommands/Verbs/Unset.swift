import ArgumentParser
import FreshetControl

struct Unset: Verb {
    static let configuration = CommandConfiguration(
        commandName: "unset",
        abstract: "Reset parameters of a pipeline to their defaults.",
        discussion: """
            Without a parameter, resets all of them.

            Examples:
              freshetctl unset homepage language
              freshetctl unset homepage
            """)

    @Argument(help: "The pipeline.") var name: String
    @Argument(help: "Parameters.") var parameters: [String] = []
    @OptionGroup var options: GlobalOptions

    func run(_ session: Session) throws(CommandFailure) {
        var settings: [ParameterSetting] = []
        for parameter in parameters where !settings.contains(where: { $0.parameter == parameter }) {
            settings.append(ParameterSetting(parameter, nil))
        }
        let request = ControlMessage.SetParameters(
            name: name, settings: settings, othersToDefault: parameters.isEmpty ? true : nil)
        try session.change(request, try session.connect())
    }
}
