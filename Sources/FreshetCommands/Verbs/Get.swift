import ArgumentParser
import FreshetControl
import FreshetRender
import Glibc

struct Get: Verb {
    static let configuration = CommandConfiguration(
        commandName: "get",
        abstract: "Print the content of a copy, or of an older one.",
        discussion: """
            The daemon names the file and freshetctl opens it, with the rights of whoever calls. With --json, prints where \
            the copy is instead of its content. Generations that are kept ('freshetctl history') come from the daemon, for \
            those who may read the current copy too. Of a pipeline with 'cache.files' the content is one JSON object that has \
            all files; --file prints one of them.

            Examples:
              freshetctl get jwks
              freshetctl get jwks --generation 6 >older.json
              freshetctl get trust --file roots.pem
            """)

    @Argument(help: "The pipeline.") var name: String
    @Option(help: ArgumentHelp("The generation of this number.", valueName: "number")) var generation: Int64?
    @Flag(help: "What a check refused last.") var candidate = false
    @Option(help: ArgumentHelp("One of several files (cache.files).", valueName: "file")) var file: String?
    @OptionGroup var options: GlobalOptions

    func validate() throws {
        if file != nil, options.json {
            throw ValidationError("--file prints content, and does not go with --json.")
        }
        if candidate, generation != nil || options.json {
            throw ValidationError("--candidate prints content, and goes with neither --generation nor --json.")
        }
    }

    /// Bytes copied at once.
    private static let chunk = 65_536

    func run(_ session: Session) throws(CommandFailure) {
        let client = try session.connect()
        if options.json { return try describe(session, client) }
        if let file { return try print(file, session, client) }
        var isTaken = true
        try read(session, client) { bytes in
            isTaken = session.context.outputBytes(bytes)
            return isTaken
        }
        // Why not is said for all verbs in one place.
        if !isTaken { throw CommandFailure(.failure) }
    }

    private func describe(_ session: Session, _ client: ControlClient) throws(CommandFailure) {
        guard let number = generation else {
            return session.print(json: ControlMessage.Generation(generation: try current(session, client)))
        }
        let history = try session.asking { () throws(ControlClient.Failure) in try client.history(of: name) }
        guard let generation = history.generations.first(where: { $0.number == number }) else {
            throw session.failure(
                .refused(
                    .noSuchGeneration(
                        name: name, number: number, kept: history.generations.filter(\.kept).map(\.number).sorted())
                ))
        }
        session.print(json: Shown(generation: generation))
    }

    private func current(_ session: Session, _ client: ControlClient) throws(CommandFailure) -> GenerationStatus {
        try session.asking { () throws(ControlClient.Failure) in try client.generation(of: name) }
    }

    // MARK: Content

    /// Hands the content over that is asked for, piece by piece, as long as the pieces are taken.
    private func read(
        _ session: Session, _ client: ControlClient, _ each: (ArraySlice<UInt8>) -> Bool
    ) throws(CommandFailure) {
        if candidate {
            try session.asking { () throws(ControlClient.Failure) in
                try client.readCandidate(of: name) { each($0[...]) }
            }
        } else if let generation {
            try session.asking { () throws(ControlClient.Failure) in
                try client.read(generation, of: name) { each($0[...]) }
            }
        } else {
            try read(fileAt: try current(session, client).path, each)
        }
    }

    private func read(fileAt path: String, _ each: (ArraySlice<UInt8>) -> Bool) throws(CommandFailure) {
        // An open file stays the whole copy that it is, whatever is committed meanwhile.
        let file = open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { throw unreadable(path, errno) }
        defer { close(file) }
        var buffer = [UInt8](repeating: 0, count: Self.chunk)
        while true {
            let count = Glibc.read(file, &buffer, buffer.count)
            if count == 0 { return }
            if count < 0 && errno == EINTR { continue }
            guard count > 0 else { throw unreadable(path, errno) }
            guard each(buffer[..<count]) else { return }
        }
    }

    // MARK: One of several files

    private func print(_ file: String, _ session: Session, _ client: ControlClient) throws(CommandFailure) {
        let isSet: Bool
        do throws(ControlClient.Failure) {
            isSet = try client.generation(of: name).directory != nil
        } catch .refused(.withdrawn) where candidate || generation != nil {
            // What is in the content says whether it is one.
            isSet = true
        } catch .refused(.noGeneration) where candidate {
            // What was refused may be all that there is.
            isSet = true
        } catch {
            throw session.failure(error)
        }
        guard isSet else { throw isOneFile }
        var bytes: [UInt8] = []
        try read(session, client) { piece in
            bytes += piece
            return bytes.count <= FileSet.mostBytes
        }
        guard bytes.count <= FileSet.mostBytes, let files = FileSet(bytes) else { throw isOneFile }
        guard let content = files.content(of: file) else {
            let list = files.names.joined(separator: ", ")
            let hint =
                NameSuggestion.closest(to: file, among: files.names).map { "did you mean '\($0)'? There are" }
                ?? "there are"
            throw CommandFailure(
                .failure, DisplayText.harmless("'\(name)' has no file '\(file)'; \(hint) \(list)."))
        }
        // Why not is said for all verbs in one place.
        guard session.context.outputBytes(content[...]) else { throw CommandFailure(.failure) }
    }

    private var isOneFile: CommandFailure {
        CommandFailure(.failure, DisplayText.harmless("'\(name)' is one file; leave --file out"))
    }

    /// With `--json` and a number.
    private struct Shown: Encodable {
        var generation: PastGeneration
    }

    private func unreadable(_ path: String, _ reason: Int32) -> CommandFailure {
        let text = DisplayText.harmless(
            "'\(path)': \(strerror(reason).map { String(cString: $0) } ?? "error \(reason)")")
        guard reason == EACCES || reason == EPERM else { return CommandFailure(.failure, "cannot read \(text)") }
        return CommandFailure(
            .notPermitted,
            "you may not read \(text); read it as root or as a member of its group, or set cache.mode")
    }
}
