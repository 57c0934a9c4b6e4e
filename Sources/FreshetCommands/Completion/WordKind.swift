/// The kind of value at a position of the command line that ArgumentParser does not know, by verb and option.
enum CompletionKind: Hashable {
    case pipelines
    /// Values of the pipeline that is named first.
    case generations, parameters, settings, branches
    case signals, properties, examples, verbs
    case files, directories
    case words([String])
    /// States, separated by commas.
    case states
    case nothing

    /// The kind of a positional argument.
    ///
    /// - Parameters:
    ///   - verbs: the verb, and its own verb if there is one.
    ///   - index: the number of positional arguments before it.
    static func positional(_ verbs: [String], _ index: Int) -> CompletionKind {
        switch (verbs.first, index) {
        case (nil, _): .nothing
        case ("signals", _): .signals
        case ("metrics", _) where verbs.last == "write": .files
        case ("load-more", 1...): .branches
        case ("set", 1...): .settings
        case ("unset", 1...): .parameters
        case ("rollback", 1), ("diff", 1), ("diff", 2): .generations
        case ("log-level", 0): .words(["trace", "debug", "info", "notice", "warning", "error", "critical"])
        case ("help", 0): .verbs
        case ("completions", 0): .words(["bash", "zsh", "fish"])
        case ("help", _), ("completions", _), ("log-level", _), ("record", _): .nothing
        case (let verb?, 1...) where single.contains(verb): .nothing
        default: .pipelines
        }
    }

    /// The verbs that take one pipeline.
    private static let single: Set<String> = [
        "get", "history", "rollback", "diff", "accept", "pin", "unpin", "watch", "run", "edit",
        "diagnose", "marbles",
    ]

    /// The kind of an option's value, by the long name of the option.
    static func value(of option: String, _ verbs: [String]) -> CompletionKind {
        switch option {
        case "--socket", "--output": .files
        case "--config-dir", "--cache-dir": .directories
        case "--generation": .generations
        case "--property": .properties
        case "--set": .settings
        case "--state": .states
        case "--from" where verbs.first == "edit": .examples
        default: .nothing
        }
    }
}
