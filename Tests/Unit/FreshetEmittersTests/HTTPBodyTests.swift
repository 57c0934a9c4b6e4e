import FreshetEventLoop
import FreshetPipelines
import Synchronization
import TestSupport
import Testing

@testable import FreshetEmitters

@Suite("HTTP client: long bodies are written away while they come")
struct HTTPBodyTests {
    let running: RunningLoop
    let client: HTTPClient
    /// Nearly twelve pieces.
    let body: [UInt8] = (0..<3_000_000).map { UInt8(truncatingIfNeeded: $0 &* 31 >> 3) }

    init() throws {
        running = try RunningLoop()
        client = HTTPClient(running.loop)
    }

    private func fetch(
        _ url: String, to keeper: ScriptedKeeper, maxBytes: UInt64 = 1 << 30,
        progress: @escaping @Sendable (UInt64) -> Void = { _ in },
        refusal: (@Sendable (String?) -> RunFailure?)? = nil
    ) async throws(FetchError) -> FetchResult {
        let source = HTTPSource(url: url, host: "127.0.0.1")
        return try await client.fetch(
            source,
            for: FetchRequest(
                source: .http(source), maxBytes: maxBytes, progress: progress, refusal: refusal, keeper: keeper))
    }

    private func failure(_ url: String, to keeper: ScriptedKeeper, maxBytes: UInt64 = 1 << 30) async throws
        -> RunFailure
    {
        try await failureOf { () async throws(FetchError) in try await fetch(url, to: keeper, maxBytes: maxBytes) }
    }

    /// An origin that does not say how long the body is.
    private func unannounced() throws -> ScriptedOrigin {
        try ScriptedOrigin { [body] _, connection in
            connection.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            connection.send("\(String(body.count, radix: 16))\r\n")
            connection.send(body)
            connection.send("\r\n0\r\n\r\n")
        }
    }

    @Test("all of it and in its order, with its type and validators; the keeper knows the length that was announced")
    func kept() async throws {
        let body = body
        let origin = try ScriptedOrigin { _, connection in
            connection.answer("200 OK", headers: ["ETag: \"v1\"", "Content-Type: text/plain"], body: body)
        }
        let keeper = ScriptedKeeper()
        let result = try await fetch(origin.url(), to: keeper)
        #expect(result.kept?.bytes == body)
        #expect(result.content?.body.size == body.count)
        #expect(result.content?.mediaType == "text/plain" && result.content?.validators.entityTag == "\"v1\"")
        #expect(keeper.bodies.map(\.expected) == [UInt64(body.count)])
        #expect(keeper.bodies.map(\.isDiscarded) == [false])
    }

    @Test("a short one stays in memory")
    func short() async throws {
        let body = Array(body.prefix(BodySpool.pieceSize))
        let origin = try ScriptedOrigin { _, connection in connection.answer("200 OK", body: body) }
        let keeper = ScriptedKeeper()
        #expect(try await fetch(origin.url(), to: keeper).content?.bytes == body)
        #expect(keeper.bodies.isEmpty)
    }

    @Test("of unknown length, it is kept all the same")
    func unknownLength() async throws {
        let origin = try unannounced()
        let keeper = ScriptedKeeper()
        #expect(try await fetch(origin.url(), to: keeper).kept?.bytes == body)
        #expect(keeper.bodies.map(\.expected) == [nil])
    }

    @Test("a slow writer holds up the origin: three pieces at most are in memory")
    func slowWriter() async throws {
        let body = [UInt8](repeating: 7, count: 32 << 20)
        let origin = try ScriptedOrigin { _, connection in connection.answer("200 OK", body: body) }
        let gate = Latch()
        let keeper = ScriptedKeeper(gate: gate)
        let most = Atomic(0)
        let received = Atomic(0)
        let loop = running.loop
        // On another executor than the loop's, since the writer blocks its thread.
        let fetching = Task {
            try await fetch(
                origin.url(), to: keeper,
                progress: { count in
                    received.store(Int(count), ordering: .relaxed)
                    let ahead = Int(count) - (keeper.bodies.first?.bytes.count ?? 0)
                    most.max(ahead, ordering: .relaxed)
                })
        }
        await keeper.written.occurrence()
        // Two more pieces come while the first one is held.
        #expect(await eventually { received.load(ordering: .relaxed) > 3 * BodySpool.pieceSize - (32 << 10) })
        gate.open()
        #expect(try await fetching.value.kept?.bytes == body)
        #expect(most.load(ordering: .relaxed) <= 3 * BodySpool.pieceSize)
        withExtendedLifetime(loop) {}
    }

    @Test("a connection that breaks is continued in the same file")
    func resumed() async throws {
        let body = body
        let origin = try ScriptedOrigin { request, connection in
            let start = request.firstByte
            let status =
                start.map { "206 Partial Content\r\nContent-Range: bytes \($0)-\(body.count - 1)/\(body.count)" }
                ?? "200 OK"
            let rest = body[(start ?? 0)...]
            connection.send("HTTP/1.1 \(status)\r\nETag: \"v1\"\r\nContent-Length: \(rest.count)\r\n\r\n")
            connection.send(Array(rest.prefix(1_100_000)))
            if rest.count > 1_100_000 { connection.close() }
        }
        let keeper = ScriptedKeeper()
        #expect(try await fetch(origin.url(), to: keeper).kept?.bytes == body)
        #expect(keeper.bodies.count == 1)
        #expect(origin.requests.map(\.firstByte) == [nil, 1_100_000, 2_200_000])
    }

    @Test(
        "of another body that comes instead of the rest nothing is mixed in, be it long or short",
        arguments: [1, 2_000_000])
    func changedMeanwhile(_ length: Int) async throws {
        let body = body
        let other = [UInt8](repeating: 9, count: length)
        let origin = try ScriptedOrigin { request, connection in
            guard request.firstByte == nil else { return connection.answer("200 OK", body: other) }
            connection.send("HTTP/1.1 200 OK\r\nContent-Length: \(body.count)\r\nETag: \"v1\"\r\n\r\n")
            connection.send(Array(body.prefix(1_000_000)))
            connection.close()
        }
        let keeper = ScriptedKeeper()
        let result = try await fetch(origin.url(), to: keeper)
        #expect(result.content?.body.size == length)
        #expect(keeper.bodies.first?.isDiscarded == true)
        if length == 1 {
            #expect(result.content?.bytes == other && keeper.bodies.count == 1)
        } else {
            #expect(result.kept?.bytes == other && keeper.bodies.count == 2)
        }
    }

    @Test("the limit holds exactly, and what is beyond it is nowhere")
    func limit() async throws {
        let origin = try unannounced()
        let enough = ScriptedKeeper()
        #expect(try await fetch(origin.url(), to: enough, maxBytes: UInt64(body.count)).kept?.bytes.count == body.count)
        let keeper = ScriptedKeeper()
        let failure = try await failure(origin.url(), to: keeper, maxBytes: UInt64(body.count) - 1)
        #expect(
            failure.message
                == "127.0.0.1 has more than the 2,999,999 bytes that are allowed; raise check.max-bytes if that is right"
        )
        #expect(keeper.bodies.map(\.isDiscarded) == [true])
    }

    @Test(
        "a disk that takes no more ends the request in its own words, and closes the connection",
        arguments: [ScriptedKeeper.Plan.refusesToBegin, .isFull(after: 600_000)])
    func full(_ plan: ScriptedKeeper.Plan) async throws {
        let body = body
        let closed = Event()
        let origin = try ScriptedOrigin { _, connection in
            // Less than what is announced: the request does not end by itself.
            connection.send("HTTP/1.1 200 OK\r\nContent-Length: \(2 * body.count)\r\n\r\n")
            connection.send(body)
            if connection.clientCloses() { closed.happen() }
        }
        let keeper = ScriptedKeeper(plan)
        #expect(try await failure(origin.url(), to: keeper) == ScriptedKeeper.refusal)
        await closed.occurrence()
        #expect(await client.openRequests == 0)
        #expect(!keeper.bodies.contains { !$0.isDiscarded })
    }

    @Test("a disk that refuses the last piece fails the request too")
    func fullAtTheEnd() async throws {
        let body = body
        let origin = try ScriptedOrigin { _, connection in connection.answer("200 OK", body: body) }
        let keeper = ScriptedKeeper(.isFull(after: body.count - 1))
        #expect(try await failure(origin.url(), to: keeper) == ScriptedKeeper.refusal)
        #expect(await client.openRequests == 0)
    }

    @Test("cancelled in its midst, nothing is left of it")
    func cancelled() async throws {
        let body = body
        let closed = Event()
        let origin = try ScriptedOrigin { _, connection in
            connection.send("HTTP/1.1 200 OK\r\nContent-Length: \(2 * body.count)\r\n\r\n")
            connection.send(body)
            if connection.clientCloses() { closed.happen() }
        }
        let keeper = ScriptedKeeper()
        let task = Task(executorPreference: running.loop) { () async throws(FetchError) in
            try await fetch(origin.url(), to: keeper)
        }
        await keeper.written.occurrence()
        task.cancel()
        let result = await task.result
        #expect(throws: FetchError.cancelled) { try result.get() }
        await closed.occurrence()
        #expect(keeper.bodies.map(\.isDiscarded) == [true])
        #expect(await client.openRequests == 0)
    }

    @Test("a media type that is not wanted is refused before its body is taken")
    func refusedType() async throws {
        let closed = Event()
        let origin = try ScriptedOrigin { _, connection in
            connection.send("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 3000000\r\n\r\n<html>")
            if connection.clientCloses() { closed.happen() }
        }
        let keeper = ScriptedKeeper()
        let unwanted = RunFailure(.content, "the answer is text/html")
        let failure = try await failureOf { () async throws(FetchError) in
            try await fetch(origin.url(), to: keeper, refusal: { $0 == "text/html" ? unwanted : nil })
        }
        #expect(failure == unwanted)
        await closed.occurrence()
        #expect(keeper.bodies.isEmpty)
    }

    @Test("a type is asked for of data alone: an error page's does not hide the error")
    func typeOfAnError() async throws {
        let origin = try ScriptedOrigin { request, connection in
            connection.answer(
                request.target == "/later" ? "202 Accepted" : "404 Not Found", headers: ["Content-Type: text/html"],
                body: "no")
        }
        for (path, status) in [("/later", 202), ("/gone", 404)] {
            let failure = try await failureOf { () async throws(FetchError) in
                try await fetch(origin.url(path), to: ScriptedKeeper(), refusal: { _ in RunFailure(.content, "no") })
            }
            #expect(failure.status == status)
        }
    }
}

extension ScriptedOrigin.Request {
    /// The first byte that `Range: bytes=N-` asks for.
    fileprivate var firstByte: Int? {
        headers["range"].flatMap { range in
            range.hasPrefix("bytes=") && range.hasSuffix("-") ? Int(range.dropFirst(6).dropLast()) : nil
        }
    }
}
