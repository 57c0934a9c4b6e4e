import FreshetVarlink

/// The interface as a program that asks and ends wants it: synchronous and typed.
///
/// One thread at a time.
package final class ControlClient {
    /// Why a call failed.
    package enum Failure: Error, Hashable, Sendable {
        /// The daemon answered with an error of the interface.
        case refused(ControlError)
        /// Nobody listens; the sentence says where. There is no socket, or one that its daemon has left behind.
        case notRunning(String, isSocketThere: Bool)
        /// The socket's directory, or the socket, is closed to this user; the sentence says which.
        case noAccess(String)
        /// Somebody listens, and says nothing.
        case notAnswering
        /// The daemon closed the connection.
        case closed
        /// Somebody listens, and does not have the interface.
        case notFreshet
        /// The daemon does not have this method: it is older than this client.
        case noSuchMethod(String)
        /// What came is not what the interface describes: another version, or another program.
        case mismatch(String)
        /// Something of this machine.
        case other(String)
    }

    let client: VarlinkClient
    /// The longest that an answer, or each part of one, is waited for; nil: as long as it takes.
    package var patience: Duration?

    /// How long the daemon may say nothing before it is asked, on a connection of its own, whether it answers at all.
    package static let silence: Duration = .seconds(15)
    /// How long the answer to that may take. Together it is what D-Bus clients give a service.
    private static let proof: Duration = .seconds(10)

    /// A daemon that is at work may take as long as it takes for an answer; one that answers nobody is given up.
    ///
    /// - Parameters:
    ///   - path: of the daemon's socket.
    ///   - silence: as ``silence``.
    ///   - proof: how long the answer may take to whether it answers.
    package init(
        path: String, silence: Duration = ControlClient.silence, proof: Duration = ControlClient.proof
    ) throws(Failure) {
        do {
            client = try VarlinkClient(path: path, timeout: silence + proof)
        } catch {
            throw Self.failure(error)
        }
        client.silence = VarlinkClient.Silence(length: silence) { rest in
            Self.answers(at: path, within: rest.map { min($0, proof) } ?? proof)
        }
    }

    private static func answers(at path: String, within limit: Duration) -> Bool {
        do {
            try VarlinkClient(path: path, timeout: limit).call("org.varlink.service.GetInfo", timeout: limit)
            return true
        } catch .timedOut {
            return false
        } catch {
            // Somebody answered, and be it that there is no room. Where nobody listens any more, the connection that waits
            // has its end.
            return true
        }
    }

    package func daemon() throws(Failure) -> DaemonStatus {
        try call("GetDaemon", as: ControlMessage.Daemon.self).daemon
    }

    /// The pipelines of these names, or all, by name.
    package func pipelines(_ names: [String]? = nil) throws(Failure) -> [PipelineStatus] {
        try pipelines(ControlMessage.List(names: names))
    }

    /// The pipelines that a request chooses, by name.
    package func pipelines(_ request: ControlMessage.List) throws(Failure) -> [PipelineStatus] {
        var pipelines: [PipelineStatus] = []
        try stream("List", request, as: ControlMessage.Pipelines.self) { reply in
            pipelines += reply.pipelines
            return true
        }
        return pipelines
    }

    /// Those of these names, or patterns of names, in the order in which they are given.
    package func named(_ names: [String]) throws(Failure) -> [PipelineStatus] {
        PipelineSelection.ordered(try pipelines(names), as: names, by: \.name)
    }

    /// Pipelines in short: those that a request chooses, by name.
    package func summaries(_ request: ControlMessage.List) throws(Failure) -> [PipelineSummary] {
        var summaries: [PipelineSummary] = []
        try stream("Summarize", request, as: ControlMessage.Summaries.self) { reply in
            summaries += reply.summaries
            return true
        }
        return summaries
    }

    /// The daemon, and all pipelines in short. Both are asked for at once, so that the daemon is waited for only once.
    package func overview() throws(Failure) -> (daemon: DaemonStatus, summaries: [PipelineSummary]) {
        var summaries: [PipelineSummary] = []
        // Neither has parameters.
        try begin("GetDaemon", more: false)
        try begin("Summarize")
        let daemon = try takeDaemon()
        try take(ControlMessage.Summaries.self) { summaries += $0.summaries }
        return (daemon, summaries)
    }

    /// How pipelines are wired: those of these names, which may be patterns, or all.
    package func descriptions(_ names: [String]? = nil) throws(Failure) -> [PipelineDescription] {
        var pipelines: [PipelineDescription] = []
        try stream("Describe", ControlMessage.Names(names: names), as: ControlMessage.Descriptions.self) { reply in
            pipelines += reply.pipelines
            return true
        }
        return pipelines
    }

    /// What pipelines have done: those of these names, which may be patterns, or all.
    package func counters(_ names: [String]? = nil) throws(Failure) -> [PipelineCounters] {
        var pipelines: [PipelineCounters] = []
        try stream("Metrics", ControlMessage.Names(names: names), as: ControlMessage.Metrics.self) { reply in
            pipelines += reply.pipelines
            return true
        }
        return pipelines
    }

    /// What the daemon remembers of what has happened, oldest first; after `completeSince` nothing is missing.
    ///
    /// - Parameter since: microseconds since 1970; nil: all of it.
    package func recentEvents(
        _ names: [String]? = nil, since: Int64? = nil
    ) throws(Failure) -> (events: [ControlEvent], completeSince: Int64) {
        var events: [ControlEvent] = []
        var complete: Int64 = 0
        try stream(
            "RecentEvents", ControlMessage.Recent(names: names, since: since), as: ControlMessage.RecentEvents.self
        ) { reply in
            events += reply.events
            complete = reply.completeSince
            return true
        }
        return (events, complete)
    }

    /// Returns whether it was not held before.
    package func hold(_ name: String) throws(Failure) -> ControlMessage.Held {
        try call("Hold", ControlMessage.Name(name: name), as: ControlMessage.Held.self)
    }

    /// Returns whether it was held before.
    package func release(_ name: String) throws(Failure) -> ControlMessage.Held {
        try call("Release", ControlMessage.Name(name: name), as: ControlMessage.Held.self)
    }

    /// Requests runs.
    ///
    /// - Parameters:
    ///   - request: its names or `all` are to be given.
    ///   - each: gets each pipeline's result as it comes in.
    ///   - waiting: hears of runs that wait for a proof of the network.
    ///   - interval: how often `meanwhile` is called while no result comes; nil: never.
    package func refresh(
        _ request: ControlMessage.Refresh, each: (RefreshResult) -> Void,
        waiting: (WaitingHint) -> Void = { _ in }, every interval: Duration? = nil,
        meanwhile: @escaping () -> Void = {}
    ) throws(Failure) {
        try stream(
            "Refresh", request, as: ControlMessage.Results.self, every: interval, meanwhile: meanwhile
        ) { reply in
            reply.waiting?.forEach(waiting)
            reply.results.forEach(each)
            return true
        }
    }

    /// Requests a further page.
    ///
    /// - Parameter interval: how often `meanwhile` is called while the answer does not come; nil: never.
    package func loadMore(
        _ request: ControlMessage.LoadMore, every interval: Duration? = nil, meanwhile: @escaping () -> Void = {}
    ) throws(Failure) -> LoadMoreResult {
        try call("LoadMore", request, as: ControlMessage.LoadedMore.self, every: interval, meanwhile: meanwhile).result
    }

    /// Sets parameters of a pipeline, all together.
    package func setParameters(
        _ request: ControlMessage.SetParameters
    ) throws(Failure) -> ControlMessage.ParametersSet {
        try call("SetParameters", request, as: ControlMessage.ParametersSet.self)
    }

    package func generation(of name: String) throws(Failure) -> GenerationStatus {
        try call("Get", ControlMessage.Name(name: name), as: ControlMessage.Generation.self).generation
    }

    /// The newest generations of a pipeline, newest first.
    package func history(of name: String, limit: Int64? = nil) throws(Failure) -> ControlMessage.PastGenerations {
        try call(
            "History", ControlMessage.History(name: name, limit: limit), as: ControlMessage.PastGenerations.self)
    }

    /// Reads a generation that is kept.
    ///
    /// - Parameter each: gets its content piece by piece, until it returns false.
    package func read(
        _ generation: Int64, of name: String, each: ([UInt8]) -> Bool
    ) throws(Failure) {
        try read("ReadGeneration", ControlMessage.Numbered(name: name, number: generation), each)
    }

    /// Reads what a check refused last, in the same way.
    package func readCandidate(of name: String, each: ([UInt8]) -> Bool) throws(Failure) {
        try read("ReadCandidate", ControlMessage.Name(name: name), each)
    }

    private func read(
        _ method: String, _ parameters: some Encodable, _ each: ([UInt8]) -> Bool
    ) throws(Failure) {
        var isSound = true
        try stream(method, parameters, as: ControlMessage.Content.self) { reply in
            guard let bytes = Base64.bytes(of: reply.data) else {
                isSound = false
                return false
            }
            return each(bytes)
        }
        if !isSound { throw .mismatch("what should be a generation's content is not Base64") }
    }

    /// Makes a generation the current one; nil: the one before.
    package func rollBack(_ name: String, to number: Int64? = nil) throws(Failure) -> ControlMessage.RolledBack {
        try call(
            "Rollback", ControlMessage.Numbered(name: name, number: number), as: ControlMessage.RolledBack.self)
    }

    /// Makes what a check refused the copy.
    ///
    /// - Parameter digest: how the digest begins of what is meant; nil: whatever it is.
    package func accept(_ name: String, _ digest: String? = nil) throws(Failure) -> ControlMessage.RolledBack {
        try call(
            "Accept", ControlMessage.Candidate(name: name, digest: digest), as: ControlMessage.RolledBack.self)
    }

    package func pin(_ name: String) throws(Failure) -> ControlMessage.Pinned {
        try call("Pin", ControlMessage.Name(name: name), as: ControlMessage.Pinned.self)
    }

    package func unpin(_ name: String) throws(Failure) -> ControlMessage.Pinned {
        try call("Unpin", ControlMessage.Name(name: name), as: ControlMessage.Pinned.self)
    }

    /// Has the cache examined.
    ///
    /// - Parameter each: gets what was found, part by part.
    package func examine(
        _ request: ControlMessage.Examine, each: (ControlMessage.Examined) -> Void
    ) throws(Failure) {
        try stream("Examine", request, as: ControlMessage.Examined.self) { reply in
            each(reply)
            return true
        }
    }

    /// What the cache has of pipelines that are not configured.
    package func unowned(each: ([UnownedPipeline]) -> Void) throws(Failure) {
        try stream("ListUnowned", ControlMessage.Nothing(), as: ControlMessage.Unowned.self) { reply in
            each(reply.pipelines)
            return true
        }
    }

    /// Removes all that there is of these pipelines, but of those that are configured.
    package func prune(_ names: [String]) throws(Failure) -> ControlMessage.Pruned {
        try call("Prune", ControlMessage.Prune(names: names), as: ControlMessage.Pruned.self)
    }

    /// Follows what happens, until `each` returns false, or the daemon ends, which throws.
    ///
    /// - Parameters:
    ///   - output: a descriptor that the events go to: when its reader goes away, the stream ends.
    ///   - end: when it ends at the latest; nil: never.
    ///   - interval: how often `meanwhile` is called while nothing happens; nil: never.
    ///   - each: gets nil once, when from then on nothing is missed; then each event.
    package func monitor(
        _ names: [String]? = nil, endingWithReaderOf output: Int32? = nil, until end: ContinuousClock.Instant? = nil,
        every interval: Duration? = nil, meanwhile: @escaping () -> Void = {}, each: (ControlEvent?) -> Bool
    ) throws(Failure) {
        try stream(
            "Monitor", ControlMessage.Names(names: names), as: ControlMessage.Event.self, endingWithReaderOf: output,
            until: end, every: interval, meanwhile: meanwhile
        ) { reply in each(reply.event) }
    }

    package func signals() throws(Failure) -> [SignalStatus] {
        try call("Signals", as: ControlMessage.Signals.self).signals
    }

    /// Follows the occurrences of signals and their facts, until `each` returns false, or the daemon ends, which throws.
    ///
    /// - Parameters:
    ///   - names: of sources or of signals; nil: all.
    ///   - output: as of ``monitor(_:endingWithReaderOf:each:)``.
    ///   - each: gets nil once, when from then on nothing is missed; then each event.
    package func followSignals(
        _ names: [String]? = nil, endingWithReaderOf output: Int32? = nil, each: (ControlEvent?) -> Bool
    ) throws(Failure) {
        try stream(
            "FollowSignals", ControlMessage.Names(names: names), as: ControlMessage.Event.self,
            endingWithReaderOf: output
        ) { reply in each(reply.event) }
    }

    /// Fires a signal by hand; returns how many pipelines heard it.
    package func fireSignal(_ name: String) throws(Failure) -> ControlMessage.Fired {
        try call("FireSignal", ControlMessage.Name(name: name), as: ControlMessage.Fired.self)
    }

    package func reload(configurationOnly: Bool = false) throws(Failure) -> ControlMessage.Reloaded {
        try call(
            "Reload", ControlMessage.Reload(configurationOnly: configurationOnly), as: ControlMessage.Reloaded.self)
    }

    package func logLevel() throws(Failure) -> LogLevel {
        try call("GetLogLevel", as: ControlMessage.Level.self).level
    }

    /// Lasts until the daemon ends.
    package func setLogLevel(_ level: LogLevel) throws(Failure) {
        _ = try call("SetLogLevel", ControlMessage.Level(level: level), as: ControlMessage.Nothing.self)
    }

    // MARK: Calls

    private func call<Reply: Decodable>(
        _ method: String, _ parameters: some Encodable = ControlMessage.Nothing(), as type: Reply.Type,
        every interval: Duration? = nil, meanwhile: @escaping () -> Void = {}
    ) throws(Failure) -> Reply {
        let encoded = try encode(parameters)
        do {
            return try Self.decode(
                try client.call(
                    ControlInterface.name + "." + method, encoded, timeout: patience, every: interval,
                    meanwhile: meanwhile))
        } catch {
            throw Self.failure(error)
        }
    }

    private func stream<Reply: Decodable>(
        _ method: String, _ parameters: some Encodable, as type: Reply.Type, endingWithReaderOf output: Int32? = nil,
        until end: ContinuousClock.Instant? = nil, every interval: Duration? = nil,
        meanwhile: @escaping () -> Void = {}, each: (Reply) -> Bool
    ) throws(Failure) {
        let encoded = try encode(parameters)
        do {
            try client.callMore(
                ControlInterface.name + "." + method, encoded, timeout: patience, until: end,
                endingWithReaderOf: output,
                every: interval, meanwhile: meanwhile
            ) {
                (reply: VarlinkParameters) throws(VarlinkClientError) -> Bool in
                each(try Self.decode(reply))
            }
        } catch {
            throw Self.failure(error)
        }
    }

    func encode(_ parameters: some Encodable) throws(Failure) -> VarlinkParameters {
        do {
            return try VarlinkParameters(encoding: parameters)
        } catch {
            throw .mismatch("the parameters cannot be written as JSON")
        }
    }

    static func decode<Reply: Decodable>(_ reply: VarlinkParameters) throws(VarlinkClientError) -> Reply {
        do {
            return try reply.decode()
        } catch {
            throw .violation("a reply does not have the type that the interface describes")
        }
    }

    /// An error that is not one of the interface.
    private static func failure(_ reply: VarlinkErrorReply, _ description: String) -> Failure {
        switch reply.name {
        case VarlinkErrorReply.Name.interfaceNotFound: .notFreshet
        case VarlinkErrorReply.Name.methodNotFound, VarlinkErrorReply.Name.methodNotImplemented:
            .noSuchMethod((try? reply.parameters.decode(as: [String: String].self))?["method"] ?? "")
        default: .mismatch(description)
        }
    }

    static func failure(_ error: VarlinkClientError) -> Failure {
        switch error {
        case .refused(let reply): ControlError(reply).map(Failure.refused) ?? failure(reply, error.description)
        case .unreachable:
            error.isPermissionDenied
                ? .noAccess(error.description)
                : .notRunning(error.description, isSocketThere: error.isDeserted)
        case .closed: .closed
        case .violation: .mismatch(error.description)
        case .timedOut: .notAnswering
        case .interrupted, .system: .other(error.description)
        }
    }
}
