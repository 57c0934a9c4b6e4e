import ArgumentParser
import FreshetControl
import FreshetRender

struct Wait: Verb {
    static let configuration = CommandConfiguration(
        commandName: "wait",
        abstract: "Wait until pipelines are fresh, or in a state.",
        discussion: """
            Waits until all copies are fresh, or for the goal of --state or --generation. Starts no run: use 'refresh' \
            for that. Exit status: 0 the goal is reached, 1 there is no such pipeline, 69 the daemon ended, 75 the \
            goal was not reached within --timeout.

            Examples:
              freshetctl wait jwks --timeout 30s
              freshetctl wait 'feed-*' --state loaded,failed
              freshetctl wait flags --generation 8 && restart-what-reads-it
            """)

    @Argument(help: "Pipelines, or patterns of their names.") var names: [String]
    @Flag(help: "Wait until the copies are fresh (the default).") var fresh = false
    @Option(
        help: ArgumentHelp(
            "Wait until they are in one of these states, separated by commas.", valueName: "states"))
    var state: StateNames?
    @Option(help: ArgumentHelp("Wait until they publish this generation, or a later one.", valueName: "number"))
    var generation: Int64?
    @Option(help: ArgumentHelp("Wait no longer than this, such as 30s or 5min.", valueName: "time"))
    var timeout: DurationArgument?
    @OptionGroup var options: GlobalOptions

    func validate() throws {
        let goals = [fresh, state != nil, generation != nil].count { $0 }
        if goals > 1 { throw ValidationError("Give one of --fresh, --state and --generation.") }
        if let generation, generation < 1 { throw ValidationError("--generation needs a number of at least 1.") }
    }

    func run(_ session: Session) throws(CommandFailure) {
        let end = timeout?.duration.map { ContinuousClock.now + $0 }
        let goal = goal
        // One connection receives events. Each status request has its own connection: the daemon closes idle ones.
        let monitor = try session.connect()
        let path = session.socketPath
        func fetch(within limit: Duration? = nil) -> Result<[PipelineStatus], ControlClient.Failure> {
            Result { () throws(ControlClient.Failure) in
                let client = try ControlClient(path: path)
                client.replyTimeout = limit
                return try client.pipelines(names)
            }
        }
        let progress = ProgressLine(names, in: session, goal: "waits until \(goal.words)") {
            () throws(ControlClient.Failure) in try session.connectBeside()
        }
        defer { progress.clear() }
        var status: Result<[PipelineStatus], ControlClient.Failure> = .success([])
        var reported: Set<String> = []
        try session.callDaemon { () throws(ControlClient.Failure) in
            try monitor.monitor(
                // A reload can add pipelines that match a pattern.
                names.contains(where: GlobPattern.isPattern) ? nil : names, until: end, every: progress.interval,
                meanwhile: { progress.draw() }
            ) { event in
                guard event.map(Self.mayMatter) ?? true else { return true }
                status = fetch()
                guard case .success(let pipelines) = status else { return false }
                for pipeline in pipelines where goal.isReached(pipeline) && reported.insert(pipeline.name).inserted {
                    progress.end(pipeline.name)
                    if !options.json { session.message(Self.text(pipeline)) }
                }
                return pipelines.isEmpty || !pipelines.allSatisfy(goal.isReached)
            }
        }
        progress.clear()
        // The status at the end of the time; there may have been no request yet.
        if case .success(let seen) = status, seen.isEmpty || !seen.allSatisfy(goal.isReached) {
            // Bounded: the time is over, also if the daemon does not answer.
            status = fetch(within: .seconds(2))
        }
        let pipelines: [PipelineStatus]
        switch status {
        case .success(let answer): pipelines = answer
        case .failure(let failure): throw session.failure(failure)
        }
        if options.json { session.print(json: ControlMessage.Pipelines(pipelines: pipelines)) }
        let others = pipelines.filter { !goal.isReached($0) }
        guard others.isEmpty, !pipelines.isEmpty else { throw tooLate(others, session.times) }
    }

    private var goal: Goal {
        if let state { return .state(state.states) }
        return generation.map(Goal.generation) ?? .fresh
    }

    /// The goal of the wait.
    enum Goal {
        case fresh
        case state([PipelineState])
        case generation(Int64)

        func isReached(_ pipeline: PipelineStatus) -> Bool {
            switch self {
            case .fresh: IsFresh.word(pipeline) == Freshness.fresh.rawValue
            case .state(let states): states.contains(pipeline.state)
            case .generation(let number): (pipeline.generation?.number ?? 0) >= number
            }
        }

        /// The words after "until", such as `fresh`.
        var words: String {
            switch self {
            case .fresh: "fresh"
            case .state(let states): states.map(\.rawValue).joined(separator: " or ")
            case .generation(let number): "generation \(number)"
            }
        }
    }

    private static func mayMatter(_ event: ControlEvent) -> Bool {
        switch event.kind {
        case .runStarted, .runEnded, .state, .skipped, .reloaded: true
        case .signal, .fact, .unknown: false
        }
    }

    private static func text(_ pipeline: PipelineStatus) -> String {
        let copy = pipeline.generation.map { ", generation \($0.number)" } ?? ""
        return DisplayText.harmless("\(pipeline.name): \(pipeline.state.rawValue), \(IsFresh.word(pipeline))\(copy)")
    }

    private func tooLate(_ others: [PipelineStatus], _ times: Times) -> CommandFailure {
        let span = timeout?.microseconds.map { TimeText.duration($0) } ?? ""
        guard !others.isEmpty else {
            return CommandFailure(
                .tryLater,
                DisplayText.harmless(
                    "\(names.isEmpty ? "there is no pipeline" : "no pipeline matches \(names.joined(separator: " "))")"
                        + " after \(span); 'freshetctl list' shows the names"))
        }
        // A list of all would be too long.
        let shown = others.prefix(10).map { pipeline in
            let reason = pipeline.failure.map { ": \($0.message)" } ?? pipeline.waitingDetail.map { ": \($0)" } ?? ""
            return "\(Self.text(pipeline))\(DisplayText.harmless(reason))"
        }
        let rest = others.count - shown.count
        return CommandFailure(
            .tryLater,
            (["not \(goal.words) after \(span):"] + shown + (rest > 0 ? ["and \(rest) more"] : []))
                .joined(separator: "\n"))
    }
}
