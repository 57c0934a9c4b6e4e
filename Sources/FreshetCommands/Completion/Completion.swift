import FreshetControl
import FreshetRender

/// Completes words of a command line. The scripts of the shells call it at each Tab; verbs and options come from
/// ArgumentParser, names from the daemon. After an error it prints nothing.
enum Completion {
    /// The first argument of a call by a script. It is not a verb, and not for users.
    static let argument = "__complete"

    /// A word that may come next.
    struct Candidate: Hashable {
        var text: String
        /// The description, for shells that show one.
        var description: String?
    }

    /// The answer to a shell.
    enum Answer: Hashable {
        case candidates([Candidate])
        /// The shell itself completes names of files, or of directories.
        case files, directories
    }

    /// The values that come from the daemon and from the disk.
    struct Source {
        /// The pipelines whose names begin with a prefix, at most ``mostPipelines``.
        var pipelines: (_ prefix: String) -> [PipelineStatus]
        var pipeline: (_ name: String) -> PipelineStatus?
        var generations: (_ pipeline: String) -> [PastGeneration]
        var signals: () -> [SignalStatus]
        /// Names of examples, with descriptions.
        var examples: (EditPlan.Kind) -> [Candidate]
        /// Names of hooks of several pipelines.
        var hooks: () -> [String]
    }

    /// The most pipelines that are suggested.
    static let mostPipelines: Int64 = 500

    // MARK: Calls of a script

    /// - Parameter arguments: the name of the shell, then `--` and the words without the program's name; the last word
    ///   is to be completed. For bash, the line up to the cursor, and the part of it that bash treats as the last word.
    static func answer(_ arguments: [String], _ context: CommandContext) -> ExitStatus {
        guard let tree = CommandTree.ofFreshetctl(), let shell = arguments.first else { return .failure }
        var words = Array(arguments.dropFirst())
        var cut = 0
        var quote: Character?
        if shell == "bash" {
            guard words.count == 2 else { return .failure }
            let piece = words[1] == "=" || words[1] == ":" ? "" : words[1]
            words = Array(split(words[0]).dropFirst())
            // bash replaces only its part of the word.
            func count(_ word: String?) -> Int { word?.unicodeScalars.count ?? 0 }
            cut = max(0, count(words.last) - count(split(piece).last))
            quote = piece.unicodeScalars.first.flatMap { $0 == "'" || $0 == "\"" ? Character($0) : nil }
        } else if words.first == "--" {
            words.removeFirst()
        }
        guard let current = words.popLast() else { return .success }
        let answer = answer(words, current, tree, source(words, context))
        var text = ""
        switch answer {
        case .files: text = ":files\n"
        case .directories: text = ":directories\n"
        case .candidates(let candidates):
            for candidate in candidates
            where candidate.text.utf8.starts(with: current.utf8) && !candidate.text.contains("\n") {
                let description = shell == "bash" ? nil : candidate.description
                let rest = candidate.text.unicodeScalars.dropFirst(cut)
                text += shell == "bash" ? escaped(String(rest), in: quote) : String(rest)
                if let description { text += "\t" + DisplayText.harmless(description) }
                text += "\n"
            }
        }
        context.output(text)
        return .success
    }

    /// Quotes a word for bash, which inserts the completion unchanged; other shells quote it themselves.
    ///
    /// - Parameter quote: the open quotation mark, if there is one.
    static func escaped(_ text: some StringProtocol, in quote: Character? = nil) -> String {
        // Scalars, not characters: a combining mark after a quotation mark makes one character of both.
        text.unicodeScalars.reduce(into: "") { result, scalar in
            switch quote {
            case "'": return result += scalar == "'" ? #"'\''"# : "\(scalar)"
            case "\""?: return result += "$`\"\\".unicodeScalars.contains(scalar) ? "\\\(scalar)" : "\(scalar)"
            default: break
            }
            let isPlain =
                !scalar.isASCII || scalar.properties.isAlphabetic || scalar.properties.numericType != nil
                || "_./:=,@%+-".unicodeScalars.contains(scalar)
            result += isPlain ? "\(scalar)" : "\\\(scalar)"
        }
    }

    /// The words of a line, split as by a shell; the last one may be empty. It works on scalars, as a shell: a space and a
    /// combining mark after it are one character.
    static func split(_ line: String) -> [String] {
        var words: [String] = []
        var word = ""
        var isInWord = false
        var quote: Unicode.Scalar?
        var isEscaped = false
        for scalar in line.unicodeScalars {
            if isEscaped {
                word.unicodeScalars.append(scalar)
                isEscaped = false
            } else if let open = quote {
                if scalar == open { quote = nil } else { word.unicodeScalars.append(scalar) }
            } else if scalar == "\\" {
                isEscaped = true
                isInWord = true
            } else if scalar == "'" || scalar == "\"" {
                quote = scalar
                isInWord = true
            } else if scalar == " " || scalar == "\t" {
                if isInWord { words.append(word) }
                word = ""
                isInWord = false
            } else {
                word.unicodeScalars.append(scalar)
                isInWord = true
            }
        }
        return words + [word]
    }

    // MARK: Candidates

    /// - Parameters:
    ///   - words: the words before the cursor.
    ///   - current: the beginning of the current word.
    static func answer(_ words: [String], _ current: String, _ tree: CommandTree, _ source: Source) -> Answer {
        let place = Position(words, tree)
        if let option = place.awaited { return values(of: option, place, current, "", source) }
        guard !place.isAfterOptions, current.hasPrefix("-") else {
            if place.positionals.isEmpty, let verbs = place.command.subcommands, !verbs.isEmpty {
                let own = verbs.filter { $0.shouldDisplay ?? true }.map {
                    Candidate(text: $0.commandName, description: $0.abstract)
                }
                // Without a verb, `signals --follow` takes names.
                guard place.verbs.first == "signals", words.contains("--follow") else { return .candidates(own) }
            }
            return values(.positional(place.verbs, place.positionals.count), place, current, "", source)
        }
        if let equals = current.firstIndex(of: "="), let option = place.argument(current[..<equals]) {
            return values(
                of: option, place, String(current[current.index(after: equals)...]), "\(current[...equals])", source)
        }
        return .candidates(
            place.arguments.filter { $0.shouldDisplay && $0.kind != .positional }
                .filter { argument in argument.isRepeating || !words.contains(where: argument.isCalled) }
                .flatMap { argument in
                    (argument.names ?? []).filter { $0.kind == .long || current == "-" && $0.kind == .short }
                        .map { Candidate(text: $0.text, description: argument.abstract) }
                })
    }

    private static func values(
        of option: CommandTree.Argument, _ place: Position, _ current: String, _ prefix: String, _ source: Source
    ) -> Answer {
        let long = option.names?.first { $0.kind == .long }?.text ?? ""
        let kind = CompletionKind.value(of: long, place.verbs)
        if kind == .nothing, let all = option.allValues {
            return values(.words(all), place, current, prefix, source)
        }
        return values(kind, place, current, prefix, source)
    }

    /// - Parameter prefix: the text before the value in the same word.
    private static func values(
        _ kind: CompletionKind, _ place: Position, _ current: String, _ prefix: String, _ source: Source
    ) -> Answer {
        let found: [Candidate]
        let pipeline = place.positionals.first
        switch kind {
        case .nothing: found = []
        case .files: return .files
        case .directories: return .directories
        case .words(let words): found = words.map { Candidate(text: $0) }
        case .verbs:
            found = (place.root.subcommands ?? []).filter { $0.shouldDisplay ?? true }
                .map { Candidate(text: $0.commandName, description: $0.abstract) }
        case .pipelines where place.verbs.first == "edit" && place.flags.contains("--hook"):
            found = place.positionals.isEmpty ? source.hooks().map { Candidate(text: $0) } : []
        case .pipelines:
            found = source.pipelines(current).filter { !place.positionals.contains($0.name) }
                .map { Candidate(text: $0.name, description: $0.description ?? $0.source) }
        case .generations:
            found = (pipeline.map(source.generations) ?? []).filter(\.kept)
                .map {
                    Candidate(text: "\($0.number)", description: SizeText.bytes($0.size) + ", " + ($0.causesText ?? ""))
                }
        case .parameters:
            found = parameters(pipeline, source).filter { !place.positionals.contains($0.name) }
                .map { Candidate(text: $0.name, description: ParameterView.text($0)) }
        case .settings: found = settings(parameters(pipeline, source), current)
        case .branches: found = branches(pipeline.flatMap(source.pipeline), Array(place.positionals.dropFirst()))
        case .signals:
            // `signals fire` cannot fire these.
            let own: Set = place.verbs.last == "fire" ? ["operator", "parameter", "timer"] : []
            found = signals(source.signals().filter { !own.contains($0.name) }, place.positionals)
        case .properties: found = properties(pipeline.flatMap(source.pipeline) ?? source.pipelines("").first)
        case .examples: found = source.examples(place.flags.contains("--hook") ? .hook : .pipeline)
        case .states:
            let before = current.lastIndex(of: ",").map { String(current[...$0]) } ?? ""
            let used = Set(before.split(separator: ",").map(String.init))
            found = StateNames.known.map(\.rawValue).filter { !used.contains($0) }.map { Candidate(text: before + $0) }
        }
        return .candidates(found.map { Candidate(text: prefix + $0.text, description: $0.description) })
    }

    private static func parameters(_ pipeline: String?, _ source: Source) -> [ParameterStatus] {
        pipeline.flatMap(source.pipeline)?.parameters ?? []
    }

    /// `language=`, or after that the allowed values.
    private static func settings(_ parameters: [ParameterStatus], _ current: String) -> [Candidate] {
        guard let equals = current.firstIndex(of: "=") else {
            return parameters.map { Candidate(text: $0.name + "=", description: ParameterView.text($0)) }
        }
        let name = current[..<equals]
        return (parameters.first { $0.name == name }?.choices ?? []).map { Candidate(text: "\(name)=\($0)") }
    }

    /// The next key on the path to a branch with further pages.
    private static func branches(_ pipeline: PipelineStatus?, _ path: [String]) -> [Candidate] {
        var seen: Set<String> = []
        return (pipeline?.more?.places ?? []).compactMap { place in
            guard place.path.count > path.count, Array(place.path.prefix(path.count)) == path else { return nil }
            let key = place.path[path.count]
            return seen.insert(key).inserted ? Candidate(text: key) : nil
        }
    }

    /// The next word of a signal's name.
    private static func signals(_ signals: [SignalStatus], _ before: [String]) -> [Candidate] {
        var seen: Set<String> = []
        return signals.compactMap { signal in
            let words = signal.name.split(separator: " ").map(String.init)
            guard words.count > before.count, Array(words.prefix(before.count)) == before else { return nil }
            let word = words[before.count]
            return seen.insert(word).inserted ? Candidate(text: word, description: signal.fact) : nil
        }
    }

    private static func properties(_ pipeline: PipelineStatus?) -> [Candidate] {
        guard let pipeline else { return [] }
        var seen: Set<String> = []
        return ControlProperty.all(of: pipeline).compactMap { property in
            let name = property.name.split(separator: ".").first.map(String.init) ?? property.name
            return seen.insert(name).inserted ? Candidate(text: name) : nil
        }
    }

    /// The values of the daemon at the socket that the words or the environment name.
    private static func source(_ words: [String], _ context: CommandContext) -> Source {
        var socket = words.contains("--user") ? SocketPath.own(context) : SocketPath.find(context)
        for (index, word) in words.enumerated() {
            if word == "--socket", index + 1 < words.count { socket = words[index + 1] }
            if word.hasPrefix("--socket=") { socket = String(word.dropFirst("--socket=".count)) }
        }
        // Connects only when a value is needed: most completions need no daemon.
        func query<Answer>(_ call: (ControlClient) throws(ControlClient.Failure) -> Answer) -> Answer? {
            guard let client = try? ControlClient(path: socket) else { return nil }
            client.replyTimeout = .seconds(2)
            return try? call(client)
        }
        return Source(
            pipelines: { prefix in
                query { client throws(ControlClient.Failure) in
                    try client.pipelines(ControlMessage.List(names: [prefix + "*"], limit: mostPipelines))
                } ?? []
            },
            pipeline: { name in
                query { client throws(ControlClient.Failure) in try client.pipelines([name]) }?.first
            },
            generations: { name in
                query { client throws(ControlClient.Failure) in try client.history(of: name) }?.generations ?? []
            },
            signals: { query { client throws(ControlClient.Failure) in try client.signals() } ?? [] },
            examples: { kind in
                EditPlan.examples(in: Edit.exampleDirectories(kind, context)).sorted { $0.key < $1.key }
                    .map { Candidate(text: $0.key, description: EditPlan.summary(ofExample: $0.value)) }
            },
            hooks: { Set(EditPlan.names(.hook, EditPlan.systemDirectories)).sorted() })
    }
}

/// The position of the cursor on the command line.
private struct Position {
    let root: CommandTree
    private(set) var command: CommandTree
    private(set) var verbs: [String] = []
    private(set) var positionals: [String] = []
    /// The options without a value.
    private(set) var flags: Set<String> = []
    /// The option whose value follows.
    private(set) var awaited: CommandTree.Argument?
    /// Whether `--` has ended the options.
    private(set) var isAfterOptions = false

    init(_ words: [String], _ root: CommandTree) {
        self.root = root
        command = root
        for word in words {
            if awaited != nil {
                awaited = nil
            } else if word == "--" {
                isAfterOptions = true
            } else if !isAfterOptions, word.hasPrefix("-"), word != "-" {
                guard let argument = argument(word), argument.kind == .option else {
                    flags.insert(word)
                    continue
                }
                awaited = argument
            } else if positionals.isEmpty, let verb = command.subcommand(word) {
                command = verb
                verbs.append(word)
            } else {
                positionals.append(word)
            }
        }
    }

    /// The arguments of the verb; before a verb, the global options.
    var arguments: [CommandTree.Argument] {
        guard verbs.isEmpty else { return command.arguments ?? [] }
        let list = root.subcommand("list")?.arguments ?? []
        let everywhere = GlobalOptions.withValue.union(GlobalOptions.flags).union(["--help"])
        return (root.arguments ?? []).filter { !$0.isCalled("--help") }
            + list.filter { argument in everywhere.contains(where: argument.isCalled) }
    }

    func argument(_ name: some StringProtocol) -> CommandTree.Argument? {
        arguments.first { $0.kind != .positional && $0.isCalled(name) }
    }
}
