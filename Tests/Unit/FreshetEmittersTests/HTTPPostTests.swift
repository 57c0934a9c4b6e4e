import FreshetEventLoop
import FreshetModel
import FreshetPipelines
import Testing

@testable import FreshetEmitters

@Suite("HTTP client: POST")
struct HTTPPostTests {
    let running: RunningLoop
    let client: HTTPClient

    init() throws {
        running = try RunningLoop()
        client = HTTPClient(running.loop)
    }

    private func post(
        _ body: String, to url: String, contentType: String = HTTPSource.defaultContentType,
        headers: [HTTPHeader] = [], validators: Validators? = nil
    ) async throws(FetchError) -> FetchResult {
        let source = HTTPSource(
            url: url, headers: headers, host: "127.0.0.1", method: .post(body: body, contentType: contentType))
        return try await client.fetch(source, for: FetchRequest(source: .http(source), validators: validators))
    }

    @Test("the body is sent unchanged, with its type; the next request does not contain it")
    func sent() async throws {
        let origin = try ScriptedOrigin { _, connection in connection.answer("200 OK", body: "found") }
        let text = "{\"query\": \"Zürich\"}\n"
        #expect(try await post(text, to: origin.url("/search"), headers: [HTTPHeader("X-Own", "1")]).text == "found")
        let request = try #require(origin.requests.first)
        #expect(request.method == "POST" && request.target == "/search")
        #expect(request.body == text)
        #expect(request.headers["content-type"] == "application/json")
        #expect(request.headers["content-length"] == "\(text.utf8.count)")
        #expect(request.headers["x-own"] == "1")
        #expect(request.headers["expect"] == nil)

        let source = HTTPSource(url: origin.url(), host: "127.0.0.1")
        _ = try await client.fetch(source, for: FetchRequest(source: .http(source)))
        let next = try #require(origin.requests.last)
        #expect(next.method == "GET" && next.body.isEmpty)
        #expect(next.headers["content-type"] == nil && next.headers["content-length"] == nil)
    }

    @Test("an empty body has a length and no type; a long body is sent completely and without an Expect field")
    func sizes() async throws {
        let origin = try ScriptedOrigin { _, connection in connection.answer("200 OK", body: "x") }
        _ = try await post("", to: origin.url())
        let empty = try #require(origin.requests.last)
        #expect(empty.method == "POST" && empty.headers["content-length"] == "0")
        #expect(empty.headers["content-type"] == nil)
        // The most bytes that a configuration may contain.
        let long = String(repeating: "x", count: 64 << 10)
        _ = try await post(long, to: origin.url(), contentType: "text/plain; charset=utf-8")
        let request = try #require(origin.requests.last)
        #expect(request.body == long)
        #expect(request.headers["content-type"] == "text/plain; charset=utf-8")
        #expect(request.headers["expect"] == nil)
    }

    @Test("a POST is not conditional, and a 304 to it is a failure")
    func unconditional() async throws {
        let origin = try ScriptedOrigin { request, connection in
            connection.answer(request.target == "/304" ? "304 Not Modified" : "200 OK", headers: ["ETag: \"v1\""])
        }
        let validators = Validators(entityTag: "\"v1\"", lastModified: PartialBodyTests.saturday)
        #expect(
            try await post("{}", to: origin.url(), validators: validators).content?.validators.entityTag == "\"v1\"")
        let request = try #require(origin.requests.first)
        #expect(request.headers["if-none-match"] == nil && request.headers["if-modified-since"] == nil)
        let failure = try await failureOf { () async throws(FetchError) in
            try await post("{}", to: origin.url("/304"), validators: validators)
        }
        #expect(failure.kind == .content)
    }

    @Test("307 repeats the POST within the origin, 303 leads to a GET, and a body is not sent to another origin")
    func redirects() async throws {
        let other = try ScriptedOrigin { _, connection in connection.answer("200 OK", body: "elsewhere") }
        let elsewhere = other.url()
        let origin = try ScriptedOrigin { request, connection in
            switch request.target {
            case "/307": connection.answer("307 X", headers: ["Location: /303"], body: "moved")
            case "/303": connection.answer("303 X", headers: ["Location: /result"], body: "see")
            case "/leak": connection.answer("308 X", headers: ["Location: \(elsewhere)"])
            default: connection.answer("200 OK", body: "result")
            }
        }
        let result = try await post("{}", to: origin.url("/307"), validators: Validators(entityTag: "\"v1\""))
        #expect(result.content?.bytes == Array("result".utf8))
        #expect(origin.requests.map(\.method) == ["POST", "POST", "GET"])
        #expect(origin.requests.map(\.body) == ["{}", "{}", ""])
        #expect(origin.requests.map { $0.headers["if-none-match"] } == [nil, nil, nil])
        #expect(origin.requests.last?.headers["content-type"] == nil)

        let failure = try await failureOf { () async throws(FetchError) in try await post("{}", to: origin.url("/leak"))
        }
        #expect(failure.kind == .refused && failure.message.contains("only sent to the configured origin"))
        #expect(other.requests.isEmpty)
    }

    @Test("the incomplete answer to a POST is not continued")
    func broken() async throws {
        let origin = try ScriptedOrigin { _, connection in
            connection.send("HTTP/1.1 200 OK\r\nContent-Length: 200000\r\nETag: \"v1\"\r\n\r\n")
            connection.send([UInt8](repeating: 1, count: 100_000))
            connection.close()
        }
        let failure = try await failureOf { () async throws(FetchError) in try await post("{}", to: origin.url()) }
        #expect(failure.kind == .transient && failure.message.contains("100,000 of 200,000"))
        #expect(origin.requests.count == 1)
    }
}
