import ArgumentParser
import FreshetControl
import FreshetRender
import Glibc

struct Get: Verb {
    static let configuration = CommandConfiguration(
        abstract: "Print the content of a copy, or of an older one.",
        discussion: """
            The daemon names the file and freshetctl opens it, with the rights of whoever calls. With --json, prints where \
            the copy is instead of its content. Generations that are kept ('freshetctl history') come from the daemon, for \
            those who may read the current copy too.
            """)

    @Argument(help: "The pipeline.") var name: String
    @Option(help: ArgumentHelp("The generation of this number.", valueName: "number")) var generation: Int64?
    @Flag(help: "What a check refused last.") var candidate = false
    @OptionGroup var options: GlobalOptions

    func validate() throws {
        if candidate, generation != nil || options.json {
            throw ValidationError("--candidate prints content, and goes with neither --generation nor --json.")
        }
    }

    /// Bytes copied at once.
    private static let chunk = 65_536

    func run(_ session: Session) throws(CommandFailure) {
        let client = try session.connect()
        if candidate {
            return try print(session) { (each) throws(ControlClient.Failure) in
                try client.readCandidate(of: name, each: each)
            }
        }
        if let number = self.generation { return try get(number, session, client) }
        let generation = try session.asking { () throws(ControlClient.Failure) in try client.generation(of: name) }
        if options.json { return session.print(json: ControlMessage.Generation(generation: generation)) }
        // An open file stays the whole copy that it is, whatever is committed meanwhile.
        let file = open(generation.path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { throw unreadable(generation.path, errno) }
        defer { close(file) }
        var buffer = [UInt8](repeating: 0, count: Self.chunk)
        while true {
            let count = read(file, &buffer, buffer.count)
            if count == 0 { return }
            if count < 0 && errno == EINTR { continue }
            guard count > 0 else { throw unreadable(generation.path, errno) }
            // Why not is said for all verbs in one place.
            guard session.context.outputBytes(buffer[..<count]) else { throw CommandFailure(.failure) }
        }
    }

    private func get(_ number: Int64, _ session: Session, _ client: ControlClient) throws(CommandFailure) {
        guard !options.json else {
            let history = try session.asking { () throws(ControlClient.Failure) in try client.history(of: name) }
            guard let generation = history.generations.first(where: { $0.number == number }) else {
                throw session.failure(
                    .refused(
                        .noSuchGeneration(
                            name: name, number: number, kept: history.generations.filter(\.kept).map(\.number).sorted())
                    ))
            }
            return session.print(json: Shown(generation: generation))
        }
        try print(session) { (each) throws(ControlClient.Failure) in try client.read(number, of: name, each: each) }
    }

    private func print(
        _ session: Session, _ read: (([UInt8]) -> Bool) throws(ControlClient.Failure) -> Void
    ) throws(CommandFailure) {
        var isTaken = true
        try session.asking { () throws(ControlClient.Failure) in
            try read { bytes in
                isTaken = session.context.outputBytes(bytes[...])
                return isTaken
            }
        }
        // Why not is said for all verbs in one place.
        if !isTaken { throw CommandFailure(.failure) }
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
