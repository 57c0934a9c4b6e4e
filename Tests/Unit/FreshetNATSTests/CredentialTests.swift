import FreshetEventLoop
import Glibc
import NATSTestSupport
import TestSupport
import Testing

@testable import FreshetNATS

@Suite(
    "Credentials with a real nats-server",
    .enabled(if: NATSServer.isAvailable, "needs nats-server; run Scripts/setup test"), .hangLimit)
struct CredentialTests {
    private let users = "authorization { users: [ { nkey: \(TestKeys.publicKey) } ] }"
    private let a = NATSSubject(trusted: "a")

    @Test("an NKEY that the server knows is accepted")
    func accepted() async throws {
        let server = try await NATSServer(users)
        let seed = try NKeySeed(text: TestKeys.seed)
        try await withConnectedClient(NATSConfiguration(try server.address(), credential: seed)) { client in
            #expect(await client.state.serverInfo?.requiresAuthentication == true)
            try await client.flush(timeout: testTimeout)
        }
    }

    @Test("an NKEY that the server does not know is refused once, and not tried again", arguments: [true, false])
    func refused(hasKey: Bool) async throws {
        let server = try await NATSServer(users)
        let seed = hasKey ? try NKeySeed(text: TestKeys.otherSeed) : nil
        try await withClient(NATSConfiguration(try server.address(), credential: seed)) { client in
            let error = try await client.failure()
            #expect(
                error == .refused(host: "127.0.0.1:\(server.port)", reason: "Authorization Violation"), "\(error)")
            guard case .refused(_, let next) = await client.state else { throw NotRefused() }
            #expect(next > .now + .seconds(3_000))
            for epoch in 1...5 { await client.beginEpoch(UInt64(epoch)) }
            guard case .refused(_, next) = await client.state else { throw NotRefused() }
        }
        #expect(server.count("authentication error") == 1, "\(server.log)")
    }

    @Test("one server of two that refuses does not keep the client from the other")
    func oneRefuses() async throws {
        let (refusing, accepting) = (try await NATSServer(users), try await NATSServer())
        let configuration = NATSConfiguration(try refusing.address(), try accepting.address())
        try await withClient(configuration, fraction: { 0 }) { client in
            #expect(await client.isConnected())
        }
        #expect(refusing.count("authentication error") == 1)
    }

    @Test("a key that is revoked while connected leads to the refused state")
    func revoked() async throws {
        let server = try await NATSServer(users)
        let seed = try NKeySeed(text: TestKeys.seed)
        try await withConnectedClient(NATSConfiguration(try server.address(), credential: seed)) { client in
            try server.reload {
                $0.replacing(TestKeys.publicKey, with: NKeyText.encode([UInt8](repeating: 9, count: 32)))
            }
            let isRefused = await eventually {
                guard case .refused = await client.state else { return false }
                return true
            }
            let state = await client.state
            #expect(isRefused, "\(state)")
        }
    }

    @Test("a missing right ends the subscription or the request with the server's words")
    func permissions() async throws {
        let server = try await NATSServer(
            """
            authorization { users: [ { nkey: \(TestKeys.publicKey), permissions: {
                publish: ["ok"], subscribe: ["_INBOX.>"] } } ] }
            """)
        let seed = try NKeySeed(text: TestKeys.seed)
        try await withConnectedClient(NATSConfiguration(try server.address(), credential: seed)) { client in
            let subscription = try await client.subscribe(NATSSubjectPattern(self.a))
            let words = "Permissions Violation for Subscription to \"a\""
            await #expect(throws: NATSError.notPermitted(words)) { try await subscription.next() }
            await #expect(throws: NATSError.notPermitted("Permissions Violation for Publish to \"a\"")) {
                try await client.request(self.a, timeout: testTimeout)
            }
            #expect(await client.state.serverInfo != nil)
            await #expect(throws: NATSError.noResponders) {
                try await client.request(try NATSSubject("ok"), timeout: testTimeout)
            }
        }
    }

    @Test("without the right to replies, a request ends immediately with the server's words")
    func noReplies() async throws {
        let server = try await NATSServer(
            """
            authorization { users: [ { nkey: \(TestKeys.publicKey), permissions: {
                publish: ">", subscribe: { deny: "_INBOX.>" } } } ] }
            """)
        let seed = try NKeySeed(text: TestKeys.seed)
        try await withConnectedClient(NATSConfiguration(try server.address(), credential: seed)) { client in
            for _ in 0..<2 {
                var failure: NATSError?
                do throws(NATSError) {
                    _ = try await client.request(self.a, timeout: .seconds(1_000))
                } catch {
                    failure = error
                }
                guard case .notPermitted = failure else { throw NotRefused() }
            }
            try await client.flush(timeout: testTimeout)
        }
    }

    // MARK: TLS

    private let tls = """
        tls { cert_file: "DIRECTORY/server.pem", key_file: "DIRECTORY/server.key", handshake_first: true }
        """

    @Test("TLS with the fleet's own authority: messages arrive, also large ones")
    func encrypted() async throws {
        let server = try await NATSServer(tls, prepare: makeCertificates)
        var configuration = NATSConfiguration(try server.address(tls: true))
        configuration.connection.certificateAuthority = server.directory.path("ca.pem")
        try await withConnectedClient(configuration) { client in
            let subscription = try await client.subscribe(NATSSubjectPattern(self.a))
            let payload = (0..<900_000).map { UInt8(truncatingIfNeeded: $0 / 7) }
            for _ in 0..<3 {
                try await client.publish(self.a, payload)
                #expect(try await subscription.next() == .message(NATSMessage(subject: "a", payload: payload)))
            }
            try await client.flush(timeout: testTimeout)
        }
    }

    @Test("a client certificate identifies the client")
    func clientCertificate() async throws {
        let server = try await NATSServer(
            tls.replacing(
                "handshake_first", with: "ca_file: \"DIRECTORY/ca.pem\", verify: true, handshake_first"),
            prepare: makeCertificates)
        var configuration = NATSConfiguration(try server.address(tls: true))
        configuration.connection.certificateAuthority = server.directory.path("ca.pem")
        try await withClient(configuration) { client in _ = try await client.failure() }
        configuration.connection.clientCertificate = .init(
            certificate: server.directory.path("server.pem"), key: server.directory.path("server.key"))
        try await withConnectedClient(configuration) { client in try await client.flush(timeout: testTimeout) }
    }

    @Test("a certificate of another authority is not trusted")
    func wrongAuthority() async throws {
        let server = try await NATSServer(tls, prepare: makeCertificates)
        let other = try TemporaryDirectory()
        try await makeCertificates(other)
        var configuration = NATSConfiguration(try server.address(tls: true))
        configuration.connection.certificateAuthority = other.path("ca.pem")
        try await withClient(configuration) { client in
            let error = try await client.failure()
            #expect(error.description.contains("certificate"), "\(error)")
        }
        // A trusted certificate for another name.
        configuration = NATSConfiguration(try NATSServerAddress("https://localhost:\(server.port)"))
        configuration.connection.certificateAuthority = server.directory.path("ca.pem")
        try await withClient(configuration) { client in
            let error = try await client.failure()
            #expect(error.description.contains("localhost"), "\(error)")
        }
    }

    @Test("a server without handshake_first is reported with the remedy")
    func noHandshakeFirst() async throws {
        let server = try await NATSServer(
            tls.replacing(", handshake_first: true", with: ""), prepare: makeCertificates)
        var configuration = NATSConfiguration(try server.address(tls: true))
        configuration.connection.certificateAuthority = server.directory.path("ca.pem")
        try await withClient(configuration) { client in
            let error = try await client.failure()
            #expect(error.description.hasSuffix("the server needs handshake_first: true"), "\(error)")
        }
        try await withClient(NATSConfiguration(try server.address())) { client in
            let error = try await client.failure()
            #expect(error == .tlsRequired(host: "127.0.0.1:\(server.port)"))
        }
    }

    /// Makes an authority, and a certificate for 127.0.0.1 for servers and clients.
    private func makeCertificates(_ directory: TemporaryDirectory) async throws {
        try directory.write("subjectAltName=IP:127.0.0.1\n", to: "names")
        let loop = try EventLoop()
        try loop.runInThread(named: "openssl")
        defer { loop.stop() }
        let key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
        for arguments in [
            ["req", "-x509"] + key + ["-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=test", "-days", "2"],
            ["req"] + key + ["-keyout", "server.key", "-out", "server.csr", "-subj", "/CN=server"],
            [
                "x509", "-req", "-in", "server.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-out",
                "server.pem", "-days", "2", "-extfile", "names",
            ],
        ] {
            let null = open("/dev/null", O_RDWR | O_CLOEXEC)
            defer { close(null) }
            let command = ChildProcess.Command(
                path: "/usr/bin/openssl", arguments: arguments, directory: directory.path)
            let child = try ChildProcess(loop, command, input: null, output: null, error: null)
            try #require(await child.wait() == .exited(status: 0), "openssl \(arguments)")
        }
    }

    struct NotRefused: Error {}
}
