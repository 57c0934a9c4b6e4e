import FreshetEventLoop
import FreshetModel
import FreshetPipelines
import Synchronization
import TestSupport
import Testing

@testable import FreshetEmitters

@Suite("HTTP client: long bodies are stored while they arrive")
struct HTTPBodyTests {
    let running: RunningLoop
    let client: HTTPClient
    /// The body has nearly twelve pieces.
    let body: [UInt8] = (0..<3_000_000).map { UInt8(truncatingIfNeeded: $0 &* 31 >> 3) }

    init() throws {
        running = try RunningLoop()
        client = HTTPClient(running.loop)
    }

    private func fetch(
        _ url: String, to bodyStore: ScriptedBodyStore, maxBytes: UInt64 = 1 << 30,
        progress: @escaping @Sendable (UInt64) -> Void = { _ in },
        rejection: (@Sendable (String?) -> RunFailure?)? = nil, isBeside: Bool = false
    ) async throws(FetchError) -> FetchResult {
        let source = HTTPSource(url: url, host: "127.0.0.1")
        var request = FetchRequest(
            source: .http(source), maxBytes: maxBytes, progress: progress, rejection: rejection, bodyStore: bodyStore)
        request.isBeside = isBeside
        return try await client.fetch(source, for: request)
    }

    private func failure(
        _ url: String, to bodyStore: ScriptedBodyStore, maxBytes: UInt64 = 1 << 30, isBeside: Bool = false
    ) async throws -> RunFailure {
        try await failureOf { () async throws(FetchError) in
            try await fetch(url, to: bodyStore, maxBytes: maxBytes, isBeside: isBeside)
        }
    }

    /// An origin that does not announce the length of the body.
    private func unannounced() throws -> ScriptedOrigin {
        try ScriptedOrigin { [body] _, connection in
            connection.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            connection.send("\(String(body.count, radix: 16))\r\n")
            connection.send(body)
            connection.send("\r\n0\r\n\r\n")
        }
    }

    @Test("a body is stored completely and in order, with its type and validators; the store gets the announced length")
    func kept() async throws {
        let body = body
        let origin = try ScriptedOrigin { _, connection in
            connection.answer("200 OK", headers: ["ETag: \"v1\"", "Content-Type: text/plain"], body: body)
        }
        let bodyStore = ScriptedBodyStore()
        let result = try await fetch(origin.url(), to: bodyStore)
        #expect(result.kept?.bytes == body)
        #expect(result.content?.body.size == body.count)
        #expect(result.content?.mediaType == "text/plain" && result.content?.validators.entityTag == "\"v1\"")
        #expect(bodyStore.bodies.map(\.expected) == [UInt64(body.count)])
        #expect(bodyStore.bodies.map(\.isDiscarded) == [false])
    }

    @Test("a compression that belongs to the content is neither requested nor decoded")
    func coding() async throws {
        let packed = try Gzip.compress(Array("hello\n".utf8))
        let origin = try ScriptedOrigin { request, connection in
            let accepted = request.headers["accept-encoding"] ?? ""
            connection.answer("200 OK", headers: ["Content-Encoding: gzip", "X-Accepted: \(accepted)"], body: packed)
            #expect(accepted == (request.target == "/requested" ? "gzip" : "identity"))
        }
        for (path, coding, body) in [
            ("/requested", ContentCoding.requested, Array("hello\n".utf8)),
            ("/decoded", .decoded, Array("hello\n".utf8)),
            ("/kept", .kept, packed),
        ] {
            let source = HTTPSource(url: origin.url(path), host: "127.0.0.1")
            var request = FetchRequest(source: .http(source))
            request.coding = coding
            let result = try await client.fetch(source, for: request)
            #expect(result.content?.bytes == body, "\(path)")
        }
    }

    @Test("a short body stays in memory")
    func short() async throws {
        let body = Array(body.prefix(BodySpool.pieceSize))
        let origin = try ScriptedOrigin { _, connection in connection.answer("200 OK", body: body) }
        let bodyStore = ScriptedBodyStore()
        #expect(try await fetch(origin.url(), to: bodyStore).content?.bytes == body)
        #expect(bodyStore.bodies.isEmpty)
    }

    @Test("a body of unknown length is stored too")
    func unknownLength() async throws {
        let origin = try unannounced()
        let bodyStore = ScriptedBodyStore()
        #expect(try await fetch(origin.url(), to: bodyStore).kept?.bytes == body)
        #expect(bodyStore.bodies.map(\.expected) == [nil])
    }

    @Test("a slow writer pauses the transfer: at most three pieces are in memory")
    func slowWriter() async throws {
        let body = [UInt8](repeating: 7, count: 32 << 20)
        let origin = try ScriptedOrigin { _, connection in connection.answer("200 OK", body: body) }
        let gate = Latch()
        let bodyStore = ScriptedBodyStore(gate: gate)
        let most = Atomic(0)
        let received = Atomic(0)
        let loop = running.loop
        // On another executor than the loop's, because the writer blocks its thread.
        let fetching = Task {
            try await fetch(
                origin.url(), to: bodyStore,
                progress: { count in
                    received.store(Int(count), ordering: .relaxed)
                    let ahead = Int(count) - (bodyStore.bodies.first?.bytes.count ?? 0)
                    most.max(ahead, ordering: .relaxed)
                })
        }
        await bodyStore.written.occurrence()
        // Two more pieces arrive while the first piece is being written.
        #expect(await eventually { received.load(ordering: .relaxed) > 3 * BodySpool.pieceSize - (32 << 10) })
        gate.open()
        #expect(try await fetching.value.kept?.bytes == body)
        #expect(most.load(ordering: .relaxed) <= 3 * BodySpool.pieceSize)
        withExtendedLifetime(loop) {}
    }

    @Test("a body whose connection breaks is continued in the same stored body")
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
        let bodyStore = ScriptedBodyStore()
        #expect(try await fetch(origin.url(), to: bodyStore).kept?.bytes == body)
        #expect(bodyStore.bodies.count == 1)
        #expect(origin.requests.map(\.firstByte) == [nil, 1_100_000, 2_200_000])
    }

    @Test(
        "another body that arrives instead of the rest replaces the first body, whether it is long or short",
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
        let bodyStore = ScriptedBodyStore()
        let result = try await fetch(origin.url(), to: bodyStore)
        #expect(result.content?.body.size == length)
        #expect(bodyStore.bodies.first?.isDiscarded == true)
        if length == 1 {
            #expect(result.content?.bytes == other && bodyStore.bodies.count == 1)
        } else {
            #expect(result.kept?.bytes == other && bodyStore.bodies.count == 2)
        }
    }

    @Test("the size limit holds exactly, and a longer body is discarded")
    func limit() async throws {
        let origin = try unannounced()
        let enough = ScriptedBodyStore()
        #expect(try await fetch(origin.url(), to: enough, maxBytes: UInt64(body.count)).kept?.bytes.count == body.count)
        let bodyStore = ScriptedBodyStore()
        let failure = try await failure(origin.url(), to: bodyStore, maxBytes: UInt64(body.count) - 1)
        #expect(
            failure.message
                == "127.0.0.1 has more than the 2,999,999 bytes that are allowed; raise check.max-bytes if that is right"
        )
        #expect(bodyStore.bodies.map(\.isDiscarded) == [true])
        // The limit of a list or a signature is not that of the content.
        let beside = try await self.failure(
            origin.url(), to: bodyStore, maxBytes: UInt64(body.count) - 1, isBeside: true)
        #expect(beside.message.hasSuffix("bytes that are allowed; check whether its URL is right"))
    }

    @Test(
        "an error of the body store fails the request with that error, and closes the connection",
        arguments: [ScriptedBodyStore.Plan.refusesToBegin, .isFull(after: 600_000)])
    func full(_ plan: ScriptedBodyStore.Plan) async throws {
        let body = body
        let closed = Event()
        let origin = try ScriptedOrigin { _, connection in
            // Less than the announced length, so that the request does not end by itself.
            connection.send("HTTP/1.1 200 OK\r\nContent-Length: \(2 * body.count)\r\n\r\n")
            connection.send(body)
            if connection.clientCloses() { closed.happen() }
        }
        let bodyStore = ScriptedBodyStore(plan)
        #expect(try await failure(origin.url(), to: bodyStore) == ScriptedBodyStore.rejection)
        await closed.occurrence()
        #expect(await client.openRequests == 0)
        #expect(!bodyStore.bodies.contains { !$0.isDiscarded })
    }

    @Test("an error of the body store at the last piece fails the request too")
    func fullAtTheEnd() async throws {
        let body = body
        let origin = try ScriptedOrigin { _, connection in connection.answer("200 OK", body: body) }
        let bodyStore = ScriptedBodyStore(.isFull(after: body.count - 1))
        #expect(try await failure(origin.url(), to: bodyStore) == ScriptedBodyStore.rejection)
        #expect(await client.openRequests == 0)
    }

    @Test("a cancelled request discards the stored part of its body")
    func cancelled() async throws {
        let body = body
        let closed = Event()
        let origin = try ScriptedOrigin { _, connection in
            connection.send("HTTP/1.1 200 OK\r\nContent-Length: \(2 * body.count)\r\n\r\n")
            connection.send(body)
            if connection.clientCloses() { closed.happen() }
        }
        let bodyStore = ScriptedBodyStore()
        let task = Task(executorPreference: running.loop) { () async throws(FetchError) in
            try await fetch(origin.url(), to: bodyStore)
        }
        await bodyStore.written.occurrence()
        task.cancel()
        let result = await task.result
        #expect(throws: FetchError.cancelled) { try result.get() }
        await closed.occurrence()
        #expect(bodyStore.bodies.map(\.isDiscarded) == [true])
        #expect(await client.openRequests == 0)
    }

    @Test("an answer with a rejected media type fails before its body is read")
    func refusedType() async throws {
        let closed = Event()
        let origin = try ScriptedOrigin { _, connection in
            connection.send("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 3000000\r\n\r\n<html>")
            if connection.clientCloses() { closed.happen() }
        }
        let bodyStore = ScriptedBodyStore()
        let unwanted = RunFailure(.content, "the answer is text/html")
        let failure = try await failureOf { () async throws(FetchError) in
            try await fetch(origin.url(), to: bodyStore, rejection: { $0 == "text/html" ? unwanted : nil })
        }
        #expect(failure == unwanted)
        await closed.occurrence()
        #expect(bodyStore.bodies.isEmpty)
    }

    @Test("the media type is only checked for content: the type of an error page does not hide the error")
    func typeOfAnError() async throws {
        let origin = try ScriptedOrigin { request, connection in
            connection.answer(
                request.target == "/later" ? "202 Accepted" : "404 Not Found", headers: ["Content-Type: text/html"],
                body: "no")
        }
        for (path, status) in [("/later", 202), ("/gone", 404)] {
            let failure = try await failureOf { () async throws(FetchError) in
                try await fetch(
                    origin.url(path), to: ScriptedBodyStore(), rejection: { _ in RunFailure(.content, "no") })
            }
            #expect(failure.status == status)
        }
    }
}

extension ScriptedOrigin.Request {
    /// The first byte that `Range: bytes=N-` requests.
    fileprivate var firstByte: Int? {
        headers["range"].flatMap { range in
            range.hasPrefix("bytes=") && range.hasSuffix("-") ? Int(range.dropFirst(6).dropLast()) : nil
        }
    }
}
