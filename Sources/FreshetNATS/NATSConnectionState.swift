/// The state of a client's connection.
public enum NATSConnectionState: Hashable, Sendable, CustomStringConvertible {
    /// The client was not started, or has stopped.
    case stopped
    /// The network is absent.
    case waitingForNetwork
    /// A connection is being made.
    case connecting(host: String)
    case connected(host: String, NATSServerInfo)
    /// The last connection or attempt failed.
    case disconnected(NATSError, nextAttempt: ContinuousClock.Instant)
    /// A server refused the credential; attempts are hourly, whatever the network does. After a change of the
    /// credential, make another client.
    case refused(NATSError, nextAttempt: ContinuousClock.Instant)

    /// What the server says about itself; nil: there is no connection.
    public var serverInfo: NATSServerInfo? {
        guard case .connected(_, let info) = self else { return nil }
        return info
    }

    public var description: String {
        switch self {
        case .stopped: "stopped"
        case .waitingForNetwork: "waiting for the network"
        case .connecting(let host): "connecting to \(host)"
        case .connected(let host, let info): "connected to \(host), nats-server \(Text.escaped(info.version))"
        case .disconnected(let error, _), .refused(let error, _): error.description
        }
    }
}

/// An event of a client's connection.
public enum NATSEvent: Hashable, Sendable {
    case state(NATSConnectionState)
    /// The server reported an error that does not end the connection, such as a missing right; the text is escaped.
    case serverError(String)
}
