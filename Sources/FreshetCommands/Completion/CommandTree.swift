import ArgumentParser
import FreshetControl

/// The verbs and their arguments, as ArgumentParser describes them.
struct CommandTree: Decodable {
    var commandName: String
    var abstract: String?
    var shouldDisplay: Bool?
    var subcommands: [CommandTree]?
    var arguments: [Argument]?

    struct Argument: Decodable {
        enum Kind: String, Decodable { case positional, option, flag }
        struct Name: Decodable {
            enum Kind: String, Decodable { case long, short, longWithSingleDash }
            var kind: Kind
            var name: String

            /// The name as it is typed.
            var text: String { (kind == .long ? "--" : "-") + name }
        }
        var kind: Kind
        var shouldDisplay: Bool
        var isRepeating: Bool
        var names: [Name]?
        var allValues: [String]?
        var abstract: String?

        func isCalled(_ text: some StringProtocol) -> Bool { names?.contains { $0.text == text } ?? false }
    }

    /// The command line of `freshetctl`; nil if ArgumentParser describes it in an unknown format.
    static func ofFreshetctl() -> CommandTree? {
        struct Tool: Decodable { var command: CommandTree }
        return ControlJSON.value(of: FreshetctlCommand._dumpHelp(), as: Tool.self)?.command
    }

    func subcommand(_ name: String) -> CommandTree? { subcommands?.first { $0.commandName == name } }
}
