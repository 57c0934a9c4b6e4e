import ArgumentParser
import FreshetControl
import FreshetRender

struct Get: Verb {
    static let configuration = CommandConfiguration(
        commandName: "get",
        abstract: "Print the content of a copy.",
        discussion: """
            Prints the current copy, or a kept generation ('freshetctl history'). The daemon sends the content to \
            users who may read the published file. With --json, prints the path and the properties of the copy. If the \
            pipeline has 'cache.files', the content is one JSON object with all files; --file prints one of them.

            Examples:
              freshetctl get jwks
              freshetctl get jwks --generation 6 >older.json
              freshetctl get trust --file roots.pem
            """)

    @Argument(help: "The pipeline.") var name: String
    @Option(help: ArgumentHelp("Print this generation.", valueName: "number")) var generation: Int64?
    @Flag(help: "Print the content that a check rejected last.") var candidate = false
    @Option(help: ArgumentHelp("Print this one of several files (cache.files).", valueName: "file")) var file: String?
    @OptionGroup var options: GlobalOptions

    func validate() throws {
        if file != nil, options.json {
            throw ValidationError("--file cannot be combined with --json.")
        }
        if candidate, generation != nil || options.json {
            throw ValidationError("--candidate cannot be combined with --generation or --json.")
        }
    }

    func run(_ session: Session) throws(CommandFailure) {
        let client = try session.connect()
        if options.json { return try describe(session, client) }
        if let file { return try print(file, session, client) }
        var isTaken = true
        try read(session, client) { bytes in
            isTaken = session.context.outputBytes(bytes)
            return isTaken
        }
        // The reason is printed in one place for all verbs (``Freshetctl``).
        if !isTaken { throw CommandFailure(.failure) }
    }

    /// Attempts to read the current generation while commits replace it.
    private static let mostAttempts = 5

    private func describe(_ session: Session, _ client: ControlClient) throws(CommandFailure) {
        guard let number = generation else {
            return session.print(json: ControlMessage.Generation(generation: try current(session, client)))
        }
        let history = try session.callDaemon { () throws(ControlClient.Failure) in try client.history(of: name) }
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
        try session.callDaemon { () throws(ControlClient.Failure) in try client.generation(of: name) }
    }

    // MARK: Content

    /// Reads the requested content, piece by piece, until `each` returns false.
    private func read(
        _ session: Session, _ client: ControlClient, _ each: (ArraySlice<UInt8>) -> Bool
    ) throws(CommandFailure) {
        if candidate {
            try session.callDaemon { () throws(ControlClient.Failure) in
                try client.readCandidate(of: name) { each($0[...]) }
            }
        } else if let generation {
            try session.callDaemon { () throws(ControlClient.Failure) in
                try client.read(generation, of: name) { each($0[...]) }
            }
        } else {
            try readCurrent(session, client, each)
        }
    }

    /// Reads the current generation from the daemon, which opens the file with its own rights and checks the digest:
    /// the daemon's user can replace the file that the daemon names, also by a link to a file that only the caller may
    /// read.
    private func readCurrent(
        _ session: Session, _ client: ControlClient, _ each: (ArraySlice<UInt8>) -> Bool
    ) throws(CommandFailure) {
        for attempt in 1... {
            let generation = try current(session, client)
            do throws(ControlClient.Failure) {
                return try client.read(generation.number, of: name) { each($0[...]) }
            } catch .refused(.noSuchGeneration) where attempt < Self.mostAttempts {
                // A commit removed the generation after the daemon named it.
                continue
            } catch .refused(.notReadable) where session.context.user != 0 {
                // The daemon judges by modes; an access control list can allow more.
                return try read(generation, session, each)
            } catch {
                throw session.failure(error)
            }
        }
    }

    /// Reads the published file with the caller's rights.
    private func read(
        _ generation: GenerationStatus, _ session: Session, _ each: (ArraySlice<UInt8>) -> Bool
    ) throws(CommandFailure) {
        do throws(PublishedFile.Failure) {
            let file = try PublishedFile(
                generation.path, ownedAs: EditedFile.directory(of: session.socketPath))
            guard file.size == generation.size else {
                throw PublishedFile.Failure(
                    reason: "it has \(file.size) bytes, and generation \(generation.number) has \(generation.size)")
            }
            try file.read(each)
        } catch {
            throw unreadable(generation.path, error)
        }
    }

    // MARK: One of several files

    private func print(_ file: String, _ session: Session, _ client: ControlClient) throws(CommandFailure) {
        let isSet: Bool
        do throws(ControlClient.Failure) {
            isSet = try client.generation(of: name).directory != nil
        } catch .refused(.withdrawn) where candidate || generation != nil {
            // The content shows whether there are several files.
            isSet = true
        } catch .refused(.noGeneration) where candidate {
            // Rejected content can exist without a copy.
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
                NameSuggestion.closest(to: file, among: files.names).map { "; did you mean '\($0)'? Its" } ?? "; its"
            throw CommandFailure(
                .failure, DisplayText.harmless("'\(name)' has no file '\(file)'\(hint) files are \(list)"))
        }
        // The reason is printed in one place for all verbs (``Freshetctl``).
        guard session.context.outputBytes(content[...]) else { throw CommandFailure(.failure) }
    }

    private var isOneFile: CommandFailure {
        CommandFailure(.failure, DisplayText.harmless("'\(name)' is one file; omit --file"))
    }

    /// The output with `--json` and a number.
    private struct Shown: Encodable {
        var generation: PastGeneration
    }

    private func unreadable(_ path: String, _ failure: PublishedFile.Failure) -> CommandFailure {
        let text = DisplayText.harmless("'\(path)': \(failure.reason)")
        guard failure.isPermissionDenied else { return CommandFailure(.failure, "cannot read \(text)") }
        return CommandFailure(
            .notPermitted,
            "permission denied: cannot read \(text); be root or a member of its group, or set cache.mode")
    }
}
