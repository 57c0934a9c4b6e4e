import ArgumentParser
import FreshetControl

struct Refresh: Verb {
    static let configuration = CommandConfiguration(
        commandName: "refresh",
        abstract: "Run pipelines now.",
        discussion: """
            With --wait, shows on a terminal how far the runs are, prints what came of each and succeeds if all are \
            changed or unchanged. Exit status 75 says that an origin or a budget asks for patience, and that nothing \
            was started.

            Examples:
              freshetctl refresh jwks --wait
              freshetctl refresh 'feed-*'
              freshetctl refresh --all
              freshetctl refresh jwks --force --wait
              freshetctl refresh jwks --unconditional --wait
            """)

    @Argument(help: "Pipelines, or patterns of their names.") var names: [String] = []
    @Flag(help: "Refresh all pipelines.") var all = false
    @Flag(help: "Wait until the runs have ended.") var wait = false
    @Flag(help: "Pass the origin's Retry-After, and budgets.") var force = false
    @Flag(help: "Ask for the whole content, without validators of the copy.") var unconditional = false
    @OptionGroup var options: GlobalOptions

    func validate() throws {
        if all && !names.isEmpty { throw ValidationError("Name pipelines, or give --all, but not both.") }
        if !all && names.isEmpty { throw ValidationError("Name the pipelines to refresh, or give --all.") }
    }

    func run(_ session: Session) throws(CommandFailure) {
        let client = try session.connect()
        let request = ControlMessage.Refresh(
            names: all ? nil : try session.expanded(names, client), all: all ? true : nil, wait: wait ? true : nil,
            force: force ? true : nil, unconditional: unconditional ? true : nil)
        var results: [RefreshResult] = []
        let progress = ProgressLine(request.names, in: session) { try? session.connect() }
        defer { progress.clear() }
        try session.asking { () throws(ControlClient.Failure) in
            try client.refresh(
                request,
                each: { result in
                    results.append(result)
                    progress.end(result.name)
                    if !options.json { tell(result, session) }
                },
                waiting: { hint in
                    progress.clear()
                    session.say(RefreshView.text(hint))
                }, every: wait ? progress.interval : nil
            ) {
                progress.draw()
            }
        }
        if options.json { session.print(json: ControlMessage.Results(results: results)) }
        let status = RefreshView.status(results, waited: wait)
        if status != .success { throw CommandFailure(status) }
    }

    /// An outcome is data; that something was requested is talk; what went wrong is said even when quiet.
    private func tell(_ result: RefreshResult, _ session: Session) {
        let line = RefreshView.text(result, waited: wait, session.times)
        if RefreshView.status([result], waited: wait) != .success {
            session.context.talk(line + "\n")
        } else if !wait {
            session.say(line)
        } else if !options.quiet {
            session.print(line)
        }
    }
}
