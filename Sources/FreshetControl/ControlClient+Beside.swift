import FreshetVarlink

/// Calls that do not wait for their replies: a program can begin several calls and do other work until replies arrive.
extension ControlClient {
    /// The socket, for poll(2): readable when a reply may have arrived.
    package var rawDescriptor: Int32 { connection.rawDescriptor }

    // MARK: Events

    /// Begins to follow events. The connection serves nothing else from then on; ``takeEvent()`` takes each event.
    package func beginMonitor(_ names: [String]? = nil) throws(Failure) {
        try connection.begin("Monitor", ControlMessage.Names(names: names))
    }

    /// The next reply, if one has arrived; never waits. The first reply has no event: from then on no event is missing.
    package func takeEvent() throws(Failure) -> ControlMessage.Event? { try connection.takeNext() }

    // MARK: Status

    /// Requests the status of the daemon, and of the pipelines that a request selects, without waiting for the replies.
    /// When ``rawDescriptor`` is readable, ``takeStatus(hasPipelines:)`` takes the replies, or throws.
    ///
    /// - Parameter request: nil: no pipelines.
    package func beginStatus(_ request: ControlMessage.List?) throws(Failure) {
        try connection.begin("GetDaemon", more: false)
        if let request { try connection.begin("List", request) }
    }

    /// - Parameter hasPipelines: whether the status of pipelines was requested too.
    package func takeStatus(
        hasPipelines: Bool
    ) throws(Failure) -> (daemon: DaemonStatus, pipelines: [PipelineStatus]) {
        let daemon = try connection.takeOnly(ControlMessage.Daemon.self).daemon
        var pipelines: [PipelineStatus] = []
        if hasPipelines { try connection.take(ControlMessage.Pipelines.self) { pipelines += $0.pipelines } }
        return (daemon, pipelines)
    }

    /// Requests runs without waiting for the results: ``takeRefreshed(each:)`` takes them.
    package func beginRefresh(_ request: ControlMessage.Refresh) throws(Failure) {
        try connection.begin("Refresh", request)
    }

    package func takeRefreshed(each: (RefreshResult) -> Void) throws(Failure) {
        try connection.take(ControlMessage.Results.self) { $0.results.forEach(each) }
    }
}
