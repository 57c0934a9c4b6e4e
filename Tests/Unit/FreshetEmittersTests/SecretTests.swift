import FreshetEventLoop
import FreshetPipelines
import Glibc
import Synchronization
import TestSupport
import Testing

@testable import FreshetEmitters

@Suite("Secrets of requests")
struct SecretTests {
    /// Secrets that a test changes while a client runs.
    private final class Secrets: SecretReading {
        let values: Mutex<[String: String]>
        let reads = Mutex<[String]>([])
        let redacted = Mutex<Set<String>>([])

        init(_ values: [String: String]) { self.values = Mutex(values) }

        func set(_ name: String, _ value: String?) { values.withLock { $0[name] = value } }

        func secret(_ name: String) async throws(FetchError) -> String {
            reads.withLock { $0.append(name) }
            guard let value = values.withLock({ $0[name] }) else {
                throw .failed(RunFailure(.local, "the credential file \(name) cannot be read"))
            }
            return value
        }

        func redact(_ secret: String, of key: String) { redacted.withLock { _ = $0.insert(secret) } }
    }

    private let running: RunningLoop

    init() throws { running = try RunningLoop() }

    private func fetch(
        _ client: HTTPClient, _ url: String, _ headers: [HTTPHeader]
    ) async throws(FetchError) -> FetchResult {
        let source = HTTPSource(url: url, headers: headers, host: "127.0.0.1")
        return try await client.fetch(source, for: FetchRequest(source: .http(source)))
    }

    /// An origin that wants this bearer token.
    private func origin(wanting token: SharedText) throws -> ScriptedOrigin {
        try ScriptedOrigin { request, connection in
            let isRight = request.headers["authorization"] == "Bearer \(token.value)"
            connection.answer(isRight ? "200 OK" : "401 Unauthorized", body: "content")
        }
    }

    @Test("after a 401, a credential is read again; the request is repeated once if it has changed, and not otherwise")
    func rotated() async throws {
        let secrets = Secrets(["token": "old"])
        let client = HTTPClient(running.loop, secretReader: secrets)
        await client.use(["token": "old"])
        let wanted = SharedText("old")
        let origin = try self.origin(wanting: wanted)
        #expect(try await fetch(client, origin.url(), [.bearer("token")]).text == "content")
        #expect(secrets.reads.withLock { $0 } == [])
        wanted.set("new")
        // Not rotated here yet.
        let failure = try await failureOf { () async throws(FetchError) in
            try await fetch(client, origin.url(), [.bearer("token")])
        }
        #expect(failure.status == 401)
        #expect(
            failure.message.contains("with the credential 'token', as it is now; after a rotation, systemctl restart"))
        #expect(origin.requests.count == 2)
        secrets.set("token", "new")
        #expect(try await fetch(client, origin.url(), [.bearer("token")]).text == "content")
        #expect(origin.requests.count == 4)
        // The new secret is kept.
        #expect(try await fetch(client, origin.url(), [.bearer("token")]).text == "content")
        #expect(origin.requests.count == 5 && secrets.reads.withLock { $0.count } == 2)
        // A secret that changes with each reading does not cause a loop.
        wanted.set("nothing")
        secrets.set("token", "newer")
        _ = try await failureOf { () async throws(FetchError) in
            try await fetch(client, origin.url(), [.bearer("token")])
        }
        #expect(origin.requests.count == 7)
    }

    @Test("a file is read for each request; if it cannot be read, nothing is requested")
    func file() async throws {
        let secrets = Secrets(["/run/token": "one"])
        let client = HTTPClient(running.loop, secretReader: secrets)
        let wanted = SharedText("one")
        let origin = try self.origin(wanting: wanted)
        for token in ["one", "two"] {
            wanted.set(token)
            secrets.set("/run/token", token)
            #expect(try await fetch(client, origin.url(), [.bearer("/run/token")]).text == "content")
        }
        #expect(origin.requests.count == 2)
        secrets.set("/run/token", nil)
        let failure = try await failureOf { () async throws(FetchError) in
            try await fetch(client, origin.url(), [.bearer("/run/token")])
        }
        #expect(failure == RunFailure(.local, "the credential file /run/token cannot be read"))
        #expect(origin.requests.count == 2)
    }

    // MARK: OAuth 2.0

    private func header(_ url: String) -> HTTPHeader {
        HTTPHeader(
            "Authorization", credential: "client-secret",
            as: .oauth2(OAuth2Client(tokenURL: url, host: "127.0.0.1", identifier: "freshet", scope: "read")))
    }

    /// A server of tokens: token-1, token-2 … for this client.
    private func server(_ secret: SharedText) throws -> ScriptedOrigin {
        let count = SharedText("0")
        return try ScriptedOrigin { request, connection in
            let expected = "Basic \(BasicCredentials.encoded(client: "freshet", secret.value))"
            guard request.headers["authorization"] == expected, request.method == "POST" else {
                return connection.answer("401 Unauthorized", body: #"{"error":"invalid_client"}"#)
            }
            count.set("\((Int(count.value) ?? 0) + 1)")
            connection.answer(
                "200 OK", headers: ["Content-Type: application/json"],
                body: #"{"access_token":"token-\#(count.value)","token_type":"Bearer","expires_in":3600}"#)
        }
    }

    @Test("a token is requested once for all requests, and again after a 401 of the origin, once")
    func tokens() async throws {
        let secrets = Secrets(["client-secret": "s3cret with space"])
        let client = HTTPClient(running.loop, secretReader: secrets)
        await client.use(["client-secret": "s3cret with space"])
        let server = try self.server(SharedText("s3cret with space"))
        let wanted = SharedText("token-1")
        let origin = try self.origin(wanting: wanted)
        let header = self.header(server.url("/token"))
        try await withThrowingTaskGroup(of: String?.self) { group in
            for _ in 1...8 { group.addTask { try await self.fetch(client, origin.url(), [header]).text } }
            for try await text in group { #expect(text == "content") }
        }
        #expect(server.requests.count == 1 && origin.requests.count == 8)
        #expect(server.requests.first?.body == "grant_type=client_credentials&scope=read")
        #expect(secrets.redacted.withLock { $0 } == ["token-1"])
        wanted.set("token-2")
        #expect(try await fetch(client, origin.url(), [header]).text == "content")
        #expect(server.requests.count == 2 && origin.requests.count == 10)
        wanted.set("nothing")
        let failure = try await failureOf { () async throws(FetchError) in
            try await fetch(client, origin.url(), [header])
        }
        #expect(failure.status == 401)
        // The server has accepted the client's secret: another one would change nothing.
        #expect(
            failure.message
                == "the origin answered 401 Unauthorized (127.0.0.1): with an access token from 127.0.0.1; check its "
                + "scope, and whether the origin accepts tokens of this server")
        #expect(server.requests.count == 3 && origin.requests.count == 12)
    }

    @Test(
        "a refusal of another origin, which never gets the secret, renews nothing: the request is not repeated",
        arguments: ["401 Unauthorized", "403 Forbidden"])
    func refusedElsewhere(_ status: String) async throws {
        let secrets = Secrets(["client-secret": "secret", "/run/token": "one"])
        let client = HTTPClient(running.loop, secretReader: secrets)
        await client.use(["client-secret": "secret"])
        let server = try self.server(SharedText("secret"))
        let other = try ScriptedOrigin { _, connection in
            // If the file was read again, the secret would be another one.
            secrets.set("/run/token", "two")
            connection.answer(status, body: "")
        }
        let location = other.url("/elsewhere")
        let origin = try ScriptedOrigin { _, connection in
            connection.answer("302 Found", headers: ["Location: \(location)"])
        }
        for header in [header(server.url("/token")), HTTPHeader.bearer("/run/token")] {
            let (before, elsewhere) = (origin.requests.count, other.requests.count)
            let failure = try await failureOf { () async throws(FetchError) in
                try await fetch(client, origin.url(), [header])
            }
            #expect(failure.status.map(String.init) == String(status.prefix(3)))
            #expect(failure.message.contains("its headers are sent to its own origin only"))
            #expect(origin.requests.count == before + 1 && other.requests.count == elsewhere + 1)
        }
        #expect(other.requests.allSatisfy { $0.headers["authorization"] == nil })
        #expect(server.requests.count == 1)
        #expect(secrets.reads.withLock { $0 } == ["/run/token"])
    }

    @Test("a rotated secret of the client is read again; a failure of the server names it, and is shared")
    func clientSecret() async throws {
        let secrets = Secrets(["client-secret": "old"])
        let client = HTTPClient(running.loop, secretReader: secrets)
        await client.use(["client-secret": "old"])
        let secret = SharedText("new")
        let server = try self.server(secret)
        let origin = try self.origin(wanting: SharedText("token-1"))
        let header = self.header(server.url("/token"))
        let failure = try await failureOf { () async throws(FetchError) in
            try await fetch(client, origin.url(), [header])
        }
        #expect(failure.kind == .refused && failure.status == nil)
        #expect(failure.message.hasPrefix("no access token from 127.0.0.1: the origin answered 401 Unauthorized"))
        #expect(server.requests.count == 1 && origin.requests.isEmpty)
        secrets.set("client-secret", "new")
        #expect(try await fetch(client, origin.url(), [header]).text == "content")
        #expect(server.requests.count == 3 && origin.requests.count == 1)
    }

    @Test(
        "a hostile answer of the server is a failure of the run, and the origin gets no request",
        arguments: [
            ("200 OK", "<html>", "its answer is not a JSON object (RFC 6749, 5.1)"),
            (
                "200 OK", String(repeating: "a", count: 70_000),
                "127.0.0.1 has 70,000 bytes, 65,536 are allowed; check token-url"
            ),
            (
                "302 Found", "",
                "127.0.0.1 redirects to 127.0.0.1; not followed, because the secret is sent to token-url only; "
                    + "check token-url"
            ),
            ("204 No Content", "", "its answer is not a JSON object (RFC 6749, 5.1)"),
        ])
    func hostile(status: String, body: String, message: String) async throws {
        let client = HTTPClient(running.loop, secretReader: Secrets([:]))
        await client.use(["client-secret": "s3cret"])
        let other = try ScriptedOrigin { _, connection in connection.answer("200 OK") }
        let elsewhere = other.url()
        let server = try ScriptedOrigin { _, connection in
            connection.answer(status, headers: ["Location: \(elsewhere)"], body: body)
        }
        let origin = try ScriptedOrigin { _, connection in connection.answer("200 OK") }
        let failure = try await failureOf { () async throws(FetchError) in
            try await fetch(client, origin.url(), [header(server.url())])
        }
        #expect(failure.message == "no access token from 127.0.0.1: \(message)")
        #expect(origin.requests.isEmpty && other.requests.isEmpty)
    }

    // MARK: Files

    @Test("a file that others can read or the group can write is refused, and so is anything but a regular file")
    func permissions() throws {
        let directory = try TemporaryDirectory()
        let path = try directory.write("s3cret\n", to: "token")
        for mode: mode_t in [0o600, 0o400, 0o640] {
            chmod(path, mode)
            #expect(try SecretFileReader.read(path, isGuarded: true) == Array("s3cret\n".utf8))
        }
        for (mode, words): (mode_t, String) in [(0o644, "chmod o="), (0o601, "chmod o="), (0o660, "chmod g-w")] {
            chmod(path, mode)
            let failure = #expect(throws: RunFailure.self) { try SecretFileReader.read(path, isGuarded: true) }
            #expect(failure?.message.contains(words) == true, "\(String(describing: failure))")
            #expect(try SecretFileReader.read(path, isGuarded: false).count == 7)
        }
        mkfifo(directory.path("fifo"), 0o600)
        for other in [directory.path, directory.path("fifo"), directory.path("absent"), "/dev/zero"] {
            #expect(throws: RunFailure.self) { try SecretFileReader.read(other, isGuarded: false) }
        }
        let long = try directory.write(String(repeating: "a", count: 20_000), to: "long")
        #expect(try SecretFileReader.read(long, isGuarded: false).count == SecretFileReader.sizeLimit)
    }
}

/// A text that the scripts of several threads share.
private final class SharedText: Sendable {
    private let state: Mutex<String>
    init(_ value: String) { state = Mutex(value) }
    var value: String { state.withLock { $0 } }
    func set(_ new: String) { state.withLock { $0 = new } }
}
