import ArgumentParser
import FreshetControl
import FreshetRender

struct Fsck: Verb {
    static let configuration = CommandConfiguration(
        commandName: "fsck",
        abstract: "Examine the cache, and repair it.",
        discussion: """
            Reads all content and compares it with its digests, the index with the files, and the copies with their \
            generations; names what is not as it was committed, with the remedy. With --repair it removes what is damaged, \
            so that the next check fetches it anew, and puts back what can be; what is not the cache's own is moved to \
            'strays' in the cache directory. The daemon does it beside its work. Without one freshetctl becomes \
            'freshetd --fsck'.

            Exit status: 0 no faults, or all are repaired; 1 faults are left; 75 another process uses the state directory.

            Examples:
              freshetctl fsck
              freshetctl fsck --repair
            """)

    @Flag(help: "Repair what can be repaired.") var repair = false
    @Option(
        help: ArgumentHelp("The state directory of a daemon that does not run.", valueName: "path"))
    var stateDir: String?
    @Option(
        help: ArgumentHelp("The cache directory of a daemon that does not run.", valueName: "path"))
    var cacheDir: String?
    @OptionGroup var options: GlobalOptions

    func validate() throws {
        if options.socket != nil, stateDir != nil || cacheDir != nil {
            throw ValidationError(
                "--socket names a daemon that runs, and --state-dir and --cache-dir one that does not.")
        }
    }

    func run(_ session: Session) throws(CommandFailure) {
        guard stateDir == nil, cacheDir == nil else { throw session.becomeDaemon(arguments) }
        let client: ControlClient
        do throws(ControlClient.Failure) {
            client = try ControlClient(path: session.socketPath)
        } catch .notRunning where !isSocketNamed(session) {
            throw session.becomeDaemon(arguments)
        } catch {
            throw session.failure(error)
        }
        var total = ControlMessage.Examined()
        let request = ControlMessage.Examine(repair: repair ? true : nil)
        try session.asking { () throws(ControlClient.Failure) in
            try client.examine(request) { part in
                total.add(part)
                guard !options.json else { return }
                for line in part.findings.flatMap(\.lines) { session.print(DisplayText.harmless(line)) }
            }
        }
        if options.json { session.print(json: total) } else { session.say(total.total) }
        guard total.left == 0 else { throw CommandFailure(.failure) }
    }

    /// Whose directories those are that a socket's daemon would have is not known here.
    private func isSocketNamed(_ session: Session) -> Bool {
        options.socket != nil || session.context.environment["FRESHET_SOCKET"]?.isEmpty == false
    }

    private var arguments: [String] {
        var arguments = ["--fsck"]
        arguments += repair ? ["--repair"] : []
        arguments += stateDir.map { ["--state-dir", $0] } ?? []
        arguments += cacheDir.map { ["--cache-dir", $0] } ?? []
        arguments += options.json ? ["--json"] : []
        arguments += options.quiet ? ["--quiet"] : []
        return arguments
    }
}
