import FreshetModel
import FreshetVarlink

/// A synchronous, typed client of the control interface, for programs that make a few calls and end.
///
/// Use it on one thread at a time.
package final class ControlClient {
    /// Why a call failed.
    package enum Failure: Error, Hashable, Sendable {
        /// The daemon answered with an error of the interface.
        case refused(ControlError)
        /// No process listens on the socket, whose path the sentence names: the socket is missing, or a daemon that
        /// ended left it behind.
        case notRunning(String, isSocketThere: Bool)
        /// This user may not enter the socket's directory, or may not connect to the socket; the sentence names the
        /// path.
        case noAccess(String)
        /// A process listens on the socket but does not answer.
        case notAnswering
        /// The daemon closed the connection.
        case closed
        /// The service on the socket does not have the interface.
        case notFreshet
        /// The daemon does not have this method: it is older than this client.
        case noSuchMethod(String)
        /// A reply does not match the description of the interface: another version, or another program.
        case mismatch(String)
        /// An error of this machine, such as a failed system call.
        case other(String)
    }

    /// What is called when the daemon answers nobody for twice the delay; the client continues to wait.
    package struct Notice {
        package var delay: Duration
        package var body: () -> Void

        package init(after delay: Duration = ControlConnection.noticeDelay, _ body: @escaping () -> Void) {
            self.delay = delay
            self.body = body
        }
    }

    let connection: ControlConnection

    /// After this time without an answer to anybody, a client gives up.
    package static let longestSilence = ControlConnection.silence + ControlConnection.probeTimeout

    /// How long the client waits for each reply; nil: without a limit.
    package var replyTimeout: Duration? {
        get { connection.replyTimeout }
        set { connection.replyTimeout = newValue }
    }

    /// Connects. The client waits without a limit for a daemon that is working; it gives up a daemon that answers no
    /// client.
    ///
    /// - Parameters:
    ///   - path: the daemon's socket.
    ///   - silence: how long the daemon may send nothing before the client checks, on a second connection, whether the
    ///     daemon answers.
    ///   - probeTimeout: how long this check may take.
    ///   - notice: called at most once, long before the client gives up; nil: nothing is called.
    package init(
        path: String, silence: Duration = ControlConnection.silence,
        probeTimeout: Duration = ControlConnection.probeTimeout, notice: Notice? = nil
    ) throws(Failure) {
        connection = try ControlConnection(path: path, silence: silence, probeTimeout: probeTimeout, notice: notice)
    }

    package func daemon() throws(Failure) -> DaemonStatus {
        try connection.reading { () throws(Failure) in
            try connection.call("GetDaemon", as: ControlMessage.Daemon.self).daemon
        }
    }

    /// The status of the pipelines with these names, or of all, sorted by name.
    package func pipelines(_ names: [String]? = nil) throws(Failure) -> [PipelineStatus] {
        try pipelines(ControlMessage.List(names: names))
    }

    /// The status of the pipelines that a request selects, sorted by name.
    package func pipelines(_ request: ControlMessage.List) throws(Failure) -> [PipelineStatus] {
        try connection.list("List", request) { (reply: ControlMessage.Pipelines) in reply.pipelines }
    }

    /// The status of the pipelines with these names or patterns, in the order of the names.
    package func named(_ names: [String]) throws(Failure) -> [PipelineStatus] {
        PipelineSelection.ordered(try pipelines(names), as: names, by: \.name)
    }

    /// Summaries of the pipelines that a request selects, sorted by name.
    package func summaries(_ request: ControlMessage.List) throws(Failure) -> [PipelineSummary] {
        try connection.list("Summarize", request) { (reply: ControlMessage.Summaries) in reply.summaries }
    }

    /// The status of the daemon, and summaries of all pipelines or, if there are more than a limit, of those that
    /// failed or are held.
    package struct Overview: Hashable, Sendable {
        package var daemon: DaemonStatus
        package var summaries: [PipelineSummary]
        /// Whether these are all pipelines.
        package var isComplete = true
        /// Whether more pipelines than the limit failed or are held; the others are left out.
        package var isCut = false
    }

    /// The status of the daemon and summaries of pipelines. Both calls are sent together, so the client waits only
    /// once, or twice if there are more pipelines than the limit.
    ///
    /// - Parameter limit: the most summaries; nil: all pipelines.
    package func overview(limit: Int? = nil) throws(Failure) -> Overview {
        var overview = try connection.reading { () throws(Failure) in
            var summaries: [PipelineSummary] = []
            try connection.begin("GetDaemon", more: false)
            if let limit {
                try connection.begin("Summarize", ControlMessage.List(limit: Int64(limit) + 1))
            } else {
                try connection.begin("Summarize")
            }
            let daemon = try connection.takeOnly(ControlMessage.Daemon.self).daemon
            try connection.take(ControlMessage.Summaries.self) { summaries += $0.summaries }
            return Overview(daemon: daemon, summaries: summaries)
        }
        guard let limit, overview.summaries.count > limit else { return overview }
        overview.isComplete = false
        let found = try summaries(ControlMessage.List(states: [.failed, .held], limit: Int64(limit) + 1))
        (overview.summaries, overview.isCut) = (Array(found.prefix(limit)), found.count > limit)
        return overview
    }

    /// The configured inputs, signals, files and times of pipelines.
    ///
    /// - Parameter names: may be patterns; nil: all.
    package func descriptions(_ names: [String]? = nil) throws(Failure) -> [PipelineDescription] {
        try connection.list("Describe", ControlMessage.Names(names: names)) { (reply: ControlMessage.Descriptions) in
            reply.pipelines
        }
    }

    /// Counters of pipelines.
    ///
    /// - Parameter names: may be patterns; nil: all.
    package func counters(_ names: [String]? = nil) throws(Failure) -> [PipelineCounters] {
        try connection.list("Metrics", ControlMessage.Names(names: names)) { (reply: ControlMessage.Metrics) in
            reply.pipelines
        }
    }

    /// The recent events that the daemon keeps, oldest first; no event after `completeSince` is missing.
    ///
    /// - Parameter since: microseconds since 1970; nil: all events.
    package func recentEvents(
        _ names: [String]? = nil, since: Int64? = nil
    ) throws(Failure) -> (events: [ControlEvent], completeSince: Int64) {
        try connection.reading { () throws(Failure) in
            var events: [ControlEvent] = []
            var complete: Int64 = 0
            try connection.stream(
                "RecentEvents", ControlMessage.Recent(names: names, since: since), as: ControlMessage.RecentEvents.self
            ) { reply in
                events += reply.events
                complete = reply.completeSince
                return true
            }
            return (events, complete)
        }
    }

    /// Holds a pipeline; the reply says whether this changed anything.
    package func hold(_ name: String) throws(Failure) -> ControlMessage.Held {
        try connection.call("Hold", ControlMessage.Name(name: name), as: ControlMessage.Held.self)
    }

    /// Releases a pipeline; the reply says whether this changed anything.
    package func release(_ name: String) throws(Failure) -> ControlMessage.Held {
        try connection.call("Release", ControlMessage.Name(name: name), as: ControlMessage.Held.self)
    }

    /// Requests runs.
    ///
    /// - Parameters:
    ///   - request: has either names or `all`.
    ///   - each: gets the result of each pipeline as soon as it arrives.
    ///   - waiting: gets a hint for each run that waits until the network is proven reachable.
    ///   - end: the latest end; nil: no end. The requested runs go on after it.
    ///   - interval: how often `meanwhile` is called while no result arrives; nil: never.
    package func refresh(
        _ request: ControlMessage.Refresh, each: (RefreshResult) -> Void,
        waiting: (WaitingHint) -> Void = { _ in }, until end: ContinuousClock.Instant? = nil,
        every interval: Duration? = nil, meanwhile: @escaping () -> Void = {}
    ) throws(Failure) {
        try connection.stream(
            "Refresh", request, as: ControlMessage.Results.self, until: end, every: interval, meanwhile: meanwhile
        ) { reply in
            reply.waiting?.forEach(waiting)
            reply.results.forEach(each)
            return true
        }
    }

    /// Awaits runs that were requested before; see ``refresh(_:each:waiting:until:every:meanwhile:)``.
    package func awaitRuns(
        _ runs: [RequestedRun], each: (RefreshResult) -> Void, waiting: (WaitingHint) -> Void = { _ in },
        until end: ContinuousClock.Instant? = nil, every interval: Duration? = nil,
        meanwhile: @escaping () -> Void = {}
    ) throws(Failure) {
        try connection.stream(
            "AwaitRuns", ControlMessage.AwaitRuns(runs: runs), as: ControlMessage.Results.self, until: end,
            every: interval, meanwhile: meanwhile
        ) { reply in
            reply.waiting?.forEach(waiting)
            reply.results.forEach(each)
            return true
        }
    }

    /// Requests a further page.
    ///
    /// - Parameter interval: how often `meanwhile` is called while no reply arrives; nil: never.
    package func loadMore(
        _ request: ControlMessage.LoadMore, every interval: Duration? = nil, meanwhile: @escaping () -> Void = {}
    ) throws(Failure) -> LoadMoreResult {
        try connection.call(
            "LoadMore", request, as: ControlMessage.LoadedMore.self, every: interval, meanwhile: meanwhile
        ).result
    }

    /// Sets several parameters of a pipeline together: all of them, or none.
    package func setParameters(
        _ request: ControlMessage.SetParameters
    ) throws(Failure) -> ControlMessage.ParametersSet {
        try connection.call("SetParameters", request, as: ControlMessage.ParametersSet.self)
    }

    package func generation(of name: String) throws(Failure) -> GenerationStatus {
        try connection.reading { () throws(Failure) in
            try connection.call("Get", ControlMessage.Name(name: name), as: ControlMessage.Generation.self).generation
        }
    }

    /// The newest generations of a pipeline, newest first.
    package func history(of name: String, limit: Int64? = nil) throws(Failure) -> ControlMessage.PastGenerations {
        try connection.reading { () throws(Failure) in
            try connection.call(
                "History", ControlMessage.History(name: name, limit: limit), as: ControlMessage.PastGenerations.self)
        }
    }

    /// Reads a generation that is kept.
    ///
    /// - Parameter each: gets its content piece by piece, until it returns false.
    package func read(
        _ generation: Int64, of name: String, each: ([UInt8]) -> Bool
    ) throws(Failure) {
        try read("ReadGeneration", ControlMessage.Numbered(name: name, number: generation), each)
    }

    /// Reads the candidate: the content that a check rejected last.
    ///
    /// - Parameter each: gets its content piece by piece, until it returns false.
    package func readCandidate(of name: String, each: ([UInt8]) -> Bool) throws(Failure) {
        try read("ReadCandidate", ControlMessage.Name(name: name), each)
    }

    private func read(
        _ method: String, _ parameters: some Encodable, _ each: ([UInt8]) -> Bool
    ) throws(Failure) {
        var isValid = true
        try connection.stream(method, parameters, as: ControlMessage.Content.self) { reply in
            guard let bytes = Base64.bytes(of: reply.data) else {
                isValid = false
                return false
            }
            return each(bytes)
        }
        if !isValid { throw .mismatch("the content of a generation is not valid Base64") }
    }

    /// Makes a generation the current one; nil: the generation before the current one.
    package func rollBack(_ name: String, to number: Int64? = nil) throws(Failure) -> ControlMessage.RolledBack {
        try connection.call(
            "Rollback", ControlMessage.Numbered(name: name, number: number), as: ControlMessage.RolledBack.self)
    }

    /// Publishes the candidate: the content that a check rejected last.
    ///
    /// - Parameter digest: the beginning of the candidate's digest; nil: any candidate.
    package func accept(_ name: String, _ digest: String? = nil) throws(Failure) -> ControlMessage.RolledBack {
        try connection.call(
            "Accept", ControlMessage.Candidate(name: name, digest: digest), as: ControlMessage.RolledBack.self)
    }

    package func pin(_ name: String) throws(Failure) -> ControlMessage.Pinned {
        try connection.call("Pin", ControlMessage.Name(name: name), as: ControlMessage.Pinned.self)
    }

    package func unpin(_ name: String) throws(Failure) -> ControlMessage.Pinned {
        try connection.call("Unpin", ControlMessage.Name(name: name), as: ControlMessage.Pinned.self)
    }

    /// Examines the cache.
    ///
    /// - Parameter each: gets the findings, part by part.
    package func examine(
        _ request: ControlMessage.Examine, each: (ControlMessage.Examined) -> Void
    ) throws(Failure) {
        try connection.stream("Examine", request, as: ControlMessage.Examined.self) { reply in
            each(reply)
            return true
        }
    }

    /// The files in the cache of pipelines that are not configured.
    package func unowned(each: ([UnownedPipeline]) -> Void) throws(Failure) {
        try connection.stream("ListUnowned", ControlMessage.Nothing(), as: ControlMessage.Unowned.self) { reply in
            each(reply.pipelines)
            return true
        }
    }

    /// Removes all files of these pipelines. Configured pipelines are skipped.
    package func prune(_ names: [String]) throws(Failure) -> ControlMessage.Pruned {
        try connection.call("Prune", ControlMessage.Prune(names: names), as: ControlMessage.Pruned.self)
    }

    /// Follows events until `each` returns false. Throws if the daemon ends.
    ///
    /// - Parameters:
    ///   - output: the descriptor to which the caller writes the events: when its reader closes it, the stream ends.
    ///   - end: the latest end; nil: no end.
    ///   - interval: how often `meanwhile` is called while no event arrives; nil: never.
    ///   - each: first gets nil once: from then on no event is missing. Then gets each event.
    package func monitor(
        _ names: [String]? = nil, endingWithReaderOf output: Int32? = nil, until end: ContinuousClock.Instant? = nil,
        every interval: Duration? = nil, meanwhile: @escaping () -> Void = {}, each: (ControlEvent?) -> Bool
    ) throws(Failure) {
        try connection.stream(
            "Monitor", ControlMessage.Names(names: names), as: ControlMessage.Event.self, endingWithReaderOf: output,
            until: end, every: interval, meanwhile: meanwhile
        ) { reply in each(reply.event) }
    }

    package func signals() throws(Failure) -> [SignalStatus] {
        try connection.reading { () throws(Failure) in
            try connection.call("Signals", as: ControlMessage.Signals.self).signals
        }
    }

    /// Follows firings of signals and changes of their facts until `each` returns false. Throws if the daemon ends.
    ///
    /// - Parameters:
    ///   - names: names of sources or of signals; nil: all.
    ///   - output: the descriptor to which the caller writes the events: when its reader closes it, the stream ends.
    ///   - each: first gets nil once: from then on no event is missing. Then gets each event.
    package func followSignals(
        _ names: [String]? = nil, endingWithReaderOf output: Int32? = nil, each: (ControlEvent?) -> Bool
    ) throws(Failure) {
        try connection.stream(
            "FollowSignals", ControlMessage.Names(names: names), as: ControlMessage.Event.self,
            endingWithReaderOf: output
        ) { reply in each(reply.event) }
    }

    /// Fires a signal by hand; the reply has the number of pipelines that received it.
    package func fireSignal(_ name: String) throws(Failure) -> ControlMessage.Fired {
        try connection.call("FireSignal", ControlMessage.Name(name: name), as: ControlMessage.Fired.self)
    }

    /// Reloads the configuration.
    ///
    /// - Parameters:
    ///   - configurationOnly: requests only runs of new pipelines.
    ///   - refresh: also fires the signal `reload`.
    package func reload(
        configurationOnly: Bool = false, refresh: Bool = false
    ) throws(Failure) -> ControlMessage.Reloaded {
        try connection.call(
            "Reload",
            ControlMessage.Reload(configurationOnly: configurationOnly ? true : nil, refresh: refresh ? true : nil),
            as: ControlMessage.Reloaded.self)
    }

    package func logLevel() throws(Failure) -> LogLevel {
        try connection.reading { () throws(Failure) in
            try connection.call("GetLogLevel", as: ControlMessage.Level.self).level
        }
    }

    /// Sets the log level until the daemon ends.
    package func setLogLevel(_ level: LogLevel) throws(Failure) {
        _ = try connection.call("SetLogLevel", ControlMessage.Level(level: level), as: ControlMessage.Nothing.self)
    }
}
