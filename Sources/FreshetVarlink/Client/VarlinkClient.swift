public import FreshetEventLoop
import Glibc

/// A synchronous connection to a Varlink service, for programs that make a few calls and end. It needs no event loop,
/// thread or task.
///
/// ```swift
/// let client = try VarlinkClient(path: "/run/example/org.example.greeter")
/// let reply = try client.call("org.example.greeter.Greet", VarlinkParameters(encoding: name))
/// ```
///
/// It blocks, so do not use it on an `EventLoop`. Use it on one thread at a time. After an error other than
/// ``VarlinkClientError/refused(_:)``, the connection cannot be used any more.
public final class VarlinkClient {
    /// The most bytes of one reply, as in systemd's clients.
    static let replyLimit = 16 << 20

    private let socket: OwnedDescriptor
    private var framer = VarlinkFramer(limit: VarlinkClient.replyLimit)
    private var buffer = [UInt8](repeating: 0, count: 65_536)
    private var isUsable = true
    private let isInterrupted: () -> Bool

    /// A pause in which the service sends nothing: the service may be working, or it may hang.
    public struct Silence {
        /// How long the pause lasts before ``mayLast`` is called.
        public var length: Duration
        /// Called at the end of the pause. Returns whether to continue to wait; if not, the call in progress throws
        /// ``VarlinkClientError/timedOut``. `rest` is the time that the call has left; nil: no limit.
        public var mayLast: (_ rest: Duration?) -> Bool
        /// A shorter pause, and what is called once at its end, in the first wait that lasts so long; nil: nothing.
        public var notice: (length: Duration, body: () -> Void)?

        public init(
            length: Duration, notice: (length: Duration, body: () -> Void)? = nil,
            mayLast: @escaping (_ rest: Duration?) -> Bool
        ) {
            self.length = length
            self.notice = notice
            self.mayLast = mayLast
        }
    }

    /// How to handle a long pause, in addition to the timeouts of calls; nil: the client only waits.
    public var silence: Silence?

    /// Connects.
    ///
    /// - Parameters:
    ///   - path: the service's socket.
    ///   - timeout: how long connect(2) may wait because the service accepts no connections and its queue is full; nil:
    ///     no limit.
    ///   - isInterrupted: called whenever a Unix signal interrupts a wait; if it returns true, the call in progress
    ///     throws ``VarlinkClientError/interrupted``, otherwise it continues to wait.
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
            // On Unix sockets, SO_SNDTIMEO limits connect(2) too (unix(7)). Later calls of send(2) never block. Zero
            // would mean no limit.
            let (seconds, attoseconds) = max(timeout, .microseconds(1)).components
            var limit = timeval(tv_sec: Int(seconds), tv_usec: Int(attoseconds / 1_000_000_000_000))
            setsockopt(
                socket.rawValue, SOL_SOCKET, SO_SNDTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        }
        let reason = address.apply(connect, to: socket)
        if timeout != nil, reason == EAGAIN { throw .timedOut }
        // connect(2) continues in the background after EINTR; on a Unix socket it succeeds or fails immediately.
        guard reason == 0 else {
            throw .unreachable(path: path, SystemCallError("connect", errno: reason, subject: path))
        }
    }

    /// Calls a method and waits for its only reply.
    ///
    /// - Parameters:
    ///   - method: the name of the method with its interface.
    ///   - parameters: the parameters of the method.
    ///   - timeout: for the whole call; nil: no limit.
    ///   - interval: how often `meanwhile` is called while there is no reply; nil: never.
    ///   - meanwhile: called on the caller's thread while it waits.
    @discardableResult
    public func call(
        _ method: String, _ parameters: VarlinkParameters = .none, timeout: Duration? = nil,
        every interval: Duration? = nil, meanwhile: @escaping () -> Void = {}
    ) throws(VarlinkClientError) -> VarlinkParameters {
        let deadline = timeout.map { ContinuousClock.Instant.now + $0 }
        try send(VarlinkCallMessage(method: method, parameters: parameters), by: deadline)
        let pause = interval.map { Pause(length: $0, body: meanwhile) }
        guard let reply = try receive(by: deadline, pause) else { throw fail(.closed) }
        guard !reply.continues else {
            throw fail(.violation("the service announced a further reply to a call without 'more'"))
        }
        return reply.parameters
    }

    /// Calls a method that may send several replies.
    ///
    /// - Parameters:
    ///   - method: the name of the method with its interface.
    ///   - parameters: the parameters of the method.
    ///   - timeout: for each reply; nil: no limit.
    ///   - end: the latest end of the stream; then it ends as if `each` had returned false.
    ///   - output: the descriptor to which the caller writes the replies. When its reader goes away (a pipe whose other
    ///     end is closed), the stream ends immediately as if `each` had returned false, without waiting for the next
    ///     reply.
    ///   - interval: how often `meanwhile` is called while there is no reply; nil: never.
    ///   - meanwhile: called on the caller's thread while it waits.
    ///   - each: gets each reply, including the last. If it returns false, or throws, before the last reply, the client
    ///     closes the connection: this is how a client ends a stream.
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

    /// Takes the replies to the oldest call whose replies have not been taken.
    ///
    /// The parameters are those of ``callMore(_:_:timeout:until:endingWithReaderOf:every:meanwhile:each:)``.
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

    /// Calls a method that sends no reply.
    public func callOneway(
        _ method: String, _ parameters: VarlinkParameters = .none, timeout: Duration? = nil
    ) throws(VarlinkClientError) {
        try send(
            VarlinkCallMessage(method: method, parameters: parameters, oneway: true),
            by: timeout.map { .now + $0 })
    }

    /// Closes the connection.
    public func close() {
        isUsable = false
        shutdown(socket.rawValue, Int32(SHUT_RDWR))
    }

    // MARK: Calls without waiting

    /// The socket, for poll(2): readable when ``takeReply()`` may have a reply.
    public var rawDescriptor: Int32 { socket.rawValue }

    /// Calls a method without waiting for its replies; ``takeReply()`` or
    /// ``takeReplies(timeout:until:endingWithReaderOf:every:meanwhile:each:)`` takes them. Several calls may be begun
    /// one after the other: the service answers in the same order.
    ///
    /// - Parameters:
    ///   - method: the name of the method with its interface.
    ///   - parameters: the parameters of the method.
    ///   - more: whether the method may send several replies.
    public func begin(
        _ method: String, _ parameters: VarlinkParameters = .none, more: Bool = true
    ) throws(VarlinkClientError) {
        try send(VarlinkCallMessage(method: method, parameters: parameters, more: more), by: nil)
    }

    /// The next reply to the calls that were begun; nil: it has not arrived. Never waits.
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
            // The server closed the connection; earlier replies may still be in the buffer.
            case EPIPE, ECONNRESET: return
            case let reason: throw fail(.system(SystemCallError("send", errno: reason)))
            }
        }
    }

    /// The next reply; nil: the reader of the output has closed it.
    private func receive(
        by deadline: ContinuousClock.Instant?, endingWithReaderOf output: Int32? = nil, _ pause: Pause? = nil
    ) throws(VarlinkClientError) -> VarlinkReplyMessage? {
        while true {
            if let message = try takeMessage() { return message }
            guard try wait(for: Int16(POLLIN), by: deadline, endingWithReaderOf: output, pause) else { return nil }
        }
    }

    /// The next reply; nil: it has not arrived.
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

    /// A function that is called repeatedly while no reply arrives.
    private struct Pause {
        var length: Duration
        var body: () -> Void
    }

    /// Returns true if the socket is ready, and false if only the output's reader has closed it.
    private func wait(
        for events: Int16, by deadline: ContinuousClock.Instant?, endingWithReaderOf output: Int32? = nil,
        _ pause: Pause? = nil
    ) throws(VarlinkClientError) -> Bool {
        // poll(2) ignores negative descriptors. Without events it reports errors and hang-ups.
        var entries = [
            pollfd(fd: socket.rawValue, events: events, revents: 0), pollfd(fd: output ?? -1, events: 0, revents: 0),
        ]
        var end = silence.map { ContinuousClock.Instant.now + $0.length }
        let noticeAt = silence?.notice.map { ContinuousClock.Instant.now + $0.length }
        while true {
            let nextPause = pause.map { ContinuousClock.Instant.now + $0.length }
            let next = [deadline, nextPause, end, silence?.notice == nil ? nil : noticeAt].compactMap { $0 }.min()
            let result = poll(&entries, nfds_t(entries.count), Self.milliseconds(until: next))
            if result > 0 { return entries[0].revents != 0 }
            if result == 0 {
                let now = ContinuousClock.Instant.now
                if let deadline, deadline <= now { throw fail(.timedOut) }
                if let notice = silence?.notice, let noticeAt, noticeAt <= now {
                    silence?.notice = nil
                    notice.body()
                    // A reply may have arrived during this call.
                    continue
                }
                if let silence, let over = end, over <= now {
                    let mayLast = silence.mayLast(deadline.map { $0 - now })
                    // A reply may have arrived during this call.
                    if poll(&entries, nfds_t(entries.count), 0) > 0 { return entries[0].revents != 0 }
                    guard mayLast else { throw fail(.timedOut) }
                    end = .now + silence.length
                }
                if let pause, let nextPause, nextPause <= now { pause.body() }
                // poll(2) cannot express a long wait; the loop repeats it.
                continue
            }
            guard errno == EINTR else { throw fail(.system(SystemCallError("poll", errno: errno))) }
            if isInterrupted() { throw fail(.interrupted) }
        }
    }

    /// The time until a deadline, rounded up so that a wait does not end before it; -1: no limit.
    private static func milliseconds(until deadline: ContinuousClock.Instant?) -> Int32 {
        guard let deadline else { return -1 }
        let wait = max(deadline - .now, .zero).components
        guard wait.seconds < 1_000_000 else { return 1_000_000_000 }
        return Int32(wait.seconds * 1_000 + (wait.attoseconds + 999_999_999_999_999) / 1_000_000_000_000_000)
    }

    /// Closes the connection and returns the error.
    private func fail(_ error: VarlinkClientError) -> VarlinkClientError {
        close()
        return error
    }
}

/// Why a client's call failed.
public enum VarlinkClientError: Error, Hashable, Sendable, CustomStringConvertible {
    /// No process listens at the path, or this user may not connect.
    case unreachable(path: String, SystemCallError)
    /// The service answered with an error. The connection can still be used.
    case refused(VarlinkErrorReply)
    /// The service did not answer in time.
    case timedOut
    /// A Unix signal ended the wait.
    case interrupted
    /// The service closed the connection.
    case closed
    /// The service violated the protocol; the text says how.
    case violation(String)
    case system(SystemCallError)

    /// Whether the permissions of the file system keep this user from connecting.
    public var isPermissionDenied: Bool {
        guard case .unreachable(_, let error) = self else { return false }
        return error.errno == EACCES || error.errno == EPERM
    }

    /// Whether the socket exists without a process that listens: its service ended without removing it.
    public var isDeserted: Bool {
        guard case .unreachable(_, let error) = self else { return false }
        return error.errno == ECONNREFUSED
    }

    public var description: String {
        switch self {
        case .unreachable(let path, let error): "cannot connect to '\(path)': \(error.reason)"
        case .refused(let error): "the service answered with an error: \(error)"
        case .timedOut: "the service did not answer in time"
        case .interrupted: "interrupted"
        case .closed: "the service closed the connection"
        case .violation(let what): "the service violated the protocol: \(what)"
        case .system(let error): error.description
        }
    }
}
