import FreshetVarlink

/// A connection of a ``ControlClient``: makes calls of the control interface with typed parameters and replies, and
/// connects again.
final class ControlConnection {
    typealias Failure = ControlClient.Failure

    private var client: VarlinkClient
    private let connect: () throws(VarlinkClientError) -> VarlinkClient
    /// As ``ControlClient/replyTimeout``.
    var replyTimeout: Duration?

    /// How long the daemon may send nothing before the client checks, on a second connection, whether the daemon
    /// answers.
    static let silence: Duration = .seconds(15)
    /// How long the answer to this check may take. Both times together are the default timeout of D-Bus clients.
    static let probeTimeout: Duration = .seconds(10)
    /// How long the daemon may send nothing, and how long it may then not answer on a second connection, before the
    /// client's notice.
    static let noticeDelay: Duration = .seconds(1)

    /// As ``ControlClient/init(path:silence:probeTimeout:notice:)``.
    init(
        path: String, silence: Duration, probeTimeout: Duration, notice: ControlClient.Notice? = nil
    ) throws(Failure) {
        connect = { () throws(VarlinkClientError) in
            let client: VarlinkClient
            let limit = silence + probeTimeout
            let first = notice.map { min($0.delay * 2, limit) } ?? limit
            do throws(VarlinkClientError) {
                client = try VarlinkClient(path: path, timeout: first)
            } catch .timedOut where first < limit {
                notice?.body()
                client = try VarlinkClient(path: path, timeout: limit - first)
            } catch {
                throw error
            }
            let early = notice.map { notice in
                (
                    length: notice.delay,
                    body: { if !Self.answers(at: path, within: notice.delay) { notice.body() } }
                )
            }
            client.silence = VarlinkClient.Silence(length: silence, notice: early) { rest in
                Self.answers(at: path, within: rest.map { min($0, probeTimeout) } ?? probeTimeout)
            }
            return client
        }
        do {
            client = try connect()
        } catch {
            throw Self.failure(error)
        }
    }

    private static func answers(at path: String, within limit: Duration) -> Bool {
        do {
            try VarlinkClient(path: path, timeout: limit).call("org.varlink.service.GetInfo", timeout: limit)
            return true
        } catch .timedOut {
            return false
        } catch {
            // A daemon that closes the connection because all connections are in use answers too. If the daemon has
            // ended, the connection that waits ends by itself.
            return true
        }
    }

    /// The socket, for poll(2).
    var rawDescriptor: Int32 { client.rawDescriptor }

    // MARK: Calls

    /// Makes calls that change nothing. If the daemon closes the connection, it is repeated once on a new connection: a
    /// daemon that stops closes the connections it has accepted, and the next daemon may answer.
    func reading<Result>(_ body: () throws(Failure) -> Result) throws(Failure) -> Result {
        do {
            return try body()
        } catch .closed {
            guard let next = try? connect() else { throw .closed }
            client = next
            return try body()
        }
    }

    func call<Reply: Decodable>(
        _ method: String, _ parameters: some Encodable = ControlMessage.Nothing(), as type: Reply.Type,
        every interval: Duration? = nil, meanwhile: @escaping () -> Void = {}
    ) throws(Failure) -> Reply {
        let encoded = try encode(parameters)
        do {
            return try Self.decode(
                try client.call(
                    ControlInterface.name + "." + method, encoded, timeout: replyTimeout, every: interval,
                    meanwhile: meanwhile))
        } catch {
            throw Self.failure(error)
        }
    }

    func stream<Reply: Decodable>(
        _ method: String, _ parameters: some Encodable, as type: Reply.Type, endingWithReaderOf output: Int32? = nil,
        until end: ContinuousClock.Instant? = nil, every interval: Duration? = nil,
        meanwhile: @escaping () -> Void = {}, each: (Reply) -> Bool
    ) throws(Failure) {
        let encoded = try encode(parameters)
        do {
            try client.callMore(
                ControlInterface.name + "." + method, encoded, timeout: replyTimeout, until: end,
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

    /// The elements of all replies.
    func list<Reply: Decodable, Element>(
        _ method: String, _ parameters: some Encodable, _ elements: (Reply) -> [Element]
    ) throws(Failure) -> [Element] {
        try reading { () throws(Failure) in
            var list: [Element] = []
            try stream(method, parameters, as: Reply.self) { reply in
                list += elements(reply)
                return true
            }
            return list
        }
    }

    // MARK: Calls that do not wait

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

    /// Takes the reply to the oldest call whose replies have not been taken; the method sends one reply.
    func takeOnly<Reply: Decodable>(_ type: Reply.Type) throws(Failure) -> Reply {
        var only: Reply?
        try take(type) { only = $0 }
        guard let only else { throw .closed }
        return only
    }

    /// The next reply, if one has arrived; never waits.
    func takeNext<Reply: Decodable>() throws(Failure) -> Reply? {
        do {
            return try client.takeReply().map { (reply) throws(VarlinkClientError) in try Self.decode(reply) }
        } catch {
            throw Self.failure(error)
        }
    }

    // MARK: Coding

    private func encode(_ parameters: some Encodable) throws(Failure) -> VarlinkParameters {
        do {
            return try VarlinkParameters(encoding: parameters)
        } catch {
            throw .mismatch("the parameters cannot be encoded as JSON")
        }
    }

    private static func decode<Reply: Decodable>(_ reply: VarlinkParameters) throws(VarlinkClientError) -> Reply {
        do {
            return try reply.decode()
        } catch {
            throw .violation("a reply does not have the type that the interface describes")
        }
    }

    /// The failure for an error reply that the control interface does not define.
    private static func failure(_ reply: VarlinkErrorReply, _ description: String) -> Failure {
        switch reply.name {
        case VarlinkErrorReply.Name.interfaceNotFound: .notFreshet
        case VarlinkErrorReply.Name.methodNotFound, VarlinkErrorReply.Name.methodNotImplemented:
            .noSuchMethod((try? reply.parameters.decode(as: [String: String].self))?["method"] ?? "")
        default: .mismatch(description)
        }
    }

    private static func failure(_ error: VarlinkClientError) -> Failure {
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
