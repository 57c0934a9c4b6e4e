/// A command line of a verb that prompts, status bars and monitoring run many times a minute, with only names and
/// global options: `status`, `is-fresh --quiet jwks`, `--socket PATH status`. It is parsed without ArgumentParser, which
/// inspects types at run time and would take half of the whole time of such a command.
///
/// The result is the same as that of ArgumentParser, which parses all other command lines.
struct PlainCommandLine: Hashable {
    enum Verb: String {
        case list, status
        case isFresh = "is-fresh"
    }

    var verb: Verb
    var names: [String] = []
    var options = SessionOptions()

    /// Nil for any other command line.
    init?(_ arguments: [String]) {
        var verb: Verb? = arguments.isEmpty ? .list : nil
        var rest = arguments[...]
        while let argument = rest.popFirst() {
            if !Self.isOption(argument) {
                if verb != nil {
                    names.append(argument)
                } else if let named = Verb(rawValue: argument) {
                    verb = named
                } else {
                    return nil
                }
            } else if argument == "--socket" {
                guard options.socket == nil, let path = rest.popFirst(), !path.isEmpty, !Self.isOption(path) else {
                    return nil
                }
                options.socket = path
            } else {
                guard options.set(argument) else { return nil }
            }
        }
        guard let verb else { return nil }
        self.verb = verb
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
