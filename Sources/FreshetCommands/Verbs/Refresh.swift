import ArgumentParser
import FreshetControl
import FreshetRender

struct Refresh: Verb {
    static let configuration = CommandConfiguration(
        commandName: "refresh",
        abstract: "Run pipelines now.",
        discussion: """
            With --wait, shows the progress on a terminal, or elsewhere what each run waits for, prints the outcome of \
            each run, and succeeds if all outcomes are changed or unchanged. With --all and --wait, the last line has \
            the totals. Exit status 75: an origin (Retry-After) or a budget allows a request only later, and nothing \
            was started; or a run has not ended within --timeout, and goes on.

            Examples:
              freshetctl refresh jwks --wait
              freshetctl refresh 'feed-*'
              freshetctl refresh --all
              freshetctl refresh jwks --wait --timeout 30s
              freshetctl refresh jwks --force --wait
              freshetctl refresh jwks --unconditional --wait
            """)

    @Argument(help: "Pipelines, or patterns of their names.") var names: [String] = []
    @Flag(help: "Refresh all pipelines.") var all = false
    @Flag(help: "Wait until the runs have ended.") var wait = false
    @Option(help: ArgumentHelp("With --wait: wait no longer than this, such as 30s or 5min.", valueName: "time"))
    var timeout: DurationArgument?
    @Flag(help: "Ignore Retry-After and budgets.") var force = false
    @Flag(help: "Request the whole content, without validators of the copy.") var unconditional = false
    @OptionGroup var options: GlobalOptions

    func validate() throws {
        if all && !names.isEmpty { throw ValidationError("Name pipelines, or give --all, but not both.") }
        if !all && names.isEmpty { throw ValidationError("Name the pipelines to refresh, or give --all.") }
        if timeout != nil && !wait { throw ValidationError("--timeout needs --wait.") }
    }

    func run(_ session: Session) throws(CommandFailure) {
        let client = try session.connect()
        let request = ControlMessage.Refresh(
            names: all ? nil : try session.expanded(names, client), all: all ? true : nil, wait: wait ? true : nil,
            force: force ? true : nil, unconditional: unconditional ? true : nil)
        var results: [RefreshResult] = []
        let progress = ProgressLine(request.names, in: session) { () throws(ControlClient.Failure) in
            try session.connectBeside()
        }
        defer { progress.clear() }
        let notice = WaitingNotice(request.names, in: session) { () throws(ControlClient.Failure) in
            try session.connectBeside()
        }
        let began = ContinuousClock.now
        let end = timeout?.duration.map { began + $0 }
        try session.callDaemon { () throws(ControlClient.Failure) in
            try client.refresh(
                request,
                each: { result in
                    results.append(result)
                    progress.end(result.name)
                    notice.end(result.name)
                    if !options.json {
                        RefreshView.printResult(result, waited: wait, quiet: options.quiet, session)
                    }
                },
                waiting: { hint in
                    progress.clear()
                    session.message(RefreshView.text(hint))
                }, until: end, every: wait ? progress.interval ?? notice.interval : nil
            ) {
                if progress.interval == nil { notice.look() } else { progress.draw() }
            }
        }
        if options.json { session.print(json: ControlMessage.Results(results: results)) }
        if let end, end <= .now,
            let failure = try RefreshView.unended(of: request.names, results, after: timeout, session)
        {
            throw failure
        }
        if all, wait, !options.json, !options.quiet {
            session.print(RefreshView.total(results, in: began.duration(to: .now)))
        }
        let status = RefreshView.status(results, waited: wait)
        if status != .success { throw CommandFailure(status) }
    }
}
