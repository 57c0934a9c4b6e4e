import ArgumentParser
import FreshetControl
import FreshetRender

struct Reload: Verb {
    static let configuration = CommandConfiguration(
        commandName: "reload",
        abstract: "Reload the configuration of the daemon.",
        discussion: """
            New pipelines run, and so do changed pipelines whose copy is not one of their configuration any more. All \
            others keep their state and their backoff, and request nothing. With --refresh, the signal 'reload' fires \
            afterwards, and pipelines that subscribe to it check their origins.

            A configuration with errors is refused: the errors are printed, the previous configuration stays active, \
            and the exit status is 78. If only the service can see an error, such as a missing credential, the other \
            pipelines are applied; the exit status is 78, too.

            With --wait, also waits for the first results of new and changed pipelines, and prints them; the exit \
            status is then that of 'refresh --wait': 0 if all succeeded, 1 if a run failed, 75 if a run was not \
            allowed yet or has not ended within --timeout.

            Examples:
              freshetctl check && freshetctl reload
              freshetctl reload --wait --timeout 30s
              freshetctl reload --refresh
              freshetctl reload --configuration-only
            """)

    @Flag(help: "Fire the signal 'reload' too: request the origins of all subscribers.") var refresh = false
    @Flag(help: "Run only new pipelines, not changed ones.") var configurationOnly = false
    @Flag(help: "Wait for the first results of new and changed pipelines.") var wait = false
    @Option(help: ArgumentHelp("With --wait: wait no longer than this, such as 30s or 5min.", valueName: "time"))
    var timeout: DurationArgument?
    @OptionGroup var options: GlobalOptions

    func validate() throws {
        if refresh && configurationOnly { throw ValidationError("Give --refresh or --configuration-only, not both.") }
        if timeout != nil && !wait { throw ValidationError("--timeout needs --wait.") }
    }

    func run(_ session: Session) throws(CommandFailure) {
        let end = timeout?.duration.map { ContinuousClock.now + $0 }
        let client = try session.connect()
        let reloaded: ControlMessage.Reloaded
        do throws(ControlClient.Failure) {
            reloaded = try client.reload(configurationOnly: configurationOnly, refresh: refresh)
        } catch {
            if case .refused(.configurationRefused(let diagnostics)) = error {
                if options.json {
                    session.print(json: ControlMessage.Diagnostics(diagnostics: diagnostics))
                } else {
                    Self.printDiagnostics(diagnostics, session)
                }
            }
            throw session.failure(error)
        }
        if !options.json {
            Self.printDiagnostics(reloaded.diagnostics, session)
            session.message(Self.text(reloaded.summary))
        } else if !wait {
            session.print(json: reloaded)
        }
        var status = ExitStatus.success
        var late: CommandFailure?
        if wait {
            let (results, isLate) = try awaitRuns(reloaded.summary.requestedRuns ?? [], client, until: end, session)
            if options.json {
                session.print(
                    json: Awaited(summary: reloaded.summary, diagnostics: reloaded.diagnostics, results: results))
            }
            status = RefreshView.status(results, waited: true)
            late = isLate
        }
        let errors = reloaded.diagnostics.count { $0.severity == .error }
        if errors > 0 {
            throw CommandFailure(
                .configuration,
                "\(Count.text(Int64(errors), "error")) above: these pipelines keep their previous configuration, or do not run; "
                    + "all others are applied. Correct the errors and reload again")
        }
        if let late { throw late }
        if status != .success { throw CommandFailure(status) }
    }

    /// The output with `--json --wait`.
    private struct Awaited: Encodable {
        var summary: ReloadSummary
        var diagnostics: [ConfigurationDiagnostic]
        var results: [RefreshResult]
    }

    /// Waits for the requested runs and prints their results.
    ///
    /// - Returns: the results, and an error if the time was over before.
    private func awaitRuns(
        _ runs: [RequestedRun], _ client: ControlClient, until end: ContinuousClock.Instant?, _ session: Session
    ) throws(CommandFailure) -> ([RefreshResult], CommandFailure?) {
        guard !runs.isEmpty else { return ([], nil) }
        let names = runs.map(\.name)
        var results: [RefreshResult] = []
        let progress = ProgressLine(names, in: session) { () throws(ControlClient.Failure) in
            try session.connectBeside()
        }
        defer { progress.clear() }
        let notice = WaitingNotice(names, in: session) { () throws(ControlClient.Failure) in try session.connectBeside()
        }
        try session.callDaemon { () throws(ControlClient.Failure) in
            try client.awaitRuns(
                runs,
                each: { result in
                    results.append(result)
                    progress.end(result.name)
                    notice.end(result.name)
                    if !options.json { RefreshView.printResult(result, waited: true, quiet: options.quiet, session) }
                },
                waiting: { hint in
                    progress.clear()
                    session.message(RefreshView.text(hint))
                }, until: end, every: progress.interval ?? notice.interval
            ) {
                if progress.interval == nil { notice.look() } else { progress.draw() }
            }
        }
        guard let end, end <= .now else { return (results, nil) }
        return (results, try RefreshView.unended(of: names, results, after: timeout, session))
    }

    /// The most errors and the most names of pipelines that are printed: the output of the unit's `ExecReload=` goes to
    /// the journal, which drops bursts of lines.
    static let errorLimit = 100
    static let nameLimit = 20

    private static func printDiagnostics(_ diagnostics: [ConfigurationDiagnostic], _ session: Session) {
        for diagnostic in diagnostics.prefix(errorLimit) {
            session.context.printError(DiagnosticView.text(diagnostic) + "\n")
        }
        let rest = diagnostics.count - errorLimit
        if rest > 0 { session.context.printError("and \(rest) more; 'freshetctl check' prints all\n") }
    }

    static func text(_ summary: ReloadSummary) -> String {
        let parts = [("added", summary.added), ("changed", summary.changed), ("removed", summary.removed)]
            .filter { !$0.1.isEmpty }
            .map { "\($0.0) \($0.1.count > nameLimit ? "\($0.1.count)" : $0.1.joined(separator: ", "))" }
        let hooks = summary.changedHooks.map { names in
            names.count > nameLimit ? "\(names.count) hooks changed" : "hooks changed: \(names.joined(separator: ", "))"
        }
        let unchanged = "\(Count.text(summary.unchanged, "pipeline")) unchanged"
        return DisplayText.harmless((parts + [hooks, unchanged].compactMap(\.self)).joined(separator: "; "))
    }
}
