import FreshetEventLoop
import FreshetPipelines
import TestSupport
import Testing

@testable import FreshetEmitters

@Suite("HTTP client: origins behind a socket of this machine")
struct HTTPSocketTests {
    let running: RunningLoop
    let client: HTTPClient

    init() throws {
        running = try RunningLoop()
        client = HTTPClient(running.loop)
    }

    private func fetch(_ url: String, _ path: String, headers: [HTTPHeader] = []) async throws(FetchError)
        -> FetchResult
    {
        let source = HTTPSource(url: url, headers: headers, host: "engine.invalid", unixSocket: path)
        return try await client.fetch(source, for: FetchRequest(source: .http(source)))
    }

    @Test("the request uses the socket and sends the host name and the credentials of its origin")
    func fetched() async throws {
        let directory = try TemporaryDirectory()
        let path = "\(directory.path)/engine.sock"
        let origin = try ScriptedOrigin(path: path) { request, connection in
            switch request.target {
            case "/a": connection.answer("302 Found", headers: ["Location: /b"])
            case "/away": connection.answer("302 Found", headers: ["Location: http://127.0.0.1:1/"])
            default: connection.answer("200 OK", body: request.target)
            }
        }
        await client.use(["token": "s3cret"])
        #expect(try await fetch("http://engine.invalid/a", path, headers: [.bearer("token")]).text == "/b")
        #expect(origin.requests.map { $0.headers["host"] } == ["engine.invalid", "engine.invalid"])
        #expect(origin.requests.map { $0.headers["authorization"] } == ["Bearer s3cret", "Bearer s3cret"])
        let failure = try await failureOf { () async throws(FetchError) in
            try await fetch("http://engine.invalid/away", path)
        }
        #expect(failure.kind == .refused && failure.message.contains("through a socket"))
    }

    @Test("two sockets with one URL are two origins")
    func connections() async throws {
        let directory = try TemporaryDirectory()
        let paths = ["\(directory.path)/one.sock", "\(directory.path)/two.sock"]
        let origins = try paths.map { path in
            try ScriptedOrigin(path: path) { _, connection in connection.answer("200 OK", body: path) }
        }
        for _ in 0..<2 {
            for path in paths { #expect(try await fetch("http://engine.invalid/", path).text == path) }
        }
        #expect(origins.map(\.requests.count) == [2, 2])
        #expect(origins.flatMap { $0.requests.map(\.connection) } == [1, 1, 1, 1])
    }

    @Test("a missing socket is a connection failure that names the socket")
    func missing() async throws {
        let directory = try TemporaryDirectory()
        let path = "\(directory.path)/none.sock"
        let failure = try await failureOf { () async throws(FetchError) in
            try await fetch("http://engine.invalid/", path)
        }
        #expect(failure.kind == .connection)
        #expect(
            failure.message == "could not connect to the socket \(path): No such file or directory; its service must "
                + "run, and the user of freshetd must be allowed to write to the socket")
    }
}
