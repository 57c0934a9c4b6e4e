/// A verb that prompts, status bars and monitoring ask for many times a minute. Of the time in which it starts, asks and
/// answers, the parser would take half: it looks at types while the program runs.
protocol FrequentVerb: Verb {
    var names: [String] { get set }
    var options: GlobalOptions { get set }

    /// Whether it has a meaning without a name.
    static var standsAlone: Bool { get }

    /// What the parser makes of the verb's name alone, or would if it wanted no name.
    static var withDefaults: Self { get }
}

/// A command line of a frequent verb, names, and flags that each verb has: `status`, `is-fresh --quiet jwks`. It means
/// what the parser would make of it, and everything else is left to the parser.
enum PlainCommandLine {
    /// - Returns: nil if it is another one.
    static func verb(_ arguments: [String]) -> (any FrequentVerb)? {
        switch arguments.first {
        case nil, "list": verb(List.self, arguments.dropFirst())
        case "status": verb(Status.self, arguments.dropFirst())
        case "is-fresh": verb(IsFresh.self, arguments.dropFirst())
        default: nil
        }
    }

    private static func verb<Verb: FrequentVerb>(_ type: Verb.Type, _ arguments: ArraySlice<String>) -> Verb? {
        var verb = type.withDefaults
        for argument in arguments {
            if argument.utf8.first != UInt8(ascii: "-") {
                verb.names.append(argument)
            } else {
                guard verb.options.set(argument) else { return nil }
            }
        }
        return verb.names.isEmpty && !type.standsAlone ? nil : verb
    }
}
