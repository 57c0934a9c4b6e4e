/// A command line of a verb that prompts, status bars and monitoring run many times a minute, with only names and
/// global options: `status`, `is-fresh --quiet jwks`. It is parsed without ArgumentParser, which inspects types at run
/// time and would take half of the whole time of such a command.
///
/// The result is the same as that of ArgumentParser, which parses all other command lines.
struct PlainCommandLine: Hashable {
    enum Verb: Hashable {
        case list, status, isFresh
    }

    var verb: Verb
    var names: [String] = []
    var options = SessionOptions()

    /// Nil for any other command line.
    init?(_ arguments: [String]) {
        switch arguments.first {
        case nil, "list": verb = .list
        case "status": verb = .status
        case "is-fresh": verb = .isFresh
        default: return nil
        }
        var rest = arguments.dropFirst()
        while let argument = rest.popFirst() {
            if !Self.isOption(argument) {
                names.append(argument)
            } else if argument == "--socket" {
                guard options.socket == nil, let path = rest.popFirst(), !path.isEmpty, !Self.isOption(path) else {
                    return nil
                }
                options.socket = path
            } else {
                guard options.set(argument) else { return nil }
            }
        }
        if verb == .isFresh, names.isEmpty { return nil }
        if options.socket != nil, options.user { return nil }
    }

    private static func isOption(_ argument: String) -> Bool { argument.utf8.first == UInt8(ascii: "-") }

    func run(_ session: Session) throws(CommandFailure) {
        switch verb {
        case .list: try List.answer(names, session)
        case .status: try Status.answer(names, session)
        case .isFresh: try IsFresh.answer(names, session)
        }
    }
}
