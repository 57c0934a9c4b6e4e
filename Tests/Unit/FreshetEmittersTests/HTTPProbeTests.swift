import FreshetEventLoop
import FreshetPipelines
import Testing

@testable import FreshetEmitters

@Suite("HTTP client: probes of the network")
struct HTTPProbeTests {
    let running: RunningLoop
    let client: HTTPClient

    init() throws {
        running = try RunningLoop()
        client = HTTPClient(running.loop)
    }

    private func probe(_ url: String, status: Int? = nil) async throws(FetchError) {
        try await client.probe(NetworkProbe(url: url, host: "127.0.0.1", status: status), epoch: 0)
    }

    private func refusal(_ url: String, status: Int? = nil) async throws -> RunFailure {
        try await failureOf { () async throws(FetchError) in try await probe(url, status: status) }
    }

    @Test("a probe succeeds with a 2xx of the URL itself or the configured status, and sends no data of a pipeline")
    func proven() async throws {
        let origin = try ScriptedOrigin { request, connection in
            connection.answer(request.target == "/204" ? "204 No Content" : "418 Teapot")
        }
        try await probe(origin.url("/204"))
        try await probe(origin.url("/204"), status: 204)
        try await probe(origin.url("/418"), status: 418)
        #expect(try await refusal(origin.url("/204"), status: 200).message == "answered 204 instead of 200")
        #expect(try await refusal(origin.url("/418")).message == "answered 418")
        let request = try #require(origin.requests.first)
        #expect(Set(request.headers.keys) == ["host", "user-agent", "accept", "accept-encoding"])
    }

    @Test("a redirect is not followed, and the failure names its target without the query")
    func redirect() async throws {
        let origin = try ScriptedOrigin { request, connection in
            let target =
                request.target == "/long"
                ? "http://portal.example/\(String(repeating: "x", count: 300))"
                : request.target == "/relative" ? "/login" : "http://me:pw@portal.example/login?session=secret#a"
            connection.answer("302 Found", headers: ["Location: \(target)"], body: "log in")
        }
        let failure = try await refusal(origin.url("/204"))
        #expect(failure.message == "answered 302 to http://portal.example/login")
        #expect(failure.kind != .connection)
        #expect(try await refusal(origin.url("/relative")).message == "answered 302 to \(origin.url("/login"))")
        let long = try await refusal(origin.url("/long")).message
        #expect(long.hasSuffix("…"))
        #expect(long.count == "answered 302 to ".count + HTTPClient.shownLength + 1)
        #expect(origin.requests.count == 3)
    }

    @Test("each probe uses a new connection, even if a connection exists")
    func connections() async throws {
        let origin = try ScriptedOrigin { _, connection in connection.answer("200 OK", body: "x") }
        for _ in 0..<3 { try await probe(origin.url("/")) }
        #expect(origin.requests.map(\.connection) == [1, 2, 3])
    }

    @Test("a few KiB of an endless body are read, and the status counts")
    func body() async throws {
        let origin = try ScriptedOrigin { _, connection in
            connection.send("HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n")
            connection.send(String(repeating: "x", count: HTTPExchange.statusBodyLimit + 1))
            _ = connection.clientCloses()
        }
        try await probe(origin.url("/"))
    }

    @Test("a probe without a connection is a connection failure; a cancelled probe ends immediately")
    func failures() async throws {
        #expect(try await refusal("http://127.0.0.1:1/").kind == .connection)
        let reached = Event()
        let origin = try ScriptedOrigin { _, connection in
            reached.happen()
            _ = connection.clientCloses()
        }
        let probe = NetworkProbe(url: origin.url("/"), host: "127.0.0.1")
        let task = Task { [client] in
            do throws(FetchError) {
                try await client.probe(probe, epoch: 0)
                return false
            } catch {
                return error == .cancelled
            }
        }
        await reached.occurrence()
        task.cancel()
        #expect(await task.value)
        #expect(await client.openRequests == 0)
    }
}
