import ArgumentParser
import FreshetControl
import FreshetRender
import Glibc

struct Get: Verb {
    static let configuration = CommandConfiguration(
        abstract: "Print the content of a pipeline's current copy.",
        discussion: """
            The daemon names the file and freshetctl opens it, with the rights of whoever calls. With --json, prints where \
            the copy is instead of its content.
            """)

    @Argument(help: "The pipeline.") var name: String
    @OptionGroup var options: GlobalOptions

    /// Bytes copied at once.
    private static let chunk = 65_536

    func run(_ session: Session) throws(CommandFailure) {
        let client = try session.connect()
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

    private func unreadable(_ path: String, _ reason: Int32) -> CommandFailure {
        let text = DisplayText.harmless(
            "'\(path)': \(strerror(reason).map { String(cString: $0) } ?? "error \(reason)")")
        guard reason == EACCES || reason == EPERM else { return CommandFailure(.failure, "cannot read \(text)") }
        return CommandFailure(
            .notPermitted,
            "you may not read \(text); read it as root or as a member of its group, or set cache.mode")
    }
}
