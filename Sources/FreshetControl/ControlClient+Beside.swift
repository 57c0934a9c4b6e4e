import FreshetVarlink

/// Questions whose answers are taken when they have come: several at once, or beside other things.
extension ControlClient {
    /// For poll(2): readable when there may be something to take.
    package var rawDescriptor: Int32 { client.rawDescriptor }

    // MARK: Events

    /// Begins to follow what happens, on a connection of its own; the events are taken one by one.
    package func beginMonitor(_ names: [String]? = nil) throws(Failure) {
        try begin("Monitor", ControlMessage.Names(names: names))
    }

    /// The next event, if there is one; an event of nil: from here on nothing is missed. Never waits.
    package func takeEvent() throws(Failure) -> ControlMessage.Event? {
        do {
            return try client.takeReply().map { (reply) throws(VarlinkClientError) in try Self.decode(reply) }
        } catch {
            throw Self.failure(error)
        }
    }

    // MARK: Looks

    /// Asks for the daemon, and for the pipelines that a request chooses, if there is one. Waits for neither: when
    /// ``rawDescriptor`` is readable, ``takeLook(hasPipelines:)`` has the answers, or learns that there will be none.
    package func beginLook(_ request: ControlMessage.List?) throws(Failure) {
        try begin("GetDaemon", more: false)
        if let request { try begin("List", request) }
    }

    /// - Parameter hasPipelines: they were asked for.
    package func takeLook(
        hasPipelines: Bool
    ) throws(Failure) -> (daemon: DaemonStatus, pipelines: [PipelineStatus]) {
        let daemon = try takeDaemon()
        var pipelines: [PipelineStatus] = []
        if hasPipelines { try take(ControlMessage.Pipelines.self) { pipelines += $0.pipelines } }
        return (daemon, pipelines)
    }

    /// Requests runs, and does not wait for the answer: ``takeRefreshed(each:)`` has it.
    package func beginRefresh(_ request: ControlMessage.Refresh) throws(Failure) { try begin("Refresh", request) }

    package func takeRefreshed(each: (RefreshResult) -> Void) throws(Failure) {
        try take(ControlMessage.Results.self) { $0.results.forEach(each) }
    }

    // MARK: One after the other

    func begin(_ method: String, _ parameters: some Encodable) throws(Failure) {
        try begin(method, encoded: try encode(parameters))
    }

    /// - Parameters:
    ///   - parameters: none, if it has none: what is not encoded costs a program that asks and ends no time.
    ///   - more: whether it may answer several times.
    func begin(_ method: String, encoded parameters: VarlinkParameters = .none, more: Bool = true) throws(Failure) {
        do {
            try client.begin(ControlInterface.name + "." + method, parameters, more: more)
        } catch {
            throw Self.failure(error)
        }
    }

    /// Takes the answers to what was begun first of what is not answered yet.
    func take<Reply: Decodable>(_ type: Reply.Type, each: (Reply) -> Void) throws(Failure) {
        do {
            try client.takeReplies(timeout: patience) { (reply) throws(VarlinkClientError) in
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
