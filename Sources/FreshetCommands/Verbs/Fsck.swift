import ArgumentParser
import FreshetControl
import FreshetRender

struct Fsck: Verb {
    static let configuration = CommandConfiguration(
        commandName: "fsck",
        abstract: "Check and repair the cache.",
        discussion: """
            Reads all content and compares it with its digests, the index with the files, and the copies with their \
            generations. Prints each difference with its remedy. --repair restores files where possible and removes \
            damaged ones, so that the next run fetches them again; it moves files that do not belong to the cache to \
            'strays' in the cache directory. The daemon does this during normal operation. If no daemon runs, \
            freshetctl executes 'freshetd --fsck'.

            Exit status: 0 no errors, or all are repaired; 1 errors remain; 75 another process uses the state \
            directory.

            Examples:
              freshetctl fsck
              freshetctl fsck --repair
            """)

    @Flag(help: "Repair the errors that can be repaired.") var repair = false
    @Option(
        help: ArgumentHelp("Check this state directory, without a daemon.", valueName: "path"))
    var stateDir: String?
    @Option(
        help: ArgumentHelp("Check this cache directory, without a daemon.", valueName: "path"))
    var cacheDir: String?
    @OptionGroup var options: GlobalOptions

    func validate() throws {
        if options.socket != nil, stateDir != nil || cacheDir != nil {
            throw ValidationError(
                "Give --socket, or --state-dir and --cache-dir, but not both.")
        }
    }

    func run(_ session: Session) throws(CommandFailure) {
        guard stateDir == nil, cacheDir == nil else { throw session.becomeDaemon(arguments) }
        let client: ControlClient
        do throws(ControlClient.Failure) {
            client = try ControlClient(path: session.socketPath, notice: session.notice)
        } catch .notRunning where !isSocketNamed(session) {
            throw session.becomeDaemon(arguments)
        } catch {
            throw session.failure(error)
        }
        var total = ControlMessage.Examined()
        let request = ControlMessage.Examine(repair: repair ? true : nil)
        try session.callDaemon { () throws(ControlClient.Failure) in
            try client.examine(request) { part in
                total.add(part)
                guard !options.json else { return }
                for line in part.findings.flatMap(\.lines) { session.print(DisplayText.harmless(line)) }
            }
        }
        if options.json { session.print(json: total) } else { session.message(total.total) }
        guard total.left == 0 else { throw CommandFailure(.failure) }
    }

    /// Whether the caller names a socket: the directories of its daemon are unknown here.
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
