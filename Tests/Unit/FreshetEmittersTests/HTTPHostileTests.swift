import FreshetEventLoop
import FreshetModel
import FreshetPipelines
import Glibc
import Synchronization
import TestSupport
import Testing

@testable import FreshetEmitters

@Suite("HTTP client: malicious origins", .hangLimit)
struct HTTPHostileTests {
    /// gzip of "hello hello hello hello\n".
    static let packed: [UInt8] = [
        0x1F, 0x8B, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x03, 0xCB, 0x48, 0xCD, 0xC9, 0xC9, 0x57, 0xC8, 0x40,
        0x27, 0xB9, 0x00, 0x00, 0x88, 0x59, 0x0B, 0x18, 0x00, 0x00, 0x00,
    ]

    let running: RunningLoop
    let client: HTTPClient

    init() throws {
        running = try RunningLoop()
        client = HTTPClient(running.loop)
    }

    private func fetch(
        _ url: String, validators: Validators? = nil, maxBytes: UInt64 = 1 << 20
    ) async throws(FetchError) -> FetchResult {
        let source = HTTPSource(url: url, host: "127.0.0.1")
        return try await client.fetch(
            source, for: FetchRequest(source: .http(source), validators: validators, maxBytes: maxBytes))
    }

    private func failure(_ url: String) async throws -> RunFailure {
        try await failureOf { () async throws(FetchError) in try await fetch(url) }
    }

    @Test("a second answer on a connection is not used as the answer to the next request")
    func secondAnswer() async throws {
        let isSent = Latch()
        let origin = try ScriptedOrigin { request, connection in
            connection.answer("200 OK", body: "of \(request.target)")
            guard request.target == "/first" else { return }
            connection.answer("200 OK", body: "evil")
            isSent.open()
        }
        #expect(try await fetch(origin.url("/first")).text == "of /first")
        try #require(isSent.wait(for: testTimeout))
        #expect(try await fetch(origin.url("/second")).text == "of /second")
        #expect(origin.requests.map(\.connection) == [1, 2])
        // A connection without data to read is reused.
        #expect(try await fetch(origin.url("/third")).text == "of /third")
        #expect(origin.requests.map(\.connection) == [1, 2, 2])
    }

    @Test("a body in tiny chunks is complete")
    func tinyChunks() async throws {
        let origin = try ScriptedOrigin { _, connection in
            connection.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            connection.send((0..<70_000).map { "2\r\n\($0 % 90 + 10)\r\n" }.joined() + "0\r\n\r\n")
        }
        let text = try await fetch(origin.url()).text
        #expect(text == (0..<70_000).map { "\($0 % 90 + 10)" }.joined())
    }

    @Test("a compressed body without content ends the request")
    func endlessNothing() async throws {
        let origin = try ScriptedOrigin { _, connection in
            connection.send("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n")
            connection.send(Array("a\r\n".utf8) + Self.packed.prefix(10) + Array("\r\n".utf8))
            // Blocks without content (RFC 1951, 3.2.4).
            let blocks = (0..<4_000).flatMap { _ in [0, 0, 0, 0xFF, 0xFF] as [UInt8] }
            let chunk = Array("4e20\r\n".utf8) + blocks + Array("\r\n".utf8)
            for _ in 0..<200 { connection.send(chunk) }
        }
        let failure = try await failure(origin.url())
        #expect(failure.kind == .content && failure.message.contains("has more than"), "\(failure)")
    }

    @Test("a status line of another version is rejected, because it would hide that the end of the body is not certain")
    func otherVersion() async throws {
        let origin = try ScriptedOrigin { _, connection in
            connection.send("HTTP/2 200 OK\r\n\r\n[1]")
            connection.close()
        }
        #expect(try await failure(origin.url()).message.contains("a status line that is not of HTTP/1"))
    }

    @Test("a truncated compressed body is a failure, with any kind of length", arguments: [1, 14, 20, 28])
    func cutCompression(length: Int) async throws {
        let part = Array(Self.packed.prefix(length))
        let origin = try ScriptedOrigin { request, connection in
            let head = "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n"
            switch request.target {
            case "/length": connection.answer("200 OK", headers: ["Content-Encoding: gzip"], body: part)
            case "/chunks":
                connection.send("\(head)Transfer-Encoding: chunked\r\n\r\n\(String(length, radix: 16))\r\n")
                connection.send(part + Array("\r\n0\r\n\r\n".utf8))
            default:
                connection.send(Array("\(head)Connection: close\r\n\r\n".utf8) + part)
                connection.close()
            }
        }
        for target in ["/length", "/chunks", "/close"] {
            let failure = try await failure(origin.url(target))
            #expect(failure.kind == .transient && failure.message.contains("before the end of its compression"))
        }
    }

    @Test("a body that only the end of its connection ends is a failure, unless it is allowed or verified")
    func unframed() async throws {
        let origin = try ScriptedOrigin { request, connection in
            connection.send("\(request.target == "/old" ? "HTTP/1.0" : "HTTP/1.1") 200 OK\r\n\r\nhello")
            connection.close()
        }
        for target in ["/new", "/old"] {
            let failure = try await failure(origin.url(target))
            #expect(failure.kind == .content && failure.message.contains("source.allow-unframed: true"))
        }
        var source = HTTPSource(url: origin.url(), host: "127.0.0.1")
        var request = FetchRequest(source: .http(source))
        request.isProven = true
        #expect(try await client.fetch(source, for: request).text == "hello")
        source.allowsUnframed = true
        #expect(try await client.fetch(source, for: FetchRequest(source: .http(source))).text == "hello")
    }

    @Test("a compressed body of several members is their concatenation; bytes after the last member are a failure")
    func members() async throws {
        let origin = try ScriptedOrigin { request, connection in
            let rest = request.target == "/garbage" ? Array("garbage".utf8) : Self.packed
            connection.answer("200 OK", headers: ["Content-Encoding: gzip"], body: Self.packed + rest)
        }
        #expect(try await fetch(origin.url()).text == "hello hello hello hello\nhello hello hello hello\n")
        #expect(try await failure(origin.url("/garbage")).kind == .content)
    }

    @Test("a content coding that was not requested is a failure", arguments: ["br", "zstd", "gzip, gzip", "compress"])
    func unknownCoding(coding: String) async throws {
        let origin = try ScriptedOrigin { _, connection in
            connection.answer("200 OK", headers: ["Content-Encoding: \(coding)"], body: Self.packed)
        }
        let failure = try await failure(origin.url())
        #expect(failure.kind == .content && failure.message.contains("'\(coding)'"))
    }

    @Test("a body that decodes to very many bytes ends at the limit, and other work continues meanwhile")
    func bomb() async throws {
        // 64 MiB of zeros, in 64 KiB.
        let size = 64 << 20
        let bomb = try Gzip.compress([UInt8](repeating: 0, count: size))
        let origin = try ScriptedOrigin { _, connection in
            connection.answer("200 OK", headers: ["Content-Encoding: gzip"], body: bomb)
        }
        let limited = try await failureOf { () async throws(FetchError) in
            try await fetch(origin.url(), maxBytes: UInt64(size) - 1)
        }
        #expect(limited.kind == .content && limited.message.contains("check.max-bytes"))
        let turns = TurnCounter(running.loop)
        turns.begin()
        #expect(try await fetch(origin.url(), maxBytes: UInt64(size)).content?.bytes.count == size)
        #expect(turns.end() >= size / BodyReceiver.decodedBytesPerTurn)
    }

    @Test(
        "an answer that two implementations may interpret differently is a failure",
        arguments: [
            "Content-Length: 5\r\nTransfer-Encoding: chunked", "Content-Length: 5\r\nContent-Length: 6",
            "Content-Length: 9223372036854775808", "Content-Length: 5\nX: y", "Content-Length: 5\r\nX: y\r\n z",
            "Content-Length: 5\r\nX : y", "Transfer-Encoding: gzip, chunked", "Content-Length: 5\r\nX: y\rZ: z",
        ])
    func framing(fields: String) async throws {
        let origin = try ScriptedOrigin { _, connection in
            connection.send("HTTP/1.1 200 OK\r\n\(fields)\r\n\r\nhello")
            connection.close()
        }
        #expect(try await failure(origin.url()).kind == .transient)
    }

    @Test(
        "a header whose first line begins with a blank ends its request, also after an earlier answer",
        arguments: ["/bad", "/tab", "/long", "/moved", "/interim", "/short-interim", "/rejected", "/broken"])
    func blankFirst(target: String) async throws {
        let bad = "HTTP/1.1 200 OK\r\n X: 3\r\nContent-Length: 3\r\n\r\nabc"
        let origin = try ScriptedOrigin { request, connection in
            let isFirst = request.headers["if-none-match"] != nil && request.headers["range"] == nil
            switch request.target {
            case "/good": connection.answer("200 OK", headers: ["X: y", "ETag: \"1\""], body: "good")
            case "/tab": connection.send("HTTP/1.1 200 OK\r\n\tX: 3\r\nContent-Length: 3\r\n\r\nabc")
            case "/long":
                let line = String(repeating: "A", count: 60_000)
                connection.send("HTTP/1.1 200 OK\r\n X: \(line)\r\nContent-Length: 3\r\n\r\nabc")
            case "/moved": connection.answer("302 Found", headers: ["Location: /bad"])
            case "/interim": connection.send("HTTP/1.1 103 Early Hints\r\nX: y\r\n\r\n" + bad)
            case "/short-interim": connection.send("HTTP/1.1 103 Early Hints\r\n\r\n" + bad)
            case "/rejected" where isFirst: connection.answer("431 X", headers: ["X: y"])
            case "/broken" where isFirst:
                connection.send("HTTP/1.1 200 OK\r\nContent-Length: 200000\r\nETag: \"1\"\r\n\r\n")
                connection.send([UInt8](repeating: 0, count: 100_000))
                connection.close()
            default: connection.send(bad)
            }
        }
        for _ in 0..<5 {
            #expect(try await fetch(origin.url("/good")).text == "good")
            let failure = try await failureOf { () async throws(FetchError) in
                try await fetch(origin.url(target), validators: Validators(entityTag: "\"0\""))
            }
            #expect(failure.kind == .transient && failure.message.contains("sent a header line"), "\(failure)")
        }
    }

    @Test("a handle is given to libcurl only once")
    func oneRequestForEachHandle() throws {
        let easy = try #require(EasyHandle())
        #expect(!easy.isUsed && easy.use())
        #expect(easy.isUsed && !easy.use())
    }

    @Test("very many header lines, interim responses or trailers end the request")
    func endless() async throws {
        let origin = try ScriptedOrigin { request, connection in
            let line: String
            switch request.target {
            case "/lines":
                connection.send("HTTP/1.1 200 OK\r\n")
                line = "Cache-Control: max-age=1\r\n"
            case "/interim": line = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
            default:
                connection.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n")
                line = "Trailer-Field: value\r\n"
            }
            // Until the client closes the connection.
            for _ in 0..<100_000 { connection.send(String(repeating: line, count: 100)) }
        }
        #expect(try await failure(origin.url("/lines")).message.contains("more than 256 header lines"))
        #expect(try await failure(origin.url("/interim")).message.contains("more than 8 interim responses"))
        #expect(try await failure(origin.url("/trailers")).message.contains("of trailers"))
    }

    @Test(
        "a proxy whose answer has no end does not hold the loop, and other requests succeed",
        arguments: ["Content-Length: 999999999999", "Transfer-Encoding: chunked"])
    func endlessProxy(framing: String) async throws {
        let isFlooding = Event()
        let proxy = try ScriptedOrigin { request, connection in
            connection.send("HTTP/1.1 407 Proxy Authentication Required\r\n\(framing)\r\n\r\n")
            isFlooding.happen()
            let piece = Array("10000\r\n".utf8) + [UInt8](repeating: 0x61, count: 65_536) + Array("\r\n".utf8)
            // Until the client closes the connection, or has held its loop for the whole deadline.
            let deadline = BootInstant.now + testTimeout / 4
            while BootInstant.now < deadline, connection.send(piece) {}
            if BootInstant.now >= deadline { connection.close() }
        }
        let client = HTTPClient(
            running.loop, options: HTTPClient.Options(proxy: "http://user:S3CRET@127.0.0.1:\(proxy.port)"))
        async let failure = failureOf { () async throws(FetchError) in
            let source = HTTPSource(url: "https://127.0.0.1:9/", host: "127.0.0.1")
            return try await client.fetch(source, for: FetchRequest(source: .http(source)))
        }
        await isFlooding.occurrence()
        let origin = try ScriptedOrigin { _, connection in connection.answer("200 OK", body: "honest") }
        #expect(try await fetch(origin.url()).text == "honest")
        let message = try await failure.message
        #expect(message.contains("its answer 407 has no end") && !message.contains("S3CRET"), "\(message)")
    }

    @Test("a TLS handshake that has no end does not hold the loop, and other requests succeed")
    func endlessHandshake() async throws {
        let flooder = try MuteOrigin()
        let isFlooding = Event()
        startThread {
            let connection = flooder.connection()
            isFlooding.happen()
            // A record of 4,096 HelloRequest messages, which are allowed before ServerHello (RFC 5246, 7.4.1.1).
            let record: [UInt8] = [22, 3, 3, 0x40, 0] + [UInt8](repeating: 0, count: 16_384)
            // Until the client closes the connection, or has held its loop for the whole deadline.
            let deadline = BootInstant.now + testTimeout / 4
            while BootInstant.now < deadline,
                send(connection, record, record.count, Int32(MSG_NOSIGNAL)) == record.count
            {}
            close(connection)
        }
        async let failure = failure(flooder.url)
        await isFlooding.occurrence()
        let origin = try ScriptedOrigin { _, connection in connection.answer("200 OK", body: "honest") }
        #expect(try await fetch(origin.url()).text == "honest")
        let message = try await failure.message
        #expect(message.contains("no TLS connection") && message.contains("unexpected message"), "\(message)")
    }

    @Test("an entity tag that is not ASCII is dropped, because it could not be sent back unchanged")
    func entityTag() async throws {
        let origin = try ScriptedOrigin { _, connection in
            connection.send(
                Array("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nETag: \"".utf8) + [0xE9, 0x22, 0x0D, 0x0A, 0x0D, 0x0A])
        }
        #expect(try await fetch(origin.url()).content?.validators.entityTag == nil)
    }

    @Test(
        "a conditional request that the origin rejects is repeated once without the condition", arguments: [400, 431])
    func conditionRejected(status: Int) async throws {
        let origin = try ScriptedOrigin { request, connection in
            if request.target == "/always" || request.headers["if-none-match"] != nil {
                connection.answer("\(status) X")
            } else {
                connection.answer("200 OK", body: "new")
            }
        }
        let validators = Validators(entityTag: "\"\(String(repeating: "a", count: 9_000))\"")
        #expect(try await fetch(origin.url("/"), validators: validators).text == "new")
        #expect(origin.requests.map { $0.headers["if-none-match"] != nil } == [true, false])
        let failure = try await failureOf { () async throws(FetchError) in
            try await fetch(origin.url("/always"), validators: validators)
        }
        #expect(failure.status == status)
        #expect(origin.requests.count == 4)
    }
}

/// Counts the turns of a loop.
private final class TurnCounter: Sendable {
    private let loop: EventLoop
    private let count = Mutex<Int?>(0)

    init(_ loop: EventLoop) { self.loop = loop }

    func begin() {
        loop.perform { [self] in
            let goesOn = count.withLock { count in
                count = count.map { $0 + 1 }
                return count != nil
            }
            if goesOn { begin() }
        }
    }

    func end() -> Int { count.withLock { count in count.take() ?? 0 } }
}

@Suite("The class of an address")
struct AddressClassTests {
    @Test(
        "an address has the class of its reach",
        arguments: [
            ("127.0.0.1", AddressClass.machine), ("127.255.0.1", .machine), ("0.0.0.0", .machine), ("::1", .machine),
            ("::", .machine), ("::ffff:127.0.0.1", .machine), ("::127.0.0.1", .machine), ("64:ff9b::7f00:1", .machine),
            ("/run/socket", .machine), ("", .machine), ("169.254.1.1", .link), ("fe80::1%eth0", .link),
            ("10.0.0.1", .network), ("172.16.0.1", .network), ("172.31.0.1", .network), ("192.168.0.1", .network),
            ("100.64.0.1", .network), ("fd00::1", .network), ("::ffff:10.0.0.1", .network), ("172.32.0.1", .everybody),
            ("192.0.2.1", .everybody), ("2001:db8::1", .everybody), ("64:ff9b::c000:201", .everybody),
            ("2002:7f00:1::1", .machine), ("2002:a01:203::1", .network), ("2002:c000:201::1", .everybody),
            ("64:ff9b:1::a01:203", .network), ("2001:0:1:2::3", .network), ("2001:1::1", .everybody),
            ("198.18.0.1", .network), ("198.20.0.1", .everybody), ("192.0.0.8", .network), ("240.1.1.1", .network),
            ("ff02::1", .network),
        ] as [(String, AddressClass)])
    func classes(address: String, expected: AddressClass) {
        #expect(AddressClass(of: address) == expected)
    }

    @Test("classes are ordered from public to private")
    func order() {
        #expect(AddressClass.everybody < .network && AddressClass.network < .link && AddressClass.link < .machine)
    }
}
