import FreshetEventLoop
import Glibc
import NATSTestSupport
import TestSupport
import Testing
import ThreadTestSupport

@testable import FreshetNATS

extension NATSConfiguration {
    /// For servers of a test.
    ///
    /// - Parameter backoff: in milliseconds.
    init(_ addresses: NATSServerAddress..., backoff: Int = 10, credential: NKeySeed? = nil) {
        self.init(servers: addresses, name: "test", credential: credential)
        timing.backoff = .milliseconds(backoff)
        timing.longestBackoff = .milliseconds(50)
        // The thread of a fake server may begin late on a busy machine.
        timing.handshakeTimeout = testTimeout
        timing.pongTimeout = testTimeout
    }
}

/// Runs a client on its own loop while `body` runs.
func withClient<Success: Sendable>(
    _ configuration: NATSConfiguration, fraction: @escaping @Sendable () -> Double = { 1 },
    _ body: @escaping @Sendable (NATSClient) async throws -> Success
) async throws -> Success {
    let loop = try EventLoop()
    try loop.runInThread(named: "test-loop")
    defer { loop.stop() }
    return try await withClient(configuration, on: loop, fraction: fraction, body)
}

/// The same on a loop that runs longer than the client: tasks of the client that outlast the body end there.
func withClient<Success: Sendable>(
    _ configuration: NATSConfiguration, on loop: EventLoop, fraction: @escaping @Sendable () -> Double = { 1 },
    _ body: @escaping @Sendable (NATSClient) async throws -> Success
) async throws -> Success {
    let client = NATSClient(loop, configuration, fraction: fraction)
    return try await withThrowingTaskGroup(of: Void.self) { group in
        group.addTask(executorPreference: loop) { await client.run() }
        let result: Result<Success, any Error>
        do { result = .success(try await body(client)) } catch { result = .failure(error) }
        group.cancelAll()
        try await group.waitForAll()
        #expect(await client.state == .stopped)
        return try result.get()
    }
}

/// The same, and waits for the connection before.
func withConnectedClient<Success: Sendable>(
    _ configuration: NATSConfiguration, _ body: @escaping @Sendable (NATSClient) async throws -> Success
) async throws -> Success {
    try await withClient(configuration) { client in
        let isHeld = await client.isConnected()
        let state = await client.state
        try #require(isHeld, "\(state)")
        return try await body(client)
    }
}

extension NATSClient {
    /// Polls until the client is connected.
    nonisolated func isConnected() async -> Bool { await eventually { await state.serverInfo != nil } }

    /// The error of the next failed attempt or connection. For one caller at a time.
    nonisolated func failure() async throws -> NATSError {
        for await event in events {
            switch event {
            case .state(.disconnected(let error, _)), .state(.refused(let error, _)): return error
            default: continue
            }
        }
        throw CancellationError()
    }
}

extension NATSMessage {
    var text: String { String(decoding: payload, as: UTF8.self) }
}

extension NATSSubscription {
    /// The text of the next message.
    func text() async throws -> String? {
        guard case .message(let message)? = try await next() else { return nil }
        return message.text
    }
}

/// A server that sends what a test wants, on a free port of loopback. Its methods block; use them in ``onThread``.
final class FakeServer: Sendable {
    let port: UInt16
    private let listener: OwnedDescriptor

    /// - Parameter receiveBuffer: bytes that the kernel keeps for a server that does not read; nil: the usual.
    init(receiveBuffer: Int32? = nil) throws {
        listener = OwnedDescriptor(socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0))
        if var size = receiveBuffer {
            setsockopt(listener.rawValue, SOL_SOCKET, SO_RCVBUF, &size, socklen_t(MemoryLayout<Int32>.size))
        }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = in_addr_t(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let descriptor = listener.rawValue
        let isListening = withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, length) == 0 && listen(descriptor, 64) == 0
                    && getsockname(descriptor, $0, &length) == 0
            }
        }
        try #require(isListening, "errno \(errno)")
        port = UInt16(bigEndian: address.sin_port)
    }

    func address() throws -> NATSServerAddress { try NATSServerAddress("http://127.0.0.1:\(port)") }

    /// The next connection.
    func accept() throws -> FakeConnection {
        var poller = pollfd(fd: listener.rawValue, events: Int16(POLLIN), revents: 0)
        try #require(poll(&poller, 1, testTimeoutMilliseconds) == 1)
        let connection = OwnedDescriptor(Glibc.accept(listener.rawValue, nil, nil))
        limitSends(on: connection.rawValue)
        return FakeConnection(connection)
    }

    /// The next connection, after a handshake without a credential.
    func greet(_ info: String = "{\"headers\":true,\"max_payload\":1048576}") throws -> FakeConnection {
        let connection = try accept()
        connection.send("INFO \(info)\r\n")
        _ = try connection.receive(until: "PING\r\n")
        connection.send("PONG\r\n")
        return connection
    }
}

/// A connection of a ``FakeServer``.
struct FakeConnection {
    let descriptor: OwnedDescriptor

    init(_ descriptor: OwnedDescriptor) { self.descriptor = descriptor }

    func send(_ text: String) { send(Array(text.utf8)) }

    /// Sends bytes as far as the client accepts them; false: it has closed the connection.
    @discardableResult
    func send(_ bytes: [UInt8]) -> Bool {
        var sent = 0
        while sent < bytes.count {
            let count = bytes[sent...].withUnsafeBytes {
                Glibc.send(descriptor.rawValue, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            guard count > 0 else { return false }
            sent += count
        }
        return true
    }

    /// Sends a piece again and again until the client closes the connection, or has held its loop for the whole
    /// deadline.
    func flood(_ piece: [UInt8]) {
        let deadline = ContinuousClock.now + testTimeout / 4
        while ContinuousClock.now < deadline, send(piece) {}
    }

    /// Receives until the text has arrived; returns all that arrived.
    func receive(until text: String) throws -> String {
        var received = ""
        while !received.contains(text) {
            let more = try receive()
            try #require(!more.isEmpty, "the client closed the connection after \(received)")
            received += more
        }
        return received
    }

    /// What arrived; empty: the client closed the connection.
    func receive() throws -> String {
        var poller = pollfd(fd: descriptor.rawValue, events: Int16(POLLIN), revents: 0)
        try #require(poll(&poller, 1, testTimeoutMilliseconds) == 1)
        var buffer = [UInt8](repeating: 0, count: 65_536)
        let count = recv(descriptor.rawValue, &buffer, buffer.count, 0)
        return String(decoding: buffer[..<max(0, count)], as: UTF8.self)
    }

    /// Whether the client closes the connection.
    func clientCloses() throws -> Bool {
        while try !receive().isEmpty {}
        return true
    }
}
