import ArgumentParser
import FreshetControl
import FreshetRender

struct Logs: Verb {
    static let configuration = CommandConfiguration(
        commandName: "logs",
        abstract: "Show the journal of pipelines, or of the daemon.",
        discussion: """
            Executes 'journalctl --unit=freshetd.service FRESHET_PIPELINE=NAME', or without a name all entries of the \
            unit. For a user's own daemon, reads the user's journal. Without -n and --since, the pager starts at the \
            end, with the newest entries. Entries of removed pipelines are shown too. The daemon does not have to run.

            Examples:
              freshetctl logs jwks
              freshetctl logs jwks flags --since yesterday
              freshetctl logs -f
              freshetctl logs jwks -n 20 --explain
            """)

    @Argument(help: "Pipelines; without a name, the whole daemon.") var names: [String] = []
    @Flag(name: .shortAndLong, help: "Show new entries as they are written.") var follow = false
    @Option(
        name: [.customShort("n", allowingJoined: true), .customLong("lines")],
        help: "Show only this many entries, the last.") var lines: Int?
    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "Show entries since this time, as in journalctl: -1h, yesterday, '2026-11-21 14:00'.", valueName: "time")
    )
    var since: String?
    @Option(parsing: .unconditional, help: ArgumentHelp("Show entries until this time.", valueName: "time")) var until:
        String?
    @Flag(name: [.customShort("x"), .long], help: "Explain each message and its remedy (from the catalog).")
    var explain = false
    @OptionGroup var options: GlobalOptions

    func validate() throws {
        if let lines, lines < 0 { throw ValidationError("-n needs a number of at least 0.") }
    }

    func run(_ session: Session) throws(CommandFailure) {
        guard let journalctl = session.context.program("journalctl") else {
            throw CommandFailure(
                .failure, "journalctl is not installed; without systemd, freshetd logs to its standard error")
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
        // The screen shows the newest entries first.
        if !follow, lines == nil, since == nil, session.context.isTerminal { arguments.append("--pager-end") }
        arguments += Journal.matches(names, isPersonal: session.isPersonalDaemon ?? false)
        let reason = session.context.execute(journalctl, arguments)
        throw CommandFailure(.failure, "cannot execute '\(journalctl)': \(reason)")
    }

    /// Suggests similar names for an unknown name. Its entries are shown too: the pipeline may have been removed.
    private func suggest(_ session: Session) {
        guard let client = try? session.connect() else { return }
        for name in names {
            do throws(ControlClient.Failure) {
                _ = try client.pipelines([name])
            } catch .refused(.noSuchPipeline(_, let suggestion, let file)) {
                let hint = file.map { ": \($0) is not active" } ?? suggestion.map { "; did you mean '\($0)'?" } ?? ""
                session.message(DisplayText.harmless("There is no pipeline '\(name)' now\(hint)"))
            } catch {
                return
            }
        }
    }
}
