import FreshetControl
import FreshetRender

/// The results of runs that a command waits for.
extension RefreshView {
    /// The failure of a command whose time is over, with the runs that have not ended; nil: all have ended.
    ///
    /// - Parameter names: names of pipelines or patterns; nil: all pipelines.
    static func unended(
        of names: [String]?, _ results: [RefreshResult], after timeout: DurationArgument?, _ session: Session
    ) throws(CommandFailure) -> CommandFailure? {
        let ended = Set(results.map(\.name))
        let pipelines = try session.callDaemon { () throws(ControlClient.Failure) in
            // Bounded: the time is over, also if the daemon does not answer.
            let client = try ControlClient(path: session.socketPath)
            client.replyTimeout = .seconds(2)
            return try client.pipelines(names)
        }
        let others = pipelines.filter { !ended.contains($0.name) }
        guard !others.isEmpty else { return nil }
        let span = timeout?.microseconds.map { TimeText.duration($0) } ?? ""
        // A list of all would be too long.
        let shown = others.prefix(10).map { pipeline in
            DisplayText.harmless(
                "\(pipeline.name): \(WaitingNotice.reason(pipeline) ?? pipeline.state.rawValue)"
                    + (pipeline.waitingDetail.map { ": \($0)" } ?? ""))
        }
        let rest = others.count - shown.count
        return CommandFailure(
            .tryLater,
            (["not ended after \(span); the requested runs go on:"] + shown + (rest > 0 ? ["and \(rest) more"] : []))
                .joined(separator: "\n"))
    }

    /// Prints an outcome on standard output, a request without `--wait` as a message, and a failure also with
    /// `--quiet`.
    static func printResult(_ result: RefreshResult, waited: Bool, quiet: Bool, _ session: Session) {
        let line = text(result, waited: waited, session.times)
        if status([result], waited: waited) != .success {
            session.context.printError(line + "\n")
        } else if !waited {
            session.message(line)
        } else if !quiet {
            session.print(line)
        }
    }
}
