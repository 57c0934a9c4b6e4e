import FreshetEventLoop
import FreshetModel
import FreshetPipelines
import Synchronization
import TestSupport
import Testing

@testable import FreshetEmitters

@Suite("HTTP client: conditional requests, redirects, limits, cancellation")
struct HTTPClientTests {
    let running: RunningLoop
    let client: HTTPClient

    init() throws {
        running = try RunningLoop()
        client = HTTPClient(running.loop)
    }

    func fetch(
        _ url: String, headers: [HTTPHeader] = [], validators: Validators? = nil, maxBytes: UInt64 = 1 << 20,
        epoch: UInt64 = 0, progress: @escaping @Sendable (UInt64) -> Void = { _ in }
    ) async throws(FetchError) -> FetchResult {
        let source = HTTPSource(url: url, headers: headers, host: "127.0.0.1")
        return try await client.fetch(
            source,
            for: FetchRequest(
                source: .http(source), validators: validators, maxBytes: maxBytes, epoch: epoch, progress: progress))
    }

    // MARK: Answers

    @Test("a 200 has body, media type and validators; progress ends at the body's size")
    func content() async throws {
        let origin = try ScriptedOrigin { _, connection in
            connection.answer(
                "200 OK",
                headers: [
                    "Content-Type: Application/JSON; charset=utf-8", "ETag: \"v1\"",
                    "Last-Modified: Sat, 01 Jan 2022 00:00:00 GMT",
                ], body: "[1]")
        }
        let box = ProgressBox()
        let content = try #require(
            try await fetch(origin.url("/a?b=c"), headers: [HTTPHeader("X-Own", "1")], progress: { box.note($0) })
                .content)
        #expect(content.bytes == Array("[1]".utf8))
        #expect(content.mediaType == "application/json")
        #expect(
            content.validators
                == Validators(entityTag: "\"v1\"", lastModified: "Sat, 01 Jan 2022 00:00:00 GMT"))
        #expect(box.last == 3)
        let request = try #require(origin.requests.first)
        #expect(request.target == "/a?b=c")
        #expect(request.headers["x-own"] == "1")
        #expect(request.headers["user-agent"] == "freshet/0.1.0")
        #expect(request.headers["accept-encoding"]?.contains("gzip") == true)
        #expect(request.headers["if-none-match"] == nil)
    }

    @Test("validators make a request conditional; a 304 has no content, and its validators are returned")
    func notModified() async throws {
        let origin = try ScriptedOrigin { request, connection in
            let isSame = request.headers["if-none-match"] == "W/\"v1\""
            connection.answer(isSame ? "304 Not Modified" : "200 OK", headers: ["ETag: \"v1\""])
        }
        let result = try await fetch(
            origin.url(), validators: Validators(entityTag: "W/\"v1\"", lastModified: "Sat, 01 Jan 2022 00:00:00 GMT"))
        guard case .notModified(let validators, _) = result else {
            Issue.record("\(result)")
            return
        }
        #expect(validators == Validators(entityTag: "\"v1\""))
        #expect(origin.requests.first?.headers["if-modified-since"] == "Sat, 01 Jan 2022 00:00:00 GMT")
    }

    @Test("after a 304 with another entity tag the request is repeated once without the condition")
    func otherNotModified() async throws {
        let origin = try ScriptedOrigin { request, connection in
            let isSame = request.headers["if-none-match"] != nil || request.target == "/always"
            connection.answer(
                isSame ? "304 Not Modified" : "200 OK", headers: ["ETag: \"v2\""], body: isSame ? "" : "new")
        }
        let validators = Validators(entityTag: "\"v1\"")
        let content = try #require(try await fetch(origin.url(), validators: validators).content)
        #expect(content.bytes == Array("new".utf8) && content.validators == Validators(entityTag: "\"v2\""))
        #expect(origin.requests.map { $0.headers["if-none-match"] } == ["\"v1\"", nil])
        let failure = try await failureOf { () async throws(FetchError) in
            try await fetch(origin.url("/always"), validators: validators)
        }
        #expect(failure.kind == .content && origin.requests.count == 4)
    }

    @Test("validators to which an origin would always answer 304 are not sent, even if they were stored")
    func poisoned() async throws {
        let origin = try ScriptedOrigin { _, connection in
            connection.answer(
                "200 OK",
                headers: [
                    "ETag: *", "Last-Modified: Fri, 31 Dec 9998 23:59:59 GMT", "Date: Fri, 31 Dec 9999 23:59:59 GMT",
                ], body: "new")
        }
        #expect(try await fetch(origin.url()).content?.validators.isEmpty == true)
        let kept = Validators(entityTag: "\"x\", *", lastModified: "Fri, 31 Dec 9998 23:59:59 GMT")
        #expect(try await fetch(origin.url(), validators: kept).text == "new")
        let names = ["if-none-match", "if-modified-since"]
        #expect(origin.requests.allSatisfy { request in names.allSatisfy { request.headers[$0] == nil } })
    }

    @Test("a 304 to a request without a condition is a failure")
    func unexpectedNotModified() async throws {
        let origin = try ScriptedOrigin { _, connection in connection.answer("304 Not Modified") }
        let failure = try await failureOf { () async throws(FetchError) in try await fetch(origin.url()) }
        #expect(failure.kind == .content)
    }

    @Test(
        "the status of the answer determines the kind of failure",
        arguments: [
            ("404 Not Found", RunFailure.Kind.refused), ("401 Unauthorized", .refused), ("408 X", .transient),
            ("425 X", .transient), ("429 X", .transient), ("500 X", .transient), ("503 X", .transient),
            ("206 X", .content), ("300 X", .refused),
        ])
    func statuses(_ status: String, _ kind: RunFailure.Kind) async throws {
        let origin = try ScriptedOrigin { _, connection in
            connection.answer(status, headers: ["Retry-After: 7"], body: "an error page")
        }
        let failure = try await failureOf { () async throws(FetchError) in try await fetch(origin.url("/?secret=1")) }
        #expect(failure.kind == kind)
        #expect(failure.message.contains("the origin answered \(status.prefix(3))"))
        #expect(failure.message.contains("127.0.0.1"))
        #expect(!failure.message.contains("secret"))
        #expect(status.hasPrefix("\(failure.status ?? 0)"))
        #expect(kind == .content || failure.retryAfter == .seconds(7))
    }

    @Test("content has the links and the URL of the last answer, not those of a redirect")
    func links() async throws {
        let origin = try ScriptedOrigin { request, connection in
            guard request.target == "/to?a=1" else {
                return connection.answer("302 Found", headers: ["Link: </no>; rel=\"next\"", "Location: /to?a=1#part"])
            }
            let many = (3...40).map { "Link: </\($0)>; rel=\"item\"" }
            connection.answer(
                "200 OK", headers: ["Link: </2>; rel=\"next\"", "X: y", "link: </1>; rel=\"first\""] + many, body: "[]")
        }
        let content = try #require(try await fetch(origin.url("/from")).content)
        #expect(content.location == origin.url("/to?a=1"))
        #expect(content.links.prefix(2) == ["</2>; rel=\"next\"", "</1>; rel=\"first\""])
        #expect(content.links.count == HTTPExchange.linkLimit)
    }

    @Test("a compressed body is decoded")
    func compressed() async throws {
        // gzip of "hello hello hello hello\n"
        let packed: [UInt8] = [
            0x1F, 0x8B, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x03, 0xCB, 0x48, 0xCD, 0xC9, 0xC9, 0x57, 0xC8, 0x40,
            0x27, 0xB9, 0x00, 0x00, 0x88, 0x59, 0x0B, 0x18, 0x00, 0x00, 0x00,
        ]
        let origin = try ScriptedOrigin { request, connection in
            let bytes = request.target == "/broken" ? [UInt8](repeating: 7, count: 40) : packed
            connection.answer("200 OK", headers: ["Content-Encoding: gzip"], body: bytes)
        }
        #expect(try await fetch(origin.url()).text == "hello hello hello hello\n")
        // The limit applies to the decoded body.
        #expect(try await fetch(origin.url(), maxBytes: 24).content?.bytes.count == 24)
        let limited = try await failureOf { () async throws(FetchError) in try await fetch(origin.url(), maxBytes: 23) }
        #expect(limited.kind == .content && limited.message.contains("check.max-bytes"))
        let broken = try await failureOf { () async throws(FetchError) in try await fetch(origin.url("/broken")) }
        #expect(broken.kind == .content)
    }

    // MARK: Broken answers

    @Test("a truncated body is a failure with the number of received bytes")
    func cutShort() async throws {
        let origin = try ScriptedOrigin { _, connection in
            connection.send("HTTP/1.1 200 OK\r\nContent-Length: 20000\r\n\r\n")
            connection.send([UInt8](repeating: 1, count: 12_345))
            connection.close()
        }
        let failure = try await failureOf { () async throws(FetchError) in try await fetch(origin.url()) }
        #expect(failure.kind == .transient)
        #expect(failure.message.contains("the body ended after 12,345 of 20,000 bytes"))
    }

    @Test(
        "chunks that are truncated or invalid are a failure",
        arguments: ["5\r\nhello\r\n", "5\r\nhello\r\nzz\r\n", "5\r\nhel"])
    func brokenChunks(_ chunks: String) async throws {
        let origin = try ScriptedOrigin { _, connection in
            connection.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\(chunks)")
            connection.close()
        }
        let failure = try await failureOf { () async throws(FetchError) in try await fetch(origin.url()) }
        #expect(failure.kind == .transient)
    }

    @Test("an origin that closes the connection without an answer, or does not send HTTP, is a transient failure")
    func nonsense() async throws {
        let origin = try ScriptedOrigin { request, connection in
            if request.target == "/smtp" { connection.send("220 mail ESMTP\r\n") }
            connection.close()
        }
        for path in ["/", "/smtp"] {
            let failure = try await failureOf { () async throws(FetchError) in try await fetch(origin.url(path)) }
            #expect(failure.kind == .transient)
        }
    }

    @Test("a refused connection and an unknown name are connection failures that name the host")
    func noConnection() async throws {
        let url = try ScriptedOrigin { _, _ in }.url()
        // The listener closes on another thread; until then a connection is reset.
        let refused = await eventually {
            let failure = try? await failureOf { () async throws(FetchError) in try await fetch(url) }
            return failure?.kind == .connection && failure?.message.contains("could not connect to 127.0.0.1") == true
        }
        #expect(refused)
        // RFC 6761, 6.4: a name below .invalid never resolves.
        let failure = try await failureOf { () async throws(FetchError) in
            try await fetch("http://user:secret@nowhere.invalid/?token=secret")
        }
        #expect(failure.kind == .connection)
        #expect(failure.message.hasPrefix("could not resolve nowhere.invalid"))
        #expect(!failure.message.contains("secret"))
    }

    @Test("a request ends after the stall limit if the origin sends nothing")
    func stall() async throws {
        let impatient = HTTPClient(running.loop, options: .init(stallLimit: .seconds(1)))
        let gate = Latch()
        let origin = try ScriptedOrigin { _, connection in
            connection.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n12")
            _ = gate.wait(for: testTimeout)
        }
        defer { gate.open() }
        let source = HTTPSource(url: origin.url(), host: "127.0.0.1")
        let failure = try await failureOf { () async throws(FetchError) in
            try await impatient.fetch(source, for: FetchRequest(source: .http(source)))
        }
        #expect(failure == RunFailure(.transient, "127.0.0.1 sent nothing for 1 s"))
    }

    // MARK: Limits

    @Test("a body of exactly the size limit is accepted; one byte more is not, announced or not")
    func sizeLimit() async throws {
        let origin = try ScriptedOrigin { request, connection in
            let body = [UInt8](repeating: 120, count: 1_000)
            if request.target == "/announced" {
                connection.answer("200 OK", body: body)
            } else {
                connection.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3e8\r\n")
                connection.send(body + Array("\r\n0\r\n\r\n".utf8))
            }
        }
        for path in ["/announced", "/chunked"] {
            #expect(try await fetch(origin.url(path), maxBytes: 1_000).content?.bytes.count == 1_000)
            let failure = try await failureOf { () async throws(FetchError) in
                try await fetch(origin.url(path), maxBytes: 999)
            }
            #expect(failure.kind == .content)
            #expect(failure.message.contains("check.max-bytes") && failure.message.contains("999"))
        }
    }

    @Test("an endless body ends at the size limit, and its connection is closed")
    func endlessBody() async throws {
        let cut = Event()
        let origin = try ScriptedOrigin { _, connection in
            connection.send("HTTP/1.1 200 OK\r\n\r\n")
            connection.send([UInt8](repeating: 0, count: 4 << 20))
            if connection.clientCloses() { cut.happen() }
        }
        let failure = try await failureOf { () async throws(FetchError) in try await fetch(origin.url()) }
        #expect(failure.kind == .content)
        await cut.occurrence()
    }

    @Test("endless header fields end the request")
    func endlessHeaders() async throws {
        let cut = Event()
        let origin = try ScriptedOrigin { _, connection in
            connection.send("HTTP/1.1 200 OK\r\n")
            // libcurl accepts 300 KiB of them.
            for number in 0..<1_000 { connection.send("X-\(number): \(String(repeating: "x", count: 4_000))\r\n") }
            if connection.clientCloses() { cut.happen() }
        }
        let failure = try await failureOf { () async throws(FetchError) in try await fetch(origin.url()) }
        #expect(failure.kind == .transient)
        await cut.occurrence()
    }

    // MARK: Redirects

    @Test("validators belong to the configured URL: they are not sent to or kept from the target of a redirect")
    func redirectedValidators() async throws {
        let origin = try ScriptedOrigin { request, connection in
            switch request.target {
            case "/moves": connection.answer("302 Found", headers: ["Location: /two"])
            // Another resource with the same tag: a conditional request would get a 304 for other content.
            case "/two" where request.headers["if-none-match"] != nil: connection.answer("304 Not Modified")
            case "/two": connection.answer("200 OK", headers: ["ETag: \"1\""], body: "two")
            default: connection.answer("200 OK", headers: ["ETag: \"1\""], body: "one")
            }
        }
        let validators = Validators(entityTag: "\"1\"")
        let content = try #require(try await fetch(origin.url("/moves"), validators: validators).content)
        #expect(String(decoding: content.bytes, as: UTF8.self) == "two")
        #expect(content.validators.isEmpty)
        #expect(origin.requests.map { $0.headers["if-none-match"] } == ["\"1\"", nil])
        #expect(try await fetch(origin.url("/stays")).content?.validators == validators)
    }

    @Test("a redirect to another origin does not send configured headers or user information")
    func redirectElsewhere() async throws {
        let other = try ScriptedOrigin { _, connection in
            connection.answer("200 OK", headers: ["ETag: \"other\""], body: "there")
        }
        let target = other.url("/x").replacing("http://", with: "http://thief:word@")
        let origin = try ScriptedOrigin { request, connection in
            switch request.target {
            case "/start": connection.answer("302 Found", headers: ["Location: next?a=b%20c#f", "ETag: \"no\""])
            default: connection.answer("307 Temporary Redirect", headers: ["Location: \(target)"], body: "moved")
            }
        }
        let url = origin.url("/start").replacing("http://", with: "http://me:pass@")
        let headers = [
            HTTPHeader("Authorization", "Bearer s3cret"), HTTPHeader("Cookie", "c=1"), HTTPHeader("X-Key", "k"),
        ]
        let content = try #require(try await fetch(url, headers: headers).content)
        #expect(String(decoding: content.bytes, as: UTF8.self) == "there")
        #expect(content.validators.isEmpty)

        #expect(origin.requests.map(\.target) == ["/start", "/next?a=b%20c"])
        for request in origin.requests {
            #expect(request.headers["authorization"] == "Bearer s3cret")
            #expect(request.headers["x-key"] == "k")
        }
        let request = try #require(other.requests.first)
        for name in ["authorization", "cookie", "x-key"] { #expect(request.headers[name] == nil) }
    }

    @Test("user information of the URL is sent to its origin only")
    func userInformation() async throws {
        let other = try ScriptedOrigin { _, connection in connection.answer("200 OK", body: "there") }
        let elsewhere = other.url()
        let origin = try ScriptedOrigin { request, connection in
            connection.answer("301 Moved", headers: ["Location: \(request.target == "/a" ? "/b" : elsewhere)"])
        }
        _ = try await fetch(origin.url("/a").replacing("http://", with: "http://me:p%40ss@"))
        // me:p@ss
        #expect(origin.requests.map { $0.headers["authorization"] } == ["Basic bWU6cEBzcw==", "Basic bWU6cEBzcw=="])
        #expect(other.requests.map { $0.headers["authorization"] } == [nil])
    }

    @Test("a credential is sent unchanged, and only to the configured origin")
    func credential() async throws {
        let other = try ScriptedOrigin { _, connection in connection.answer("401 Unauthorized") }
        let elsewhere = other.url()
        let origin = try ScriptedOrigin { request, connection in
            connection.answer("301 Moved", headers: ["Location: \(request.target == "/a" ? "/b" : elsewhere)"])
        }
        await client.use(["token": "s3cret", "api-key": "k3y"])
        let headers = [HTTPHeader.bearer("token"), HTTPHeader("X-Api-Key", credential: "api-key")]
        let failure = try await failureOf { () async throws(FetchError) in
            try await fetch(origin.url("/a"), headers: headers)
        }
        #expect(origin.requests.map { $0.headers["authorization"] } == ["Bearer s3cret", "Bearer s3cret"])
        #expect(origin.requests.map { $0.headers["x-api-key"] } == ["k3y", "k3y"])
        #expect(other.requests.map { $0.headers["authorization"] } == [nil])
        #expect(other.requests.map { $0.headers["x-api-key"] } == [nil])
        #expect(
            failure.message == "the origin answered 401 Unauthorized (127.0.0.1): the source redirects there, and its "
                + "headers are sent to its own origin only")
        // The next request uses a new credential.
        await client.use(["token": "n3w", "api-key": "k3y"])
        _ = try await failureOf { () async throws(FetchError) in try await fetch(origin.url("/a"), headers: headers) }
        #expect(origin.requests.last?.headers["authorization"] == "Bearer n3w")
    }

    @Test("user and password are sent as in RFC 7617, to the configured origin only; without a colon nothing is sent")
    func basic() async throws {
        let other = try ScriptedOrigin { _, connection in connection.answer("200 OK", body: "there") }
        let elsewhere = other.url()
        let origin = try ScriptedOrigin { _, connection in
            connection.answer("302 Found", headers: ["Location: \(elsewhere)"])
        }
        // The example of RFC 7617, 2.
        await client.use(["door": "Aladdin:open sesame", "plain": "sesame"])
        #expect(try await fetch(origin.url(), headers: [.basic("door")]).text == "there")
        #expect(origin.requests.map { $0.headers["authorization"] } == ["Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="])
        #expect(other.requests.map { $0.headers["authorization"] } == [nil])
        let failure = try await failureOf { () async throws(FetchError) in
            try await fetch(origin.url(), headers: [.basic("plain")])
        }
        #expect(failure == RunFailure(.local, "the credential 'plain' is not of the form user:password"))
        #expect(origin.requests.count == 1)
    }

    @Test(
        "the failure names the path of a URL that stands in the configuration, without its query, and of no other URL")
    func path() async throws {
        let origin = try ScriptedOrigin { request, connection in
            guard request.target.hasPrefix("/moved") else { return connection.answer("404 Not Found") }
            connection.answer("302 Found", headers: ["Location: /secret/of/the/origin"])
        }
        func message(_ path: String, isConfigured: Bool = true) async throws -> String {
            let source = HTTPSource(url: origin.url(path), host: "127.0.0.1")
            var request = FetchRequest(source: .http(source))
            request.isConfiguredURL = isConfigured
            return try await failureOf { [client, request] () async throws(FetchError) in
                try await client.fetch(source, for: request)
            }.message
        }
        let answered = "the origin answered 404 Not Found "
        #expect(try await message("/lists/a.txt?token=s3cret") == answered + "(127.0.0.1/lists/a.txt)")
        #expect(try await message("/lists/ü\u{202E}") == answered + "(127.0.0.1/lists/%c3%bc%e2%80%ae)")
        #expect(try await message("/?a=b") == answered + "(127.0.0.1)")
        #expect(try await message("/lists/a.txt", isConfigured: false) == answered + "(127.0.0.1)")
        #expect(try await message("/moved") == answered + "(127.0.0.1)")
        let long = "/" + String(repeating: "a", count: 500)
        #expect(try await message(long) == answered + "(127.0.0.1\(long.prefix(120))…)")
    }

    @Test("the failure after a 401 or 403 to a credential recommends a restart", arguments: [401, 403])
    func rotated(status: Int) async throws {
        let origin = try ScriptedOrigin { _, connection in connection.answer("\(status) No") }
        await client.use(["token": "s3cret"])
        let failure = try await failureOf { () async throws(FetchError) in
            try await fetch(origin.url(), headers: [.bearer("token")])
        }
        #expect(failure.kind == .refused)
        #expect(
            failure.message.hasSuffix(
                "with the credential 'token', as it is now; after a rotation, systemctl restart freshetd: systemd passes "
                    + "a new file only then"))
        let plain = try await failureOf { () async throws(FetchError) in try await fetch(origin.url()) }
        #expect(plain.message.hasSuffix("check the source's headers, or give it a credential"))
    }

    @Test("a request without its credential, or unencrypted to another machine, is not sent")
    func withheld() async throws {
        let origin = try ScriptedOrigin { _, connection in connection.answer("200 OK") }
        let missing = try await failureOf { () async throws(FetchError) in
            try await fetch(origin.url(), headers: [.bearer("token")])
        }
        #expect(missing.message == "the service was started without the credential 'token'")
        await client.use(["token": "s3cret"])
        let source = HTTPSource(url: origin.url(), headers: [.bearer("token")], host: "api.example.com")
        let unencrypted = try await failureOf { () async throws(FetchError) in
            try await client.fetch(source, for: FetchRequest(source: .http(source)))
        }
        #expect(
            unencrypted.message
                == "the credential 'token' is not sent unencrypted to api.example.com; use an https URL")
        #expect(origin.requests.isEmpty)
    }

    @Test("a request does not contain data of the previous request")
    func nothingLeft() async throws {
        let origin = try ScriptedOrigin { _, connection in connection.answer("200 OK", body: "x") }
        _ = try await fetch(
            origin.url("/1").replacing("http://", with: "http://me:pass@"), headers: [HTTPHeader("X-Key", "k")],
            validators: Validators(entityTag: "\"v1\"", lastModified: "Sat, 01 Jan 2022 00:00:00 GMT"))
        _ = try await fetch(origin.url("/2"))
        let names = ["authorization", "x-key", "if-none-match", "if-modified-since"]
        let first = try #require(origin.requests.first)
        let second = try #require(origin.requests.last)
        #expect(names.allSatisfy { first.headers[$0] != nil })
        #expect(names.allSatisfy { second.headers[$0] == nil })
        #expect(second.target == "/2")
    }

    @Test("ten redirects are followed, the eleventh is not")
    func redirectLimit() async throws {
        let origin = try ScriptedOrigin { request, connection in
            let left = Int(request.target.dropFirst()) ?? 0
            if left == 0 {
                connection.answer("200 OK", body: "end")
            } else {
                connection.answer("302 Found", headers: ["Location: /\(left - 1)"])
            }
        }
        #expect(try await fetch(origin.url("/10")).text == "end")
        let failure = try await failureOf { () async throws(FetchError) in try await fetch(origin.url("/11")) }
        #expect(failure.kind == .refused)
    }

    @Test(
        "a redirect to another scheme is not followed",
        arguments: ["file:///etc/passwd", "ftp://127.0.0.1/", "gopher://127.0.0.1:1/", "javascript:1"])
    func redirectScheme(_ target: String) async throws {
        let origin = try ScriptedOrigin { _, connection in
            connection.answer("302 Found", headers: ["Location: \(target)"])
        }
        let failure = try await failureOf { () async throws(FetchError) in try await fetch(origin.url()) }
        #expect(failure.kind == .refused)
    }

    @Test("the long body of a redirect is not read")
    func redirectBody() async throws {
        let origin = try ScriptedOrigin { request, connection in
            guard request.target == "/" else { return connection.answer("200 OK", body: "end") }
            connection.send("HTTP/1.1 302 Found\r\nLocation: /x\r\n\r\n")
            connection.send([UInt8](repeating: 0, count: HTTPExchange.ignoredBodyLimit + 1))
            _ = connection.clientCloses()
        }
        #expect(try await fetch(origin.url()).text == "end")
    }

    // MARK: Cancellation

    @Test("cancelling ends the request: its socket is closed when fetch throws")
    func cancel() async throws {
        let requested = Event()
        let (closes, closing) = AsyncStream<Bool>.makeStream()
        let origin = try ScriptedOrigin { _, connection in
            connection.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n12")
            requested.happen()
            closing.yield(connection.clientCloses())
        }
        let task = Task(executorPreference: running.loop) { () async throws(FetchError) in try await fetch(origin.url())
        }
        await requested.occurrence()
        task.cancel()
        let result = await task.result
        #expect(throws: FetchError.cancelled) { try result.get() }
        var closed = closes.makeAsyncIterator()
        #expect(await closed.next() == true)
        #expect(await client.openRequests == 0)
    }

    @Test("a fetch that is cancelled before it starts sends no request")
    func cancelBefore() async throws {
        let origin = try ScriptedOrigin { _, connection in connection.answer("200 OK", body: "x") }
        let gate = Event()
        let task = Task(executorPreference: running.loop) { () async throws(FetchError) in
            await gate.occurrence()
            return try await fetch(origin.url())
        }
        task.cancel()
        gate.happen()
        let result = await task.result
        #expect(throws: FetchError.cancelled) { try result.get() }
        #expect(origin.requests.isEmpty)
    }

    @Test("a request can be cancelled from its own progress callback")
    func cancelInProgress() async throws {
        let origin = try ScriptedOrigin { _, connection in
            connection.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n12")
            _ = connection.clientCloses()
        }
        let box = TaskBox()
        let started = Task(executorPreference: running.loop) { () async throws -> FetchResult in
            try await fetch(origin.url(), progress: { _ in box.cancel() })
        }
        box.hold(started)
        let result = await started.result
        #expect(throws: FetchError.cancelled) { try result.get() }
    }

    @Test("cancellation races with completion, and each request ends once", arguments: 0..<50)
    func race(_ round: Int) async throws {
        let origin = try ScriptedOrigin { _, connection in connection.answer("200 OK", body: "x") }
        let task = Task(executorPreference: running.loop) { () async throws(FetchError) in try await fetch(origin.url())
        }
        for _ in 0..<(round * 20) { await Task.yield() }
        task.cancel()
        switch await task.result {
        case .success(let result): #expect(result.text == "x")
        case .failure(let error): #expect(error as? FetchError == .cancelled)
        }
        #expect(await client.openRequests == 0)
    }

    // MARK: Connections and epochs

    @Test("concurrent requests do not wait for each other; successive requests share a connection")
    func connections() async throws {
        let gate = Latch()
        let requested = Event()
        let origin = try ScriptedOrigin { request, connection in
            if request.target == "/slow" {
                requested.happen()
                _ = gate.wait(for: testTimeout)
            }
            connection.answer("200 OK", body: request.target)
        }
        async let slow = fetch(origin.url("/slow"))
        await requested.occurrence()
        #expect(try await fetch(origin.url("/quick")).text == "/quick")
        gate.open()
        #expect(try await slow.text == "/slow")
        for _ in 0..<3 { _ = try await fetch(origin.url("/again")) }
        #expect(origin.requests.map(\.connection).max() == 2)
    }

    @Test("a new epoch uses new connections; requests in progress keep their connections")
    func epochs() async throws {
        let gate = Latch()
        let requested = Event()
        let origin = try ScriptedOrigin { request, connection in
            if request.target == "/slow" {
                requested.happen()
                _ = gate.wait(for: testTimeout)
            }
            connection.answer("200 OK", body: request.target)
        }
        _ = try await fetch(origin.url("/1"), epoch: 1)
        _ = try await fetch(origin.url("/2"), epoch: 1)
        async let slow = fetch(origin.url("/slow"), epoch: 1)
        await requested.occurrence()
        await client.beginEpoch(2)
        _ = try await fetch(origin.url("/3"), epoch: 2)
        #expect(await client.poolCount == 2)
        gate.open()
        #expect(try await slow.text == "/slow")
        #expect(await client.poolCount == 1)
        // A request of an older epoch uses the newer connection; a request of a newer epoch begins its epoch.
        _ = try await fetch(origin.url("/4"), epoch: 1)
        _ = try await fetch(origin.url("/5"), epoch: 3)
        let connections = Dictionary(uniqueKeysWithValues: origin.requests.map { ($0.target, $0.connection) })
        #expect(connections["/1"] == connections["/2"])
        #expect(connections["/3"] != connections["/1"])
        #expect(connections["/4"] == connections["/3"])
        #expect(connections["/5"] != connections["/3"])
        #expect(await client.poolCount == 1)
    }

    @Test("requests that follow a new epoch begin before the connections of the last one are closed")
    func closesLater() async throws {
        let origin = try ScriptedOrigin { _, connection in connection.answer("200 OK", body: "x") }
        _ = try await fetch(origin.url(), epoch: 1)
        let client = client
        let pools = await withCheckedContinuation { continuation in
            running.loop.perform {
                continuation.resume(
                    returning: client.assumeIsolated { client in
                        client.beginEpoch(2)
                        return client.poolCount
                    })
            }
        }
        #expect(pools == 1)
        #expect(await eventually { await client.poolCount == 0 })
    }

    @Test("the first request of a new epoch uses a handle that was made before it")
    func spareHandle() async throws {
        let origin = try ScriptedOrigin { _, connection in connection.answer("200 OK", body: "x") }
        _ = try await fetch(origin.url(), epoch: 1)
        #expect(await client.handlesMadeForRequests == 1)
        for epoch: UInt64 in 2...4 {
            #expect(await eventually { await client.hasSpareHandle })
            _ = try await fetch(origin.url(), epoch: epoch)
        }
        #expect(await client.handlesMadeForRequests == 1)
    }

    @Test("further requests of an epoch leave the spare handle to the next epoch")
    func spareHandleOfOneEpoch() async throws {
        let origin = try ScriptedOrigin { _, connection in connection.answer("200 OK", body: "x") }
        _ = try await fetch(origin.url(), epoch: 1)
        #expect(await eventually { await client.hasSpareHandle })
        for _ in 1...3 { _ = try await fetch(origin.url(), epoch: 1) }
        #expect(await client.hasSpareHandle)
        let made = await client.handlesMadeForRequests
        _ = try await fetch(origin.url(), epoch: 2)
        #expect(await client.handlesMadeForRequests == made)
    }

    @Test("an idle client closes its connections")
    func idle() async throws {
        let brief = HTTPClient(running.loop, options: .init(idleLifetime: .milliseconds(1)))
        let origin = try ScriptedOrigin { _, connection in connection.answer("200 OK", body: "x") }
        let source = HTTPSource(url: origin.url(), host: "127.0.0.1")
        _ = try await brief.fetch(source, for: FetchRequest(source: .http(source)))
        #expect(await eventually { await brief.poolCount == 0 })
    }

    // MARK: What is not sent

    @Test("an invalid header field and a URL of another scheme fail before anything is sent")
    func unfit() async throws {
        let origin = try ScriptedOrigin { _, connection in connection.answer("200 OK") }
        for header in [HTTPHeader("X", "a\r\nB: c"), HTTPHeader("X:", "a"), HTTPHeader("", "a")] {
            let failure = try await failureOf { () async throws(FetchError) in
                try await fetch(origin.url(), headers: [header])
            }
            #expect(failure.kind == .local)
        }
        let failure = try await failureOf { () async throws(FetchError) in try await fetch("file:///etc/passwd") }
        #expect(failure.kind == .local)
        #expect(origin.requests.isEmpty)
    }
}

private final class ProgressBox: Sendable {
    private let value = Mutex<UInt64>(0)
    var last: UInt64 { value.withLock { $0 } }
    func note(_ bytes: UInt64) { value.withLock { $0 = bytes } }
}

/// Gives a request's own callback access to its task, in either order of their creation.
private final class TaskBox: Sendable {
    private let state = Mutex<(task: Task<FetchResult, any Error>?, isCancelled: Bool)>((nil, false))

    func hold(_ task: Task<FetchResult, any Error>) {
        let cancels = state.withLock { state in
            state.task = task
            return state.isCancelled
        }
        if cancels { task.cancel() }
    }

    func cancel() {
        let task = state.withLock { state in
            state.isCancelled = true
            return state.task
        }
        task?.cancel()
    }
}
