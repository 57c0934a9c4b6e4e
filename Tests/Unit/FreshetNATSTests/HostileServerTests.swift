import FreshetEventLoop
import Glibc
import NATSTestSupport
import TestSupport
import Testing
import ThreadTestSupport

@testable import FreshetNATS

@Suite("With a hostile server", .hangLimit) struct HostileServerTests {
    private let a = NATSSubject(trusted: "a")

    /// What the server sends, under a short name.
    struct Garbage: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let text: String

        static let all = [
            Garbage("another protocol", "HTTP/1.1 400 Bad Request\r\n\r\n"),
            Garbage("a wrong INFO", "INFO {\"max_payload\":\"x\"}\r\n"), Garbage("zeros", "\0\0\0\0\r\n"),
            Garbage("a wrong line end", "PING\n"), Garbage("a huge message", "MSG a 1 99999999999999999999\r\n"),
            Garbage("an endless INFO", "INFO " + String(repeating: "[", count: 70_000)),
        ]

        init(_ name: String, _ text: String) {
            testDescription = name
            self.text = text
        }
    }

    @Test("garbage ends the connection with an error, and the client tries again", arguments: Garbage.all)
    func garbage(garbage: Garbage) async throws {
        let server = try FakeServer()
        try await withClient(NATSConfiguration(try server.address())) { client in
            try await onThread {
                for _ in 0..<3 {
                    let connection = try server.accept()
                    connection.send(garbage.text)
                    #expect(try connection.clientCloses())
                }
            }.get()
            let error = try await client.failure()
            let isViolation = if case .violation = error { true } else { false }
            #expect(isViolation, "\(error)")
        }
    }

    @Test("garbage on a connection in use fails its requests")
    func garbageLater() async throws {
        let server = try FakeServer()
        try await withClient(NATSConfiguration(try server.address())) { client in
            async let script: Void = onThread {
                let connection = try server.greet()
                _ = try connection.receive(until: "PUB a ")
                connection.send("+OK\r\nPONG\r\nMSG a 99 1\r\nx\r\nMSG a 1 3\r\nabc\r\n-ERR 'x'\r\nBANG\r\n")
                #expect(try connection.clientCloses())
            }.get()
            #expect(await client.isConnected())
            await #expect(throws: NATSError.connectionLost) { try await client.request(self.a, timeout: testTimeout) }
            try await script
        }
    }

    @Test("a proxy whose answer has no end does not hold the loop")
    func endlessProxy() async throws {
        let proxy = try FakeServer()
        var configuration = NATSConfiguration(try NATSServerAddress("https://127.0.0.1:9"))
        configuration.connection.proxy = "http://user:S3CRET@127.0.0.1:\(proxy.port)"
        configuration.timing.backoff = .seconds(1_000)
        configuration.timing.longestBackoff = .seconds(1_000)
        try await withClient(configuration) { client in
            async let script: Void = onThread {
                let connection = try proxy.accept()
                _ = try connection.receive(until: "\r\n\r\n")
                connection.send("HTTP/1.1 407 No\r\nContent-Length: 100000000000\r\n\r\n")
                let piece = [UInt8](repeating: 1, count: 65_536)
                connection.flood(piece)
            }.get()
            let error = try await client.failure()
            #expect(error.description.contains("the proxy's answer has no end"), "\(error)")
            try await script
        }
    }

    @Test("a TLS handshake that has no end does not hold the loop")
    func endlessHandshake() async throws {
        let server = try FakeServer()
        var configuration = NATSConfiguration(try NATSServerAddress("https://127.0.0.1:\(server.port)"))
        configuration.timing.backoff = .seconds(1_000)
        configuration.timing.longestBackoff = .seconds(1_000)
        try await withClient(configuration) { client in
            async let script: Void = onThread {
                let connection = try server.accept()
                // A record of 4,096 HelloRequest messages, which are allowed before ServerHello (RFC 5246, 7.4.1.1).
                connection.flood([22, 3, 3, 0x40, 0] + [UInt8](repeating: 0, count: 16_384))
            }.get()
            let error = try await client.failure()
            #expect(error.description.contains("unexpected message"), "\(error)")
            try await script
        }
    }

    @Test(
        "the URL of a proxy that cannot be used stays secret",
        arguments: [
            "http://user:S3CRET", "http://user:S3CRET@bad host:1",
            "http://user:\(String(repeating: "S3CRET", count: 60))@bad host:1",
        ])
    func secretProxy(url: String) async throws {
        var configuration = NATSConfiguration(try NATSServerAddress("https://127.0.0.1:9"))
        configuration.connection.proxy = url
        try await withClient(configuration) { client in
            let error = try await client.failure()
            #expect(!error.description.contains("S3CRET"), "\(error)")
        }
    }

    @Test("a name that cannot be looked up is tried again and again, with its reason")
    func noSuchName() async throws {
        // A label of more than 63 characters: no resolver is asked.
        let host = String(repeating: "a", count: 70) + ".example"
        try await withClient(NATSConfiguration(try NATSServerAddress("https://\(host)"), backoff: 1)) { client in
            for _ in 0..<8 {
                let error = try await client.failure()
                #expect(!error.description.contains("lookups are still waiting"), "\(error)")
            }
        }
    }

    @Test("a function that judges a reply may end the connection")
    func judgeEnds() async throws {
        let server = try FakeServer()
        try await withClient(NATSConfiguration(try server.address())) { client in
            async let script: FakeConnection = onThread {
                let connection = try server.greet()
                let text = try connection.receive(until: "PUB a ")
                let reply = try #require(
                    text.split(separator: " ").first { $0.hasPrefix("_INBOX") && !$0.hasSuffix("*") })
                connection.send("MSG \(reply) 1 1\r\nx\r\n")
                return connection
            }.get()
            #expect(await client.isConnected())
            let isLast: @Sendable (NATSMessage) -> Bool = { _ in
                client.assumeIsolated { $0.beginEpoch(7, isNetworkPresent: false) }
                return true
            }
            var failure: NATSError?
            do throws(NATSError) {
                _ = try await client.requestSeveral(self.a, timeout: testTimeout, isLast: isLast)
            } catch {
                failure = error
            }
            #expect(failure == .connectionLost)
            _ = try await script
        }
    }

    @Test("a server that accepts and closes again and again is not tried in a tight loop")
    func closes() async throws {
        let server = try FakeServer()
        var configuration = NATSConfiguration(try server.address())
        configuration.timing.backoff = .seconds(1_000)
        configuration.timing.longestBackoff = .seconds(1_000)
        try await withClient(configuration) { client in
            try await onThread { _ = try server.accept() }.get()
            let error = try await client.failure()
            #expect(error == .closed(host: "127.0.0.1:\(server.port)", reason: nil))
            guard case .disconnected(_, let next) = await client.state else { throw Unexpected() }
            #expect(next > .now + .seconds(500))
        }
    }

    @Test("endless messages for an unknown subscription, and endless PING, do not block the loop or fill memory")
    func flood() async throws {
        let server = try FakeServer(receiveBuffer: 4_096)
        var configuration = NATSConfiguration(try server.address())
        configuration.limits.outgoing = 100_000
        try await withClient(configuration) { client in
            async let script: Void = onThread {
                let connection = try server.greet()
                _ = try connection.receive(until: "SUB ")
                let flood = Array(
                    String(repeating: String(repeating: "PING\r\n", count: 20) + "MSG a 77 3\r\nabc\r\n", count: 100)
                        .utf8)
                // It never reads: at last the client cannot send its answers, and ends the connection.
                for _ in 0..<10_000 { connection.send(flood) }
                let next = try server.greet()
                _ = try next.receive(until: "SUB ")
                #expect(try next.clientCloses())
            }.get()
            #expect(await client.isConnected())
            // The actor answers meanwhile.
            let error = try await client.failure()
            #expect(error == .outgoingBufferFull(limit: 100_000))
            #expect(await client.isConnected())
            await client.beginEpoch(1)
            try await script
        }
    }

    @Test("an operation of the client itself that finds the buffer full ends the connection, and another one is made")
    func fullBuffer() async throws {
        let server = try FakeServer(receiveBuffer: 4_096)
        var configuration = NATSConfiguration(try server.address())
        configuration.limits.outgoing = 100_000
        try await withClient(configuration) { client in
            let first = Task { try await onThread { try server.greet() }.get() }
            #expect(await client.isConnected())
            let connection = try await first.value
            let isEnded = await eventually {
                // The kernel may accept more from time to time.
                for size in [49_900, 1_000, 0] {
                    while (try? await client.publish(self.a, [UInt8](repeating: 1, count: size))) != nil {}
                }
                _ = try? await client.subscribe(NATSSubjectPattern(self.a))
                return await client.state.serverInfo == nil
            }
            #expect(isEnded)
            #expect(try await client.failure() == .outgoingBufferFull(limit: 100_000))
            let second = try await onThread { try server.greet() }.get()
            #expect(await client.isConnected())
            withExtendedLifetime((connection, second)) {}
        }
    }

    @Test("a server that sends nothing is given up")
    func silence() async throws {
        let server = try FakeServer()
        var configuration = NATSConfiguration(try server.address())
        configuration.timing.handshakeTimeout = .milliseconds(20)
        try await withClient(configuration) { client in
            try await onThread {
                for _ in 0..<2 {
                    let connection = try server.accept()
                    #expect(try connection.clientCloses())
                }
            }.get()
            guard case .connectionFailed = try await client.failure() else { throw Unexpected() }
        }
    }

    @Test("a server that stops to answer is given up")
    func laterSilence() async throws {
        let server = try FakeServer()
        var configuration = NATSConfiguration(try server.address())
        configuration.timing.silence = .milliseconds(20)
        configuration.timing.pongTimeout = .milliseconds(20)
        try await withClient(configuration) { client in
            try await onThread {
                let connection = try server.greet()
                #expect(try connection.receive(until: "PING\r\n").contains("SUB _INBOX."))
                #expect(try connection.clientCloses())
            }.get()
            let error = try await client.failure()
            #expect(
                error == .connectionFailed(host: "127.0.0.1:\(server.port)", reason: "the server does not answer"))
        }
    }

    @Test("a server without headers gets none, and a port without a server is an error")
    func headers() async throws {
        let server = try FakeServer()
        try await withClient(NATSConfiguration(try server.address())) { client in
            async let script: Void = onThread {
                let connection = try server.greet("{\"max_payload\":10}")
                #expect(try connection.clientCloses())
            }.get()
            #expect(await client.isConnected())
            var headers = NATSHeaders()
            try headers.append("A", "b")
            let block = headers
            await #expect(throws: NATSError.headersUnsupported) { try await client.publish(self.a, headers: block) }
            await client.beginEpoch(1, isNetworkPresent: false)
            try await script
        }
        let unused = try NATSServerAddress("http://127.0.0.1:1")
        try await withClient(NATSConfiguration(unused)) { client in
            guard case .connectionFailed(host: "127.0.0.1:1", _) = try await client.failure() else {
                throw Unexpected()
            }
        }
    }

    @Test("a client that ends while it connects, or waits for replies, ends everything")
    func stop() async throws {
        let server = try FakeServer()
        // The request's task ends on the loop.
        let loop = try EventLoop()
        try loop.runInThread(named: "test-loop")
        defer { loop.stop() }
        let configuration = NATSConfiguration(try server.address())
        let (request, subscription) = try await withClient(configuration, on: loop) { client in
            async let script = onThread {
                let connection = try server.greet()
                _ = try connection.receive(until: "PUB a ")
                return connection.descriptor
            }.get()
            #expect(await client.isConnected())
            let request = Task { try await client.request(self.a, timeout: testTimeout) }
            let subscription = try await client.subscribe(NATSSubjectPattern(self.a))
            _ = try await script
            return (request, subscription)
        }
        await #expect(throws: (any Error).self) { try await request.value }
        #expect(try await subscription.next() == nil)
    }

    struct Unexpected: Error {}
}
