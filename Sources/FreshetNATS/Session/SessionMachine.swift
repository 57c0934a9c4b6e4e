/// Decides about the connection of a client: when to connect and to which server, what a server's answers mean, and
/// when a silent connection has ended. A pure struct: time and random numbers are parameters.
///
/// | phase | event | next phase |
/// | --- | --- | --- |
/// | waiting | the time of the attempt | connecting |
/// | connecting | libcurl has connected | greeting: INFO must come |
/// | greeting | INFO | authenticating: CONNECT and PING were sent |
/// | authenticating | PONG | connected |
/// | any with a connection | an error, or a timeout | waiting |
/// | any | the network is absent | absent, until it is present |
struct SessionMachine: Sendable {
    typealias Instant = ContinuousClock.Instant

    /// What the executor has to do.
    enum Action: Hashable, Sendable {
        case none
        case connect(server: Int)
        /// Send CONNECT, with the signature of the nonce, and PING.
        case authenticate
        /// Send the subscriptions.
        case establish
        case ping
        /// Close the connection; everything that waited for it fails.
        case close
    }

    private enum Phase: Hashable {
        case stopped
        case absent
        case waiting(ReconnectSchedule.Attempt)
        case connecting(server: Int)
        case greeting(server: Int, until: Instant)
        case authenticating(server: Int, until: Instant)
        case connected(server: Int, since: Instant)
    }

    private let hosts: [String]
    private let timing: NATSTiming
    private var schedule: ReconnectSchedule
    private var phase = Phase.stopped
    private var epoch: UInt64 = 0
    private var isNetworkPresent = true
    private var lastError: NATSError?
    /// The last error that the server sent on this connection, and when.
    private var serverError: (text: String, at: Instant)?
    private(set) var info = NATSServerInfo()
    /// When the client has to send PING if nothing arrives; or, after PING, when the connection has ended.
    private var keepalive: Instant?
    private var isPingSent = false

    /// - Parameters:
    ///   - hosts: the servers, for messages.
    ///   - fraction: a random number from 0 to 1.
    init(hosts: [String], timing: NATSTiming, fraction: Double) {
        self.hosts = hosts
        self.timing = timing
        schedule = ReconnectSchedule(servers: hosts.count, timing: timing, fraction: fraction)
    }

    var isConnected: Bool {
        guard case .connected = phase else { return false }
        return true
    }

    /// Whether the first PONG is expected: it completes the handshake.
    var isAuthenticating: Bool {
        guard case .authenticating = phase else { return false }
        return true
    }

    var state: NATSConnectionState {
        switch phase {
        case .stopped: return .stopped
        case .absent: return .waitingForNetwork
        case .connecting(let server), .greeting(let server, _), .authenticating(let server, _):
            return .connecting(host: hosts[server])
        case .connected(let server, _): return .connected(host: hosts[server], info)
        case .waiting(let attempt):
            let error = lastError ?? .notConnected
            return schedule.isRefused
                ? .refused(error, nextAttempt: attempt.at) : .disconnected(error, nextAttempt: attempt.at)
        }
    }

    /// When ``tick(at:fraction:)`` has to be called; nil: not at all.
    var deadline: Instant? {
        switch phase {
        case .stopped, .absent, .connecting: nil
        case .waiting(let attempt): attempt.at
        case .greeting(_, let deadline), .authenticating(_, let deadline): deadline
        case .connected: keepalive
        }
    }

    // MARK: Events

    mutating func start(at now: Instant) -> Action {
        guard phase == .stopped else { return .none }
        guard isNetworkPresent else {
            phase = .absent
            return .none
        }
        phase = .waiting(schedule.first(at: now))
        return tick(at: now, fraction: 0)
    }

    mutating func stop() -> Action {
        phase = .stopped
        return .close
    }

    /// A deadline may have passed.
    mutating func tick(at now: Instant, fraction: Double) -> Action {
        guard let deadline, deadline <= now else { return .none }
        switch phase {
        case .stopped, .absent, .connecting: return .none  // without a deadline
        case .waiting(let attempt):
            phase = .connecting(server: attempt.server)
            serverError = nil
            return .connect(server: attempt.server)
        case .greeting(let server, _), .authenticating(let server, _):
            return ended(
                .connectionFailed(
                    host: hosts[server],
                    reason: "the server did not answer within \(timing.handshakeTimeout.components.seconds) s"),
                at: now, fraction: fraction)
        case .connected(let server, _):
            guard !isPingSent else {
                return ended(
                    .connectionFailed(host: hosts[server], reason: "the server does not answer"), at: now,
                    fraction: fraction)
            }
            isPingSent = true
            keepalive = now + timing.pongTimeout
            return .ping
        }
    }

    /// libcurl has made the connection.
    mutating func connected(at now: Instant) -> Action {
        guard case .connecting(let server) = phase else { return .none }
        phase = .greeting(server: server, until: now + timing.handshakeTimeout)
        return .none
    }

    /// Bytes arrived: the server lives.
    mutating func received(at now: Instant) {
        guard case .connected = phase else { return }
        let next = now + timing.silence
        // The deadline moves by steps, so that a busy connection does not set the timer with each message.
        guard isPingSent || next - (keepalive ?? now) > timing.silence / 8 else { return }
        isPingSent = false
        keepalive = next
    }

    /// INFO arrived.
    ///
    /// - Parameter usesTLS: whether the connection is encrypted.
    mutating func received(
        _ info: NATSServerInfo, usesTLS: Bool, at now: Instant, fraction: Double
    ) -> Action {
        switch phase {
        case .greeting(let server, let deadline):
            self.info = info
            guard usesTLS || !info.requiresTLS else {
                return ended(.tlsRequired(host: hosts[server]), at: now, fraction: fraction)
            }
            phase = .authenticating(server: server, until: deadline)
            return .authenticate
        case .connected(let server, _):
            self.info = info
            // With a single server there is no other one to use until it closes the connection.
            guard info.isShuttingDown, hosts.count > 1 else { return .none }
            return ended(
                .closed(host: hosts[server], reason: "the server shuts down"), at: now, fraction: fraction)
        case .authenticating, .connecting, .waiting, .absent, .stopped:
            self.info = info
            return .none
        }
    }

    mutating func receivedPong(at now: Instant) -> Action {
        guard case .authenticating(let server, _) = phase else { return .none }
        phase = .connected(server: server, since: now)
        schedule.accepted(by: server)
        lastError = nil
        isPingSent = false
        keepalive = now + timing.silence
        return .establish
    }

    /// The server sent an error; if it is fatal, the server closes the connection immediately afterwards.
    mutating func received(error text: String, at now: Instant) { serverError = (text, now) }

    /// The connection, or the attempt, ended. Returns `close`, unless there was none.
    mutating func ended(_ error: NATSError, at now: Instant, fraction: Double) -> Action {
        guard let server else { return .none }
        lastError = explained(error, server, now)
        keepalive = nil
        let attempt: ReconnectSchedule.Attempt
        if case .refused = lastError {
            attempt = schedule.refused(by: server, at: now, fraction: fraction)
        } else if case .connected(_, let since) = phase {
            attempt = schedule.ended(server, after: now - since, at: now, fraction: fraction)
        } else {
            attempt = schedule.failed(server, at: now, fraction: fraction)
        }
        phase = .waiting(attempt)
        return .close
    }

    /// The network changed. Connections of earlier epochs may lead nowhere, so they are dropped.
    ///
    /// - Parameter number: the epoch; an earlier one than the present is ignored.
    mutating func network(epoch number: UInt64, isPresent: Bool, at now: Instant, fraction: Double) -> Action {
        guard number >= epoch else { return .none }
        let isOther = number > epoch || isPresent != isNetworkPresent
        epoch = number
        isNetworkPresent = isPresent
        guard isOther, phase != .stopped else { return .none }
        let hadConnection = server != nil
        keepalive = nil
        if isPresent {
            if hadConnection { lastError = .connectionLost }
            phase = .waiting(schedule.networkChanged(at: now, fraction: fraction))
        } else {
            phase = .absent
        }
        return hadConnection ? .close : .none
    }

    // MARK: -

    /// The server of the connection, or of the attempt in progress.
    var server: Int? {
        switch phase {
        case .stopped, .absent, .waiting: nil
        case .connecting(let server), .greeting(let server, _), .authenticating(let server, _),
            .connected(let server, _):
            server
        }
    }

    /// How long an error of the server explains the end of the connection: afterwards, it was not fatal.
    private static let explanationLifetime: Duration = .seconds(5)

    /// The error with the reason that the server gave before.
    private func explained(_ error: NATSError, _ server: Int, _ now: Instant) -> NATSError {
        switch error {
        case .closed, .connectionFailed: break
        default: return error  // the client ended the connection, and knows why
        }
        guard let (text, since) = serverError, now - since <= Self.explanationLifetime else { return error }
        return Self.isRefusal(text)
            ? .refused(host: hosts[server], reason: text) : .closed(host: hosts[server], reason: text)
    }

    /// Whether an error of nats-server is about the credential (errors.go).
    static func isRefusal(_ text: String) -> Bool {
        let text = text.lowercased()
        return [
            "authorization violation", "user authentication", "account authentication", "authentication revoked",
            "authentication expired",
        ].contains { text.hasPrefix($0) }
    }
}
