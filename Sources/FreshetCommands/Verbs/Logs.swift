import ArgumentParser
import FreshetControl
import FreshetRender

struct Logs: Verb {
    static let configuration = CommandConfiguration(
        commandName: "logs",
        abstract: "Show the journal of pipelines, or of the daemon.",
        discussion: """
            It is journalctl that shows it: freshetctl becomes 'journalctl --unit=freshetd.service FRESHET_PIPELINE=NAME', and \
            without a name leaves out the last part. Of a user's own daemon it is the user's journal. Without -n and --since \
            the newest is at the end, where the pager begins. Lines older than the pipeline's configuration are shown too, and \
            the daemon need not run.

            Examples:
              freshetctl logs jwks
              freshetctl logs jwks flags --since yesterday
              freshetctl logs -f
              freshetctl logs jwks -n 20 --explain
            """)

    @Argument(help: "Pipelines; the whole daemon if none is named.") var names: [String] = []
    @Flag(name: .shortAndLong, help: "Go on with what is written from now on.") var follow = false
    @Option(name: [.customShort("n"), .customLong("lines")], help: "Show the last lines only.") var lines: Int?
    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("Not before; as journalctl takes it: -1h, yesterday, '2026-11-21 14:00'.", valueName: "time")
    )
    var since: String?
    @Option(parsing: .unconditional, help: ArgumentHelp("Not after.", valueName: "time")) var until: String?
    @Flag(name: [.customShort("x"), .long], help: "Explain the messages, and say what to do (the catalog).")
    var explain = false
    @OptionGroup var options: GlobalOptions

    func validate() throws {
        if let lines, lines < 0 { throw ValidationError("-n wants a number from 0 on.") }
    }

    func run(_ session: Session) throws(CommandFailure) {
        guard let journalctl = session.context.program("journalctl") else {
            throw CommandFailure(
                .failure, "there is no journalctl here: without systemd, freshetd writes to its standard error")
        }
        if !names.isEmpty { suggest(session) }
        var arguments: [String] = []
        if options.noPager { arguments.append("--no-pager") }
        if options.quiet { arguments.append("--quiet") }
        if options.json { arguments.append("--output=json") }
        if follow { arguments.append("--follow") }
        if let lines { arguments.append("--lines=\(lines)") }
        if let since { arguments.append("--since=\(since)") }
        if let until { arguments.append("--until=\(until)") }
        if explain { arguments.append("--catalog") }
        // What is on the screen first is the newest, as in `systemctl status`.
        if !follow, lines == nil, since == nil, session.context.isTerminal { arguments.append("--pager-end") }
        arguments += Journal.matches(names, isPersonal: session.isPersonalDaemon ?? false)
        let reason = session.context.execute(journalctl, arguments)
        throw CommandFailure(.failure, "cannot execute '\(journalctl)': \(reason)")
    }

    /// A name that is no pipeline's may be one that was: its lines are shown, and the others suggested.
    private func suggest(_ session: Session) {
        guard let client = try? session.connect() else { return }
        for name in names {
            do throws(ControlClient.Failure) {
                _ = try client.pipelines([name])
            } catch .refused(.noSuchPipeline(_, let suggestion, let file)) {
                let hint = file.map { ": \($0) is not in force" } ?? suggestion.map { "; did you mean '\($0)'?" } ?? ""
                session.say(DisplayText.harmless("There is no pipeline '\(name)' now\(hint)"))
            } catch {
                return
            }
        }
    }
}
