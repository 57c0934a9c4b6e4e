import FreshetEventLoop
import Glibc
import Synchronization
import TestSupport
import Testing
import ThreadTestSupport

@testable import FreshetVarlink

/// A server with a test interface, on a socket in its own directory.
final class Harness: Sendable {
    let path: String
    let server: VarlinkServer
    let record: Record
    let loop: EventLoop

    init(path: String, server: VarlinkServer, record: Record, loop: EventLoop) {
        self.loop = loop
        self.path = path
        self.server = server
        self.record = record
    }

    func connect() throws -> RawClient { try RawClient(path: path) }

    /// Connects and sends a call, again if the server closes the connection before it reads the call: with a short
    /// limit of silence, a busy machine may let that pass before.
    ///
    /// - Parameter sign: what the handler of the call records when it has begun.
    func begin(_ call: String, until sign: String) throws -> RawClient {
        let deadline = ContinuousClock.now + testTimeout
        while true {
            let client = try connect()
            client.send(call + "\0")
            let isOver = eventually { record[sign] > 0 || client.isClosed }
            // The server may have closed the connection after it began the call.
            if isOver, record[sign] > 0 { return client }
            guard ContinuousClock.now < deadline else { throw SystemCallError("begin", errno: ETIMEDOUT) }
        }
    }
}

/// Counts events of handlers by name.
final class Record: Sendable {
    private let counts = Mutex<[String: Int]>([:])

    func add(_ what: String) { counts.withLock { $0[what, default: 0] += 1 } }
    subscript(what: String) -> Int { counts.withLock { $0[what, default: 0] } }
}

/// Serves, runs `body` on a thread that may block, and stops.
///
/// - Parameters:
///   - rank: the rank of each client, regardless of the user who runs the test.
///   - acceptClient: accept(2) of the server, with the record of the handlers.
@discardableResult
func withServer(
    limits: VarlinkServer.Limits = .init(), rank: ConnectionLimiter.Rank = .unprivileged,
    acceptClient: @escaping @Sendable (Int32, Record) -> Int32 = { descriptor, _ in accept(descriptor, nil, nil) },
    _ body: @escaping @Sendable (Harness) throws -> Void
) async throws -> Record {
    let directory = try TemporaryDirectory()
    let loop = try EventLoop()
    try loop.runInThread(named: "test-loop")
    defer { loop.stop() }
    let record = Record()
    let path = directory.path("org.example.test")
    let server = try VarlinkServer(
        loop, try VarlinkListener(path: path), identity: identity, interfaces: [testInterface(record)], limits: limits,
        rank: { _ in rank }, acceptClient: { acceptClient($0, record) })
    try await withThrowingTaskGroup(of: Void.self) { group in
        group.addTask(executorPreference: loop) { try await server.run() }
        let harness = Harness(path: path, server: server, record: record, loop: loop)
        let result = await onThread { try body(harness) }
        group.cancelAll()
        try await group.waitForAll()
        try result.get()
    }
    #expect(access(path, F_OK) != 0, "a server that has stopped leaves no socket behind")
    return record
}

let identity = VarlinkServer.Identity(
    vendor: "Example", product: "Test", version: "1", url: "https://example.org/")

struct Text: Codable {
    var text: String
}

struct Number: Codable {
    var number: Int
}

func testInterface(_ record: Record) throws -> VarlinkInterface {
    try VarlinkInterface(
        description: """
            # For tests.
            interface org.example.test
            type Point (x: int, y: int)
            method Echo(text: string) -> (text: string)
            method Note(text: string, at: ?Point, flag: ?bool) -> ()
            method Count(number: int) -> (number: int)
            method Flood() -> (text: string)
            method Huge() -> (text: string)
            method Wait() -> ()
            method Follow() -> ()
            method Stay() -> ()
            method Break() -> ()
            method Who() -> (number: int)
            method Missing() -> ()

            """,
        methods: [
            "Echo": { call in try VarlinkParameters(encoding: try call.parameters.decode(as: Text.self)) },
            "Note": { call in
                record.add(try call.parameters.decode(as: Text.self).text)
                return .none
            },
            "Count": { call in
                let count = try call.parameters.decode(as: Number.self).number
                for number in 1..<count { try await call.send(VarlinkParameters(encoding: Number(number: number))) }
                return try VarlinkParameters(encoding: Number(number: count))
            },
            "Flood": { call in
                let text = try VarlinkParameters(encoding: Text(text: String(repeating: "x", count: 10_000)))
                defer { record.add("flood ended") }
                while true {
                    try await call.send(text)
                    record.add("flood sent")
                }
            },
            // A reply that is larger than the kernel's buffers.
            "Huge": { _ in
                record.add("huge")
                return try VarlinkParameters(encoding: Text(text: String(repeating: "x", count: 8 << 20)))
            },
            "Wait": { _ in
                record.add("waiting")
                defer { record.add("wait ended") }
                let forever = AsyncStream<Never> { _ in }
                for await _ in forever {}
                throw CancellationError()
            },
            "Follow": { call in
                call.followsEvents()
                try await call.send(.none)
                record.add("following")
                defer { record.add("follow ended") }
                let forever = AsyncStream<Never> { _ in }
                for await _ in forever {}
                throw CancellationError()
            },
            // Ignores that its caller is gone, until the test records "may leave".
            "Stay": { call in
                call.followsEvents()
                record.add("staying")
                while record["may leave"] == 0 { await Task.yield() }
                return .none
            },
            "Break": { _ in throw SystemCallError("read", errno: EIO) },
            "Who": { call in try VarlinkParameters(encoding: Number(number: Int(call.peer.processIdentifier))) },
        ])
}

/// A client that can send any bytes, also invalid ones.
final class RawClient {
    private let socket: OwnedDescriptor
    private var framer = VarlinkFramer(limit: 1 << 24)
    private(set) var isEnded = false

    init(path: String) throws {
        socket = try UnixAddress.makeSocket()
        let address = try #require(UnixAddress(path: path))
        let reason = address.apply(connect, to: socket)
        guard reason == 0 else { throw SystemCallError("connect", errno: reason) }
    }

    func send(_ text: String) { send(Array(text.utf8)) }

    /// Sends bytes. If the server has closed the connection, only reading shows this.
    func send(_ bytes: [UInt8]) {
        var sent = 0
        while sent < bytes.count {
            let count = bytes[sent...].withUnsafeBytes {
                Glibc.send(socket.rawValue, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            guard count > 0 else { return }
            sent += count
        }
    }

    /// The next message as text; nil: the server closed the connection.
    func receive() throws -> String? {
        while true {
            if let message = try framer.next() { return String(decoding: message, as: UTF8.self) }
            var entry = pollfd(fd: socket.rawValue, events: Int16(POLLIN), revents: 0)
            guard poll(&entry, 1, testTimeoutMilliseconds) > 0 else { throw SystemCallError("poll", errno: ETIMEDOUT) }
            var buffer = [UInt8](repeating: 0, count: 65_536)
            let count = recv(socket.rawValue, &buffer, buffer.count, 0)
            guard count > 0 else {
                isEnded = true
                return nil
            }
            framer.append(buffer[..<count])
        }
    }

    /// Whether the server has closed the connection, and nothing is left to read.
    var isClosed: Bool {
        var byte: UInt8 = 0
        let count = recv(socket.rawValue, &byte, 1, Int32(MSG_PEEK | MSG_DONTWAIT))
        return count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR)
    }

    func call(_ text: String) throws -> String? {
        send(text + "\0")
        return try receive()
    }

    func closeSendingSide() { shutdown(socket.rawValue, Int32(SHUT_WR)) }
}
