public import FreshetEventLoop
import Synchronization

/// A client of NATS on an event loop: one connection to one of several servers, which is made again when it breaks.
///
/// ```swift
/// let client = NATSClient(loop, NATSConfiguration(servers: [try NATSServerAddress("https://nats1.example")], name: "a"))
/// async let running: Void = client.run()
/// let reply = try await client.request(try NATSSubject("time"), timeout: .seconds(2))
/// ```
///
/// It is isolated to its loop's thread and needs no other thread, except libcurl's while it looks up a name. Its methods
/// may be called from any thread. An idle client keeps one socket and one timer; only the server's PING wakes it.
///
/// - Nothing is stored while there is no connection: an operation fails with ``NATSError/notConnected``. A request whose
///   connection ends fails with ``NATSError/connectionLost``, and the server may have received it.
/// - Subscriptions continue after a reconnect, with a ``NATSDelivery/resubscribed`` where messages may be missing.
/// - The connection belongs to a network epoch (``beginEpoch(_:isNetworkPresent:)``).
/// - Addresses of other servers in INFO are ignored: the client connects only to its configured servers.
public actor NATSClient {
    /// The library's version in CONNECT.
    static let version = "0.1.0"
    /// The subscription for replies.
    static let inboxNumber: UInt64 = 1
    /// The pieces of 16 KiB that are processed before other work of the loop has its turn.
    static let piecesPerTurn = 4
    /// The most lookups of names that hang, each of which keeps a thread of libcurl (see `AbandonedLookups` of the
    /// HTTP client).
    static let mostAbandonedLookups = 4
    /// The longest time of a lookup: resolv.conf(5) has a timeout of 5 s, 2 attempts and at most 3 name servers.
    static let lookupLifetime: Duration = .seconds(30)

    /// The state of the connection and its changes, the newest 32; for one reader.
    public nonisolated let events: AsyncStream<NATSEvent>

    let loop: EventLoop
    let configuration: NATSConfiguration
    let publishEvent: AsyncStream<NATSEvent>.Continuation
    let fraction: @Sendable () -> Double
    /// `PREFIX.UNIQUE.`, which a token follows.
    let inbox: String
    var machine: SessionMachine
    var requests: RequestTable<CheckedContinuation<RequestOutcome, Never>>
    var subscriptions = SubscriptionTable()
    var parser: NATSParser
    /// The tokens of the PONGs that are expected, in the order of PING; nil: PING of the client itself.
    var pongs: [UInt64?] = []
    var connection: NATSConnection?
    /// Distinguishes events of the connection from those of earlier ones.
    var serial: UInt64 = 0
    var planned = PlannedWork()
    var timer: LoopTimer?
    var armed: ContinuousClock.Instant?
    var abandonedLookups: [ContinuousClock.Instant] = []
    private var runner: CheckedContinuation<Void, Never>?
    private var hasStopped = false
    var lastState = NATSConnectionState.stopped

    public nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    /// Makes a client that does nothing until ``run()``.
    ///
    /// - Parameters:
    ///   - loop: the loop that drives the client.
    ///   - configuration: at least one server.
    public init(_ loop: EventLoop, _ configuration: NATSConfiguration) {
        self.init(loop, configuration) { Double.random(in: 0..<1) }
    }

    /// - Parameter fraction: random numbers from 0 to 1 for delays; tests have their own.
    init(_ loop: EventLoop, _ configuration: NATSConfiguration, fraction: @escaping @Sendable () -> Double) {
        self.loop = loop
        self.configuration = configuration
        self.fraction = fraction
        (events, publishEvent) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(32))
        // 128 random bits: other clients cannot guess the subject of a reply.
        inbox =
            "\(configuration.inboxPrefix).\(String(UInt64.random(in: 0...(.max)), radix: 36))"
            + "\(String(UInt64.random(in: 0...(.max)), radix: 36))."
        machine = SessionMachine(
            hosts: configuration.servers.map(\.description), timing: configuration.timing, fraction: fraction())
        requests = RequestTable(limit: configuration.limits.requests)
        parser = NATSParser(limits: Self.parserLimits(configuration))
    }

    private static func parserLimits(_ configuration: NATSConfiguration) -> NATSParser.Limits {
        var limits = NATSParser.Limits()
        limits.payload = configuration.limits.payload
        return limits
    }

    // MARK: Running

    /// Connects, and keeps the connection until the task is cancelled. Then the connection is closed, requests fail
    /// with ``NATSError/stopped``, and subscriptions end. A client runs once.
    public func run() async {
        guard timer == nil, !configuration.servers.isEmpty else { return }
        timer = LoopTimer(loop, named: "NATS") { [weak self] in self?.assumeIsolated { $0.timeIsUp() } }
        perform(machine.start(at: .now))
        settle()
        await withTaskCancellationHandler {
            await withCheckedContinuation { waiter in
                if Task.isCancelled { waiter.resume() } else { runner = waiter }
            }
        } onCancel: {
            loop.perform(named: "NATS") { [weak self] in
                self?.assumeIsolated { client in
                    client.runner?.resume()
                    client.runner = nil
                }
            }
        }
        stop()
    }

    private func stop() {
        hasStopped = true
        _ = connection?.flush()
        _ = machine.stop()
        drop(.stopped)
        for buffer in subscriptions.removeAll() { buffer.finish(.success(())) }
        settle()
        publishEvent.finish()
        timer?.disarm()
    }

    /// The state of the connection.
    public var state: NATSConnectionState { machine.state }

    /// Begins a network epoch: the connection is dropped and made again, after a random delay of at most
    /// ``NATSTiming/backoff``. While the network is absent, the client waits without a connection.
    ///
    /// - Parameters:
    ///   - number: the epoch. An earlier one than the present is ignored; the same number only changes the presence.
    ///   - isNetworkPresent: whether a connection can be made at all.
    public func beginEpoch(_ number: UInt64, isNetworkPresent: Bool = true) {
        perform(machine.network(epoch: number, isPresent: isNetworkPresent, at: .now, fraction: fraction()))
        settle()
    }

    // MARK: Operations

    /// Sends a message to the subscribers of a subject. It returns before the message is sent; ``flush(timeout:)`` waits
    /// until the server has it.
    ///
    /// - Parameters:
    ///   - subject: the subject.
    ///   - payload: the content; with the headers at most ``NATSServerInfo/maxPayload`` bytes.
    ///   - headers: the headers; their status is not sent.
    ///   - reply: the subject for replies.
    public func publish(
        _ subject: NATSSubject, _ payload: [UInt8] = [], headers: NATSHeaders = NATSHeaders(),
        reply: NATSSubject? = nil
    ) throws(NATSError) {
        let connection = try presentConnection()
        let block = headers.block
        guard block.isEmpty || machine.info.supportsHeaders else { throw .headersUnsupported }
        // Each count is the count of an array in memory, so the sum cannot overflow.
        let size = block.count + payload.count
        guard size <= machine.info.maxPayload else { throw .payloadTooLarge(size, limit: machine.info.maxPayload) }
        let line = ClientOperation.publish(
            subject, reply: reply, headerBytes: block.count, payloadBytes: payload.count)
        guard connection.canSend(line.utf8.count + size + 2) else {
            throw .outgoingBufferFull(limit: configuration.limits.outgoing)
        }
        connection.send(line.utf8)
        connection.send(block)
        connection.send(payload)
        connection.send("\r\n".utf8)
        planFlush()
    }

    /// Sends a request and waits for the first reply.
    ///
    /// - Parameters:
    ///   - subject: the subject.
    ///   - payload: the content.
    ///   - headers: the headers.
    ///   - timeout: for the reply.
    /// - Throws: ``NATSError/noResponders``, ``NATSError/timedOut``, ``NATSError/connectionLost`` and others.
    public func request(
        _ subject: NATSSubject, _ payload: [UInt8] = [], headers: NATSHeaders = NATSHeaders(), timeout: Duration
    ) async throws(NATSError) -> NATSMessage {
        let replies = try await exchange(subject, payload, headers, .single, timeout)
        guard let reply = replies.first else { throw .timedOut }  // a single request has one reply
        return reply
    }

    /// Sends a request and waits for several replies: until an empty message with the status 204, which ends a batch of
    /// JetStream's `DIRECT.GET` and is not returned, or until a reply of which the caller says that it is the last.
    ///
    /// - Parameters:
    ///   - subject: the subject.
    ///   - payload: the content.
    ///   - headers: the headers.
    ///   - timeout: for each reply.
    ///   - limits: the most replies; more fail with ``NATSError/repliesTooLarge``.
    ///   - isLast: called on the loop's thread for each reply.
    public func requestSeveral(
        _ subject: NATSSubject, _ payload: [UInt8] = [], headers: NATSHeaders = NATSHeaders(), timeout: Duration,
        limits: NATSReplyLimits = NATSReplyLimits(), isLast: @escaping @Sendable (NATSMessage) -> Bool = { _ in false }
    ) async throws(NATSError) -> [NATSMessage] {
        try await exchange(subject, payload, headers, .several(limits, isLast: isLast), timeout)
    }

    /// Waits until the server has processed all earlier operations.
    public func flush(timeout: Duration) async throws(NATSError) {
        _ = try await exchange(nil, [], NATSHeaders(), .flush, timeout)
    }

    /// Subscribes to subjects. While there is no connection, the subscription waits for one.
    ///
    /// - Parameters:
    ///   - pattern: the subjects.
    ///   - limits: the buffer between the connection and the reader.
    public func subscribe(
        _ pattern: NATSSubjectPattern, limits: NATSBufferLimits = NATSBufferLimits()
    ) throws(NATSError) -> NATSSubscription {
        guard !hasStopped else { throw .stopped }
        guard subscriptions.count < configuration.limits.subscriptions else {
            throw .tooManySubscriptions(limit: configuration.limits.subscriptions)
        }
        let buffer = SubscriptionBuffer(limits: limits)
        let number = subscriptions.add(pattern, buffer)
        if machine.isConnected {
            transmit(ClientOperation.subscribe(pattern, number: number))
            if machine.isConnected { subscriptions.sent(number) }
        }
        return NATSSubscription(pattern, buffer) { [weak self, loop] in
            loop.perform(named: "NATS") { [weak self] in self?.assumeIsolated { $0.unsubscribe(number) } }
        }
    }

    private func unsubscribe(_ number: UInt64) {
        guard subscriptions.remove(number), machine.isConnected else { return }
        transmit(ClientOperation.unsubscribe(number: number))
    }

    private func presentConnection() throws(NATSError) -> NATSConnection {
        guard !hasStopped else { throw .stopped }
        guard machine.isConnected, let connection else { throw .notConnected }
        return connection
    }

    /// - Parameter subject: nil for a flush.
    private func exchange(
        _ subject: NATSSubject?, _ payload: [UInt8], _ headers: NATSHeaders,
        _ kind: RequestKind, _ timeout: Duration
    ) async throws(NATSError) -> [NATSMessage] {
        let token = requests.makeToken()
        let result = await withTaskCancellationHandler {
            await withCheckedContinuation { waiter in
                // All in one step, because other jobs may run before this closure: the reply must find its request.
                do throws(NATSError) {
                    try begin(token, subject, payload, headers)
                    requests.add(
                        token, kind, subject: subject?.description ?? "", timeout: timeout, at: .now, waiter)
                    settle()
                } catch {
                    waiter.resume(returning: .failure(error))
                }
            }
        } onCancel: {
            loop.perform(named: "NATS") { [weak self] in self?.assumeIsolated { $0.end(token, .failure(.cancelled)) } }
        }
        return try result.get()
    }

    /// Sends a request, or PING for a flush.
    private func begin(
        _ token: UInt64, _ subject: NATSSubject?, _ payload: [UInt8], _ headers: NATSHeaders
    ) throws(NATSError) {
        // A later cancellation finds the request in the table.
        guard !Task.isCancelled else { throw .cancelled }
        guard !requests.isFull else { throw .tooManyRequests(limit: requests.limit) }
        if let subject {
            if let refusal = requests.refusal { throw refusal }
            try publish(subject, payload, headers: headers, reply: NATSSubject(trusted: "\(inbox)\(token)"))
        } else {
            _ = try presentConnection()
            // The answer to PING is expected even if the request is cancelled meanwhile.
            guard pongs.count < requests.limit else { throw .tooManyRequests(limit: requests.limit) }
            transmit(ClientOperation.ping)
            guard machine.isConnected else { throw .connectionLost }
            pongs.append(token)
        }
    }
}
