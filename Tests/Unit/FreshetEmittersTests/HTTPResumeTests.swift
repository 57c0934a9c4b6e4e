import FreshetEventLoop
import FreshetModel
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

    /// Sends at most `piece` bytes of the body from the requested byte on, then closes the connection if bytes remain.
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

    @Test("the rest is requested with Range and If-Range, and the parts make the body; each request is reported")
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

    @Test("a 206 need not repeat the fields of the first answer, except the validator")
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
                "206 Partial Content",
                headers: ["ETag: \"v1\"", "Content-Range: bytes \(start)-\(body.count - 1)/\(body.count)"],
                body: Array(body[start...]))
        }
        let content = try #require(try await fetch(origin.url()).content)
        #expect(content.bytes == body)
        #expect(content.mediaType == "text/plain")
        #expect(
            content.validators == Validators(entityTag: "\"v1\"", lastModified: PartialBodyTests.saturday))
    }

    @Test("after five continuations the request fails with the number of received bytes")
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

    @Test("a continuation without further bytes ends the request")
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

    @Test("a 200 instead of the rest has the whole body")
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

    @Test("a 200 without a body instead of the rest is an empty body", arguments: ["200 OK", "203 X"])
    func emptiedMeanwhile(status: String) async throws {
        let body = body
        let origin = try ScriptedOrigin { request, connection in
            guard request.rangeStart == nil else { return connection.answer(status, headers: ["ETag: \"v2\""]) }
            connection.send("HTTP/1.1 200 OK\r\nContent-Length: \(body.count)\r\nETag: \"v1\"\r\n\r\n")
            connection.send(Array(body.prefix(100_000)))
            connection.close()
        }
        let content = try #require(try await fetch(origin.url()).content)
        #expect(content.bytes.isEmpty && content.validators.entityTag == "\"v2\"")
    }

    static let range = "Content-Range: bytes 100000-299999/300000"

    @Test(
        "a body is fetched again from its beginning if a part is not certainly the rest",
        arguments: [
            ("206 X", ["Content-Range: bytes 0-199999/300000", "ETag: \"v1\""]), ("206 X", ["ETag: \"v1\""]),
            ("206 X", [range]), ("206 X", [range, "ETag: \"v2\""]), ("206 X", [range, "ETag: W/\"v1\""]),
            ("206 X", [range, "ETag: \"v1\"", "ETag: \"v2\""]),
            ("206 X", [range, "ETag: \"v1\"", "Content-Type: text/html"]),
            ("206 X", [range, "ETag: \"v1\"", "Content-Type: multipart/byteranges; boundary=b"]),
            ("206 X", [range, "ETag: \"v1\"", "Content-Range: bytes 0-9/10"]), ("200 OK", [range, "ETag: \"v1\""]),
        ])
    func uncertain(_ status: String, _ headers: [String]) async throws {
        let body = body
        let isBroken = Atomic(false)
        let origin = try ScriptedOrigin { request, connection in
            if request.rangeStart != nil {
                return connection.answer(status, headers: headers, body: [UInt8](repeating: 0, count: 200_000))
            }
            let lines = "ETag: \"v1\"\r\nContent-Type: text/plain"
            connection.send("HTTP/1.1 200 OK\r\nContent-Length: \(body.count)\r\n\(lines)\r\n\r\n")
            guard isBroken.exchange(true, ordering: .relaxed) else {
                connection.send(Array(body.prefix(100_000)))
                return connection.close()
            }
            connection.send(body)
        }
        let store = ScriptedBodyStore()
        let source = HTTPSource(url: origin.url(), host: "127.0.0.1")
        var request = FetchRequest(source: .http(source), maxBytes: 1 << 20)
        #expect(try await client.fetch(source, for: request).content?.bytes == body)
        #expect(origin.requests.map { $0.headers["range"] } == [nil, "bytes=100000-", nil])
        isBroken.store(false, ordering: .relaxed)
        request.bodyStore = store
        #expect(try await client.fetch(source, for: request).kept?.bytes == body)
    }

    @Test("a rest that was requested by a date must have that date")
    func byDate() async throws {
        let body = body
        let (saturday, later) = (PartialBodyTests.saturday, PartialBodyTests.minuteLater)
        let origin = try ScriptedOrigin { request, connection in
            let isOther = request.target == "/other"
            if let start = request.rangeStart {
                return connection.answer(
                    "206 X",
                    headers: [
                        "Last-Modified: \(isOther ? later : saturday)",
                        "Content-Range: bytes \(start)-\(body.count - 1)/\(body.count)",
                    ], body: Array(body[start...]))
            }
            connection.send("HTTP/1.1 200 OK\r\nContent-Length: \(body.count)\r\nLast-Modified: \(saturday)\r\n")
            connection.send("Date: \(later)\r\n\r\n")
            connection.send(Array(body.prefix(100_000)))
            connection.close()
        }
        #expect(try await fetch(origin.url("/same")).content?.bytes == body)
        #expect(try await failure(origin.url("/other")).message.contains("100,000 of 300,000"))
        #expect(origin.requests.map { $0.headers["if-range"] } == [nil, saturday, nil, saturday, nil])
    }

    @Test("a 200 with a partial Content-Range is rejected if no part was requested")
    func unrequestedPart() async throws {
        let origin = try ScriptedOrigin { request, connection in
            let range =
                request.target == "/part" ? "bytes 5-9/10" : request.target == "/whole" ? "bytes 0-4/5" : "0-4/*"
            connection.answer("200 OK", headers: ["Content-Range: \(range)"], body: "hello")
        }
        let failure = try await failure(origin.url("/part"))
        #expect(failure.kind == .content && failure.message.contains("Content-Range"))
        // APIs may use Content-Range for the items of a collection.
        for target in ["/whole", "/items"] { #expect(try await fetch(origin.url(target)).text == "hello") }
    }

    @Test(
        "an answer that is neither a part nor the whole body is a failure with a reason",
        arguments: [
            ("304 Not Modified", [], RunFailure.Kind.content, "not conditional"),
            ("404 Not Found", [], .refused, "404 Not Found"),
            ("416 X", ["Retry-After: 5"], .transient, "to a request for the rest of a body"),
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

    @Test("a body is not continued without a strong validator, nor if it is short")
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

    @Test("a request that is cancelled while the rest arrives ends")
    func cancelled() async throws {
        let body = body
        let asked = Event()
        let closed = Event()
        let origin = try ScriptedOrigin { request, connection in
            if let start = request.rangeStart {
                connection.send(
                    "HTTP/1.1 206 Partial Content\r\nContent-Length: \(body.count - start)\r\n"
                        + "ETag: \"v1\"\r\nContent-Range: bytes \(start)-\(body.count - 1)/\(body.count)\r\n\r\n1")
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
    /// The first byte that `Range: bytes=N-` requests.
    fileprivate var rangeStart: Int? {
        headers["range"].flatMap { range in
            range.hasPrefix("bytes=") && range.hasSuffix("-") ? Int(range.dropFirst(6).dropLast()) : nil
        }
    }
}
