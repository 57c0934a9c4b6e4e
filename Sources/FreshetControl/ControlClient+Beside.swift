import FreshetVarlink

/// Calls that do not wait for their replies: a program can begin several calls and do other work until replies arrive.
extension ControlClient {
    /// The socket, for poll(2): readable when a reply may have arrived.
    package var rawDescriptor: Int32 { client.rawDescriptor }

    // MARK: Events

    /// Begins to follow events. The connection serves nothing else from then on; ``takeEvent()`` takes each event.
    package func beginMonitor(_ names: [String]? = nil) throws(Failure) {
        try begin("Monitor", ControlMessage.Names(names: names))
    }

    /// The next reply, if one has arrived; never waits. The first reply has no event: from then on no event is missing.
    package func takeEvent() throws(Failure) -> ControlMessage.Event? {
        do {
            return try client.takeReply().map { (reply) throws(VarlinkClientError) in try Self.decode(reply) }
        } catch {
            throw Self.failure(error)
        }
    }

    // MARK: Status

    /// Requests the status of the daemon, and of the pipelines that a request selects, without waiting for the replies.
    /// When ``rawDescriptor`` is readable, ``takeStatus(hasPipelines:)`` takes the replies, or throws.
    ///
    /// - Parameter request: nil: no pipelines.
    package func beginStatus(_ request: ControlMessage.List?) throws(Failure) {
        try begin("GetDaemon", more: false)
        if let request { try begin("List", request) }
    }

    /// - Parameter hasPipelines: whether the status of pipelines was requested too.
    package func takeStatus(
        hasPipelines: Bool
    ) throws(Failure) -> (daemon: DaemonStatus, pipelines: [PipelineStatus]) {
        let daemon = try takeDaemon()
        var pipelines: [PipelineStatus] = []
        if hasPipelines { try take(ControlMessage.Pipelines.self) { pipelines += $0.pipelines } }
        return (daemon, pipelines)
    }

    /// Requests runs without waiting for the results: ``takeRefreshed(each:)`` takes them.
    package func beginRefresh(_ request: ControlMessage.Refresh) throws(Failure) { try begin("Refresh", request) }

    package func takeRefreshed(each: (RefreshResult) -> Void) throws(Failure) {
        try take(ControlMessage.Results.self) { $0.results.forEach(each) }
    }

    // MARK: Calls

    func begin(_ method: String, _ parameters: some Encodable) throws(Failure) {
        try begin(method, encoded: try encode(parameters))
    }

    /// - Parameters:
    ///   - parameters: ``VarlinkParameters/none`` if the method has none: a short program saves the time of encoding.
    ///   - more: whether the method may send several replies.
    func begin(_ method: String, encoded parameters: VarlinkParameters = .none, more: Bool = true) throws(Failure) {
        do {
            try client.begin(ControlInterface.name + "." + method, parameters, more: more)
        } catch {
            throw Self.failure(error)
        }
    }

    /// Takes the replies to the oldest call whose replies have not been taken.
    func take<Reply: Decodable>(_ type: Reply.Type, each: (Reply) -> Void) throws(Failure) {
        do {
            try client.takeReplies(timeout: replyTimeout) { (reply) throws(VarlinkClientError) in
                each(try Self.decode(reply))
                return true
            }
        } catch {
            throw Self.failure(error)
        }
    }

    func takeDaemon() throws(Failure) -> DaemonStatus {
        var daemon: DaemonStatus?
        try take(ControlMessage.Daemon.self) { daemon = $0.daemon }
        guard let daemon else { throw .closed }
        return daemon
    }
}
