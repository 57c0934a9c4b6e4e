/// A command line of those that prompts, status bars and monitoring ask many times a minute, with nothing but names and
/// options that every verb has: `status`, `is-fresh --quiet jwks`. Read without the parser, which looks at types while the
/// program runs, and would take half of the time in which it starts, asks and answers.
///
/// It means what the parser would make of it. Everything else is left to the parser.
struct PlainCommandLine: Hashable {
    enum Verb: Hashable {
        case list, status, isFresh
    }

    var verb: Verb
    var names: [String] = []
    var options = SessionOptions()

    /// - Returns: nil if it is another one.
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
