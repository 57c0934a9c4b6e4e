import FreshetEventLoop
import FreshetPipelines
import Synchronization
import Testing

@testable import FreshetEmitters

@Suite("HTTP client: long bodies whose connection breaks")
struct HTTPResumeTests {
    let running: RunningLoop
    let client: HTTPClient
    let body: [UInt8] = (0..<300_000).map { UInt8(truncatingIfNeeded: $0 &* 31 >> 3) }

    init() throws {
        running = try RunningLoop()
        client = HTTPClient(running.loop)
    }

    private func fetch(
        _ url: String, headers: [HTTPHeader] = [], validators: Validators? = nil, maxBytes: UInt64 = 1 << 20,
        asked: @escaping @Sendable () -> Void = {}
    ) async throws(FetchError) -> FetchResult {
        let source = HTTPSource(url: url, headers: headers, host: "127.0.0.1")
        return try await client.fetch(
            source,
            for: FetchRequest(source: .http(source), validators: validators, maxBytes: maxBytes, asked: asked))
    }

    private func failure(_ url: String) async throws -> RunFailure {
        try await failureOf { () async throws(FetchError) in try await fetch(url) }
    }

    /// Sends at most `piece` bytes of the body from where it is asked to, then breaks off if that is not its end.
    private func origin(
        piece: Int, of body: [UInt8]? = nil, headers: [String] = ["ETag: \"v1\"", "Content-Type: text/plain"]
    ) throws -> ScriptedOrigin {
        let body = body ?? self.body
        return try ScriptedOrigin { request, connection in
            let start = request.rangeStart
            let lines = headers.map { "\($0)\r\n" }.joined()
            let status =
                start.map { "206 Partial Content\r\nContent-Range: bytes \($0)-\(body.count - 1)/\(body.count)" }
                ?? "200 OK"
            let rest = body[(start ?? 0)...]
            connection.send("HTTP/1.1 \(status)\r\n\(lines)Content-Length: \(rest.count)\r\n\r\n")
            connection.send(Array(rest.prefix(piece)))
            if rest.count > piece { connection.close() }
        }
    }

    @Test("the rest is asked for with Range and If-Range, and the parts make the body; each request counts")
    func resumed() async throws {
        let origin = try origin(piece: 100_000)
        let asked = Atomic(0)
        let headers = [HTTPHeader("X-Key", "k")]
        let content = try #require(
            try await fetch(origin.url("/a"), headers: headers, validators: Validators(entityTag: "\"v0\"")) {
                asked.add(1, ordering: .relaxed)
            }.content)
        #expect(content.bytes == body)
        #expect(content.validators.entityTag == "\"v1\"")
        #expect(content.mediaType == "text/plain")
        #expect(origin.requests.map { $0.headers["range"] } == [nil, "bytes=100000-", "bytes=200000-"])
        #expect(origin.requests.map { $0.headers["if-range"] } == [nil, "\"v1\"", "\"v1\""])
        #expect(origin.requests.map { $0.headers["if-none-match"] } == ["\"v0\"", nil, nil])
        #expect(origin.requests.map { $0.headers["x-key"] } == ["k", "k", "k"])
        #expect(asked.load(ordering: .relaxed) == 3)
    }

    @Test("a 206 need not repeat what the first answer said")
    func fieldsOfTheFirst() async throws {
        let body = body
        let origin = try ScriptedOrigin { request, connection in
            guard let start = request.rangeStart else {
                connection.send(
                    "HTTP/1.1 200 OK\r\nETag: \"v1\"\r\nContent-Type: text/plain\r\n"
                        + "Last-Modified: \(PartialBodyTests.saturday)\r\nContent-Length: \(body.count)\r\n\r\n")
                connection.send(Array(body.prefix(100_000)))
                return connection.close()
            }
            connection.answer(
                "206 Partial Content", headers: ["Content-Range: bytes \(start)-\(body.count - 1)/\(body.count)"],
                body: Array(body[start...]))
        }
        let content = try #require(try await fetch(origin.url()).content)
        #expect(content.bytes == body)
        #expect(content.mediaType == "text/plain")
        #expect(
            content.validators == Validators(entityTag: "\"v1\"", lastModified: PartialBodyTests.saturday))
    }

    @Test("after five continuations it is enough, and the failure says how far it came")
    func bound() async throws {
        let most = 6 * 70_000
        let enough = try origin(piece: 70_000, of: [UInt8](repeating: 1, count: most))
        #expect(try await fetch(enough.url()).content?.bytes.count == most)
        let tooLong = try origin(piece: 70_000, of: [UInt8](repeating: 1, count: most + 1))
        let failure = try await failure(tooLong.url())
        #expect(failure.kind == .transient)
        #expect(
            failure.message == "the body ended after 420,000 of 420,001 bytes (127.0.0.1), and it was continued 5 "
                + "times before")
        #expect(tooLong.requests.count == 1 + TransferStateMachine.maxResumptions)
    }

    @Test("each time has to bring something")
    func stuck() async throws {
        let body = body
        let origin = try ScriptedOrigin { request, connection in
            if let start = request.rangeStart {
                connection.send(
                    "HTTP/1.1 206 Partial Content\r\nContent-Length: \(body.count - start)\r\nETag: \"v1\"\r\n"
                        + "Content-Range: bytes \(start)-\(body.count - 1)/\(body.count)\r\n\r\n")
            } else {
                connection.send("HTTP/1.1 200 OK\r\nContent-Length: \(body.count)\r\nETag: \"v1\"\r\n\r\n")
                connection.send(Array(body.prefix(100_000)))
            }
            connection.close()
        }
        let failure = try await failure(origin.url())
        #expect(failure.kind == .transient)
        #expect(
            failure.message == "the body ended after 100,000 of 300,000 bytes (127.0.0.1), and it was continued once "
                + "before")
        #expect(origin.requests.count == 2)
    }

    @Test("a 200 instead of the rest is the whole body, from its beginning")
    func changedMeanwhile() async throws {
        let body = body
        let origin = try ScriptedOrigin { request, connection in
            guard request.rangeStart == nil else {
                return connection.answer("200 OK", headers: ["ETag: \"v2\""], body: "another one")
            }
            connection.send("HTTP/1.1 200 OK\r\nContent-Length: \(body.count)\r\nETag: \"v1\"\r\n\r\n")
            connection.send(Array(body.prefix(100_000)))
            connection.close()
        }
        let content = try #require(try await fetch(origin.url()).content)
        #expect(String(decoding: content.bytes, as: UTF8.self) == "another one")
        #expect(content.validators.entityTag == "\"v2\"")
    }

    @Test(
        "what is not the rest is a failure that names why",
        arguments: [
            ("206 X", ["Content-Range: bytes 0-199999/300000"], RunFailure.Kind.content, "another part"),
            ("206 X", ["Content-Range: bytes 100000-299999/300000", "ETag: \"v2\""], .content, "another entity tag"),
            ("206 X", [], .content, "does not say which part"),
            ("206 X", ["Content-Type: multipart/byteranges; boundary=b"], .content, "does not say which part"),
            ("304 Not Modified", [], .content, "not conditional"),
            ("404 Not Found", [], .refused, "404 Not Found"),
            ("416 X", ["Retry-After: 5"], .transient, "when asked for the rest of a body"),
        ])
    func notTheRest(_ status: String, _ headers: [String], _ kind: RunFailure.Kind, _ words: String) async throws {
        let body = body
        let origin = try ScriptedOrigin { request, connection in
            guard request.rangeStart == nil else {
                return connection.answer(
                    status, headers: headers, body: status.hasPrefix("304") ? [] : [UInt8](repeating: 0, count: 200_000)
                )
            }
            connection.send("HTTP/1.1 200 OK\r\nContent-Length: \(body.count)\r\nETag: \"v1\"\r\n\r\n")
            connection.send(Array(body.prefix(100_000)))
            connection.close()
        }
        let failure = try await failure(origin.url())
        #expect(failure.kind == kind)
        #expect(failure.message.contains(words), "\(failure.message)")
        #expect(origin.requests.count == 2)
    }

    @Test("without certainty nothing is continued, and a short body is not worth it")
    func notAsked() async throws {
        let compressed = try origin(piece: 100_000, headers: ["ETag: \"v1\"", "Content-Encoding: x-unknown"])
        let weak = try origin(piece: 100_000, headers: ["ETag: W/\"v1\""])
        let short = try origin(piece: PartialBody.minimum - 1)
        for origin in [compressed, weak, short] {
            _ = try await failure(origin.url())
            #expect(origin.requests.count == 1)
        }
        let enough = try origin(piece: PartialBody.minimum)
        #expect(try await fetch(enough.url()).content?.bytes.count == body.count)
    }

    @Test("cancelled while the rest comes, the request ends")
    func cancelled() async throws {
        let body = body
        let asked = Event()
        let closed = Event()
        let origin = try ScriptedOrigin { request, connection in
            if let start = request.rangeStart {
                connection.send(
                    "HTTP/1.1 206 Partial Content\r\nContent-Length: \(body.count - start)\r\n"
                        + "Content-Range: bytes \(start)-\(body.count - 1)/\(body.count)\r\n\r\n1")
                asked.happen()
                if connection.clientCloses() { closed.happen() }
            } else {
                connection.send("HTTP/1.1 200 OK\r\nContent-Length: \(body.count)\r\nETag: \"v1\"\r\n\r\n")
                connection.send(Array(body.prefix(100_000)))
                connection.close()
            }
        }
        let task = Task(executorPreference: running.loop) { () async throws(FetchError) in try await fetch(origin.url())
        }
        await asked.occurrence()
        task.cancel()
        let result = await task.result
        #expect(throws: FetchError.cancelled) { try result.get() }
        await closed.occurrence()
        #expect(await client.openRequests == 0)
    }
}

extension ScriptedOrigin.Request {
    /// The first byte that `Range: bytes=N-` asks for.
    fileprivate var rangeStart: Int? {
        headers["range"].flatMap { range in
            range.hasPrefix("bytes=") && range.hasSuffix("-") ? Int(range.dropFirst(6).dropLast()) : nil
        }
    }
}
