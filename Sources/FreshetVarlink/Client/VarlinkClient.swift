public import FreshetEventLoop
import Glibc

/// A connection to a Varlink service, for programs that ask and end: synchronous, without a loop, a thread or a task.
///
/// ```swift
/// let client = try VarlinkClient(path: "/run/example/org.example.greeter")
/// let reply = try client.call("org.example.greeter.Greet", VarlinkParameters(encoding: name))
/// ```
///
/// Not for use on an `EventLoop`: it blocks. One thread at a time. After an error other than
/// ``VarlinkClientError/refused(_:)`` the connection is of no more use.
public final class VarlinkClient {
    /// The most bytes of one reply that are taken: what systemd's clients take.
    static let replyLimit = 16 << 20

    private let socket: OwnedDescriptor
    private var framer = VarlinkFramer(limit: VarlinkClient.replyLimit)
    private var buffer = [UInt8](repeating: 0, count: 65_536)
    private var isUsable = true
    private let isInterrupted: () -> Bool

    /// A pause in which the service says nothing, as a service that is at work does, and as one that hangs.
    public struct Silence {
        /// How long it lasts.
        public var length: Duration
        /// Asked at its end whether to go on waiting; if not, the call under way throws ``VarlinkClientError/timedOut``.
        /// Gets how long the call may take still; nil: as long as it takes.
        public var mayLast: (_ rest: Duration?) -> Bool

        public init(length: Duration, mayLast: @escaping (_ rest: Duration?) -> Bool) {
            self.length = length
            self.mayLast = mayLast
        }
    }

    /// What is done when nothing has come for long, beside the timeouts of calls; nil: nothing.
    public var silence: Silence?

    /// Connects.
    ///
    /// - Parameters:
    ///   - path: the service's socket.
    ///   - timeout: how long the service's queue may be full: then nobody accepts, and connect(2) waits; nil: as long as
    ///     that takes.
    ///   - isInterrupted: asked whenever a Unix signal interrupted a wait; if it says true, the call under way throws
    ///     ``VarlinkClientError/interrupted``, otherwise it goes on waiting.
    public init(
        path: String, timeout: Duration? = nil, isInterrupted: @escaping () -> Bool = { false }
    ) throws(VarlinkClientError) {
        self.isInterrupted = isInterrupted
        guard let address = UnixAddress(path: path) else {
            throw .unreachable(path: path, SystemCallError("connect", errno: ENAMETOOLONG, subject: path))
        }
        do {
            socket = try UnixAddress.makeSocket()
        } catch {
            throw .system(error)
        }
        if let timeout {
            // unix(7) honours it for connect(2); what is sent later never blocks in send(2). Zero would be no limit.
            let (seconds, attoseconds) = max(timeout, .microseconds(1)).components
            var limit = timeval(tv_sec: Int(seconds), tv_usec: Int(attoseconds / 1_000_000_000_000))
            setsockopt(
                socket.rawValue, SOL_SOCKET, SO_SNDTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        }
        let reason = address.apply(connect, to: socket)
        if timeout != nil, reason == EAGAIN { throw .timedOut }
        // A connection that a signal interrupts goes on by itself; on a Unix socket it is then made or refused at once.
        guard reason == 0 else {
            throw .unreachable(path: path, SystemCallError("connect", errno: reason, subject: path))
        }
    }

    /// Calls a method and awaits its one reply.
    ///
    /// - Parameters:
    ///   - method: its name with that of the interface.
    ///   - parameters: what the method takes.
    ///   - timeout: for the whole call; nil: as long as it takes.
    ///   - interval: how often `meanwhile` is called while there is no reply; nil: never.
    @discardableResult
    public func call(
        _ method: String, _ parameters: VarlinkParameters = .none, timeout: Duration? = nil,
        every interval: Duration? = nil, meanwhile: @escaping () -> Void = {}
    ) throws(VarlinkClientError) -> VarlinkParameters {
        let deadline = timeout.map { ContinuousClock.Instant.now + $0 }
        try send(VarlinkCallMessage(method: method, parameters: parameters), by: deadline)
        let pause = interval.map { Pause(length: $0, body: meanwhile) }
        guard let reply = try receive(by: deadline, pause) else { throw fail(.closed) }
        guard !reply.continues else { throw fail(.violation("a further reply was announced that was not asked for")) }
        return reply.parameters
    }

    /// Calls a method that may answer several times.
    ///
    /// - Parameters:
    ///   - method: its name with that of the interface.
    ///   - parameters: what the method takes.
    ///   - timeout: for each reply; nil: as long as it takes.
    ///   - end: when the stream ends at the latest, as if `each` had returned false.
    ///   - output: a descriptor that the replies go to. When its reader goes away (a pipe whose other end is closed),
    ///     the stream ends at once, as if `each` had returned false, and not only with the next reply.
    ///   - interval: how often `meanwhile` is called while there is no reply; nil: never.
    ///   - each: gets each reply, the last one included. If it returns false, or throws, while more are to come, the
    ///     connection is closed, which is how a client ends a stream.
    public func callMore(
        _ method: String, _ parameters: VarlinkParameters = .none, timeout: Duration? = nil,
        until end: ContinuousClock.Instant? = nil, endingWithReaderOf output: Int32? = nil,
        every interval: Duration? = nil, meanwhile: @escaping () -> Void = {},
        each: (VarlinkParameters) throws(VarlinkClientError) -> Bool
    ) throws(VarlinkClientError) {
        let deadline = timeout.map { ContinuousClock.Instant.now + $0 }
        try send(VarlinkCallMessage(method: method, parameters: parameters, more: true), by: deadline)
        try takeReplies(
            timeout: timeout, until: end, endingWithReaderOf: output, every: interval, meanwhile: meanwhile, each: each)
    }

    /// Takes the replies to the oldest call whose replies have not been taken: of several that were begun one after the
    /// other, the first.
    ///
    /// - Parameters: as of ``callMore(_:_:timeout:until:endingWithReaderOf:every:meanwhile:each:)``.
    public func takeReplies(
        timeout: Duration? = nil, until end: ContinuousClock.Instant? = nil, endingWithReaderOf output: Int32? = nil,
        every interval: Duration? = nil, meanwhile: @escaping () -> Void = {},
        each: (VarlinkParameters) throws(VarlinkClientError) -> Bool
    ) throws(VarlinkClientError) {
        var deadline = timeout.map { ContinuousClock.Instant.now + $0 }
        while true {
            let pause = interval.map { Pause(length: $0, body: meanwhile) }
            let next: VarlinkReplyMessage?
            do throws(VarlinkClientError) {
                let last = [deadline, end].compactMap { $0 }.min()
                next = try receive(by: last, endingWithReaderOf: output, pause)
            } catch .timedOut where end.map({ $0 <= .now }) ?? false {
                return
            } catch {
                throw error
            }
            guard let reply = next else {
                close()
                return
            }
            let goesOn: Bool
            do throws(VarlinkClientError) {
                goesOn = try each(reply.parameters)
            } catch {
                throw reply.continues ? fail(error) : error
            }
            guard reply.continues else { return }
            guard goesOn else {
                close()
                return
            }
            deadline = timeout.map { .now + $0 }
        }
    }

    /// Calls a method without awaiting an answer.
    public func callOneway(
        _ method: String, _ parameters: VarlinkParameters = .none, timeout: Duration? = nil
    ) throws(VarlinkClientError) {
        try send(
            VarlinkCallMessage(method: method, parameters: parameters, oneway: true),
            by: timeout.map { .now + $0 })
    }

    /// Ends the connection.
    public func close() {
        isUsable = false
        shutdown(socket.rawValue, Int32(SHUT_RDWR))
    }

    // MARK: Replies one by one

    /// For poll(2) beside other things: readable when ``takeReply()`` may have something.
    public var rawDescriptor: Int32 { socket.rawValue }

    /// Calls a method whose replies are taken as they come, or later, by ``takeReply()`` or ``takeReplies(timeout:until:endingWithReaderOf:every:meanwhile:each:)``. Several may
    /// be begun one after the other: they are answered in this order.
    ///
    /// - Parameter more: whether it may answer several times.
    public func begin(
        _ method: String, _ parameters: VarlinkParameters = .none, more: Bool = true
    ) throws(VarlinkClientError) {
        try send(VarlinkCallMessage(method: method, parameters: parameters, more: more), by: nil)
    }

    /// The next reply to what was begun, if it is there; nil: not yet. Never waits.
    public func takeReply() throws(VarlinkClientError) -> VarlinkParameters? {
        guard isUsable else { throw .closed }
        return try takeMessage()?.parameters
    }

    // MARK: Messages

    private func send(
        _ message: VarlinkCallMessage, by deadline: ContinuousClock.Instant?
    ) throws(VarlinkClientError) {
        guard isUsable else { throw .closed }
        let bytes = message.encoded
        var sent = 0
        while sent < bytes.count {
            let count = bytes.withUnsafeBytes { bytes in
                Glibc.send(
                    socket.rawValue, bytes.baseAddress?.advanced(by: sent), bytes.count - sent,
                    Int32(MSG_DONTWAIT | MSG_NOSIGNAL))
            }
            if count >= 0 {
                sent += count
                continue
            }
            switch errno {
            case EAGAIN: _ = try wait(for: Int16(POLLOUT), by: deadline)
            case EINTR: continue
            // The server closed; what it answered before may still be there to read.
            case EPIPE, ECONNRESET: return
            case let reason: throw fail(.system(SystemCallError("send", errno: reason)))
            }
        }
    }

    /// The next reply; nil: the reader of the output has gone.
    private func receive(
        by deadline: ContinuousClock.Instant?, endingWithReaderOf output: Int32? = nil, _ pause: Pause? = nil
    ) throws(VarlinkClientError) -> VarlinkReplyMessage? {
        while true {
            if let message = try takeMessage() { return message }
            guard try wait(for: Int16(POLLIN), by: deadline, endingWithReaderOf: output, pause) else { return nil }
        }
    }

    /// The next reply, if it is there; nil: not yet.
    private func takeMessage() throws(VarlinkClientError) -> VarlinkReplyMessage? {
        while true {
            let message: [UInt8]?
            do {
                message = try framer.next()
            } catch {
                throw fail(.violation(error.description))
            }
            if let message { return try parse(message) }
            let count = recv(socket.rawValue, &buffer, buffer.count, Int32(MSG_DONTWAIT))
            if count > 0 {
                framer.append(buffer[..<count])
                continue
            }
            guard count < 0 else { throw fail(.closed) }
            switch errno {
            case EAGAIN: return nil
            case EINTR: continue
            case ECONNRESET: throw fail(.closed)
            case let reason: throw fail(.system(SystemCallError("recv", errno: reason)))
            }
        }
    }

    private func parse(_ message: [UInt8]) throws(VarlinkClientError) -> VarlinkReplyMessage {
        let reply: VarlinkReplyMessage
        do {
            reply = try VarlinkReplyMessage(parsing: message)
        } catch {
            throw fail(.violation("a reply is not a Varlink message"))
        }
        if let name = reply.error { throw .refused(VarlinkErrorReply(name, parameters: reply.parameters)) }
        return reply
    }

    /// What is done again and again while nothing comes.
    private struct Pause {
        var length: Duration
        var body: () -> Void
    }

    /// Returns true if the socket is ready, and false if only the output's reader has gone.
    private func wait(
        for events: Int16, by deadline: ContinuousClock.Instant?, endingWithReaderOf output: Int32? = nil,
        _ pause: Pause? = nil
    ) throws(VarlinkClientError) -> Bool {
        // poll(2) passes over negative descriptors. Without events it reports errors and hang-ups.
        var entries = [
            pollfd(fd: socket.rawValue, events: events, revents: 0), pollfd(fd: output ?? -1, events: 0, revents: 0),
        ]
        var end = silence.map { ContinuousClock.Instant.now + $0.length }
        while true {
            let interlude = pause.map { ContinuousClock.Instant.now + $0.length }
            let next = [deadline, interlude, end].compactMap { $0 }.min()
            let result = poll(&entries, nfds_t(entries.count), Self.milliseconds(until: next))
            if result > 0 { return entries[0].revents != 0 }
            if result == 0 {
                let now = ContinuousClock.Instant.now
                if let deadline, deadline <= now { throw fail(.timedOut) }
                if let silence, let over = end, over <= now {
                    let mayLast = silence.mayLast(deadline.map { $0 - now })
                    // That may have taken its time, in which the answer came.
                    if poll(&entries, nfds_t(entries.count), 0) > 0 { return entries[0].revents != 0 }
                    guard mayLast else { throw fail(.timedOut) }
                    end = .now + silence.length
                }
                if let pause, let interlude, interlude <= now { pause.body() }
                // A long wait is cut into what poll(2) can express.
                continue
            }
            guard errno == EINTR else { throw fail(.system(SystemCallError("poll", errno: errno))) }
            if isInterrupted() { throw fail(.interrupted) }
        }
    }

    /// Rounded up, so that a wait does not end before its deadline; -1: for ever.
    private static func milliseconds(until deadline: ContinuousClock.Instant?) -> Int32 {
        guard let deadline else { return -1 }
        let wait = max(deadline - .now, .zero).components
        guard wait.seconds < 1_000_000 else { return 1_000_000_000 }
        return Int32(wait.seconds * 1_000 + (wait.attoseconds + 999_999_999_999_999) / 1_000_000_000_000_000)
    }

    /// Notes that the connection is of no more use, and hands the error on.
    private func fail(_ error: VarlinkClientError) -> VarlinkClientError {
        close()
        return error
    }
}

/// Why a client's call failed.
public enum VarlinkClientError: Error, Hashable, Sendable, CustomStringConvertible {
    /// Nobody listens at the path, or this user may not connect.
    case unreachable(path: String, SystemCallError)
    /// The service answered with an error. The connection can be used further.
    case refused(VarlinkErrorReply)
    /// No answer came in time.
    case timedOut
    /// A Unix signal ended the wait.
    case interrupted
    /// The service closed the connection.
    case closed
    /// The service does not speak Varlink, or says too much: in which way.
    case violation(String)
    case system(SystemCallError)

    /// The service is there, and the file system's permissions keep this user from it.
    public var isPermissionDenied: Bool {
        guard case .unreachable(_, let error) = self else { return false }
        return error.errno == EACCES || error.errno == EPERM
    }

    /// The socket is there, and nobody listens on it: its service ended without removing it.
    public var isDeserted: Bool {
        guard case .unreachable(_, let error) = self else { return false }
        return error.errno == ECONNREFUSED
    }

    public var description: String {
        switch self {
        case .unreachable(let path, let error) where isPermissionDenied: "cannot connect to '\(path)': \(error.reason)"
        case .unreachable(let path, let error): "nobody answers at '\(path)': \(error.reason)"
        case .refused(let error): "the service answered with an error: \(error)"
        case .timedOut: "the service did not answer in time"
        case .interrupted: "interrupted"
        case .closed: "the service closed the connection"
        case .violation(let what): "the service broke the protocol: \(what)"
        case .system(let error): error.description
        }
    }
}
