import ArgumentParser
import FreshetControl

struct Refresh: Verb {
    static let configuration = CommandConfiguration(
        commandName: "refresh",
        abstract: "Run pipelines now.",
        discussion: """
            With --wait, shows the progress on a terminal, prints the outcome of each run, and succeeds if all \
            outcomes are changed or unchanged. Exit status 75: an origin (Retry-After) or a budget allows a request \
            only later, and nothing was started.

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
    @Flag(help: "Ignore Retry-After and budgets.") var force = false
    @Flag(help: "Request the whole content, without validators of the copy.") var unconditional = false
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
        try session.callDaemon { () throws(ControlClient.Failure) in
            try client.refresh(
                request,
                each: { result in
                    results.append(result)
                    progress.end(result.name)
                    if !options.json { printResult(result, session) }
                },
                waiting: { hint in
                    progress.clear()
                    session.message(RefreshView.text(hint))
                }, every: wait ? progress.interval : nil
            ) {
                progress.draw()
            }
        }
        if options.json { session.print(json: ControlMessage.Results(results: results)) }
        let status = RefreshView.status(results, waited: wait)
        if status != .success { throw CommandFailure(status) }
    }

    /// Prints an outcome on standard output, a request without `--wait` as a message, and a failure also with
    /// `--quiet`.
    private func printResult(_ result: RefreshResult, _ session: Session) {
        let line = RefreshView.text(result, waited: wait, session.times)
        if RefreshView.status([result], waited: wait) != .success {
            session.context.printError(line + "\n")
        } else if !wait {
            session.message(line)
        } else if !options.quiet {
            session.print(line)
        }
    }
}
