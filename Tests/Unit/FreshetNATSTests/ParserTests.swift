import TestSupport
import Testing

@testable import FreshetNATS

@Suite("The parser of a server's bytes") struct ParserTests {
    /// All operations of a stream that arrives in pieces of this length.
    private func parse(
        _ text: String, step: Int = .max, limits: NATSParser.Limits = .init()
    ) throws(NATSParser.Violation) -> [ServerOperation] {
        var parser = NATSParser(limits: limits)
        var operations: [ServerOperation] = []
        var rest = Array(text.utf8)[...]
        while !rest.isEmpty {
            parser.append(rest.prefix(step))
            rest = rest.dropFirst(step)
            while let operation = try parser.next() { operations.append(operation) }
        }
        return operations
    }

    private func message(
        _ subject: String, _ payload: String, reply: String? = nil, headers: NATSHeaders = NATSHeaders(),
        to number: UInt64
    ) -> ServerOperation {
        .message(
            NATSMessage(subject: subject, reply: reply, headers: headers, payload: Array(payload.utf8)),
            subscription: number)
    }

    @Test("reads every operation, in pieces of any length", arguments: [1, 2, 3, 7, 64, Int.max])
    func operations(step: Int) throws {
        let text =
            "PING\r\nPONG\r\n+OK\r\n-ERR 'Authorization Violation'\r\nMSG a.b 7 5\r\nhe\r\no\r\n"
            + "MSG a.b 7 _INBOX.x.1 0\r\n\r\nHMSG c 9 20 22\r\nNATS/1.0\r\nA: b c\r\n\r\nhi\r\n"
            + "HMSG _INBOX.x.2 1 16 16\r\nNATS/1.0 503\r\n\r\n\r\n"
        var headers = NATSHeaders()
        try headers.append("A", "b c")
        let operations = try parse(text, step: step)
        #expect(operations.count == 8)
        #expect(operations.prefix(4) == [.ping, .pong, .ok, .error("Authorization Violation")])
        #expect(operations[4] == message("a.b", "he\r\no", to: 7))
        #expect(operations[5] == message("a.b", "", reply: "_INBOX.x.1", to: 7))
        #expect(operations[6] == message("c", "hi", headers: headers, to: 9))
        guard case .message(let last, subscription: 1) = operations[7] else { throw Unexpected() }
        #expect(last.isNoResponders)
    }

    @Test("reads the facts of INFO, and ignores addresses of other servers and unknown members")
    func info() throws {
        let text =
            "INFO {\"server_id\":\"N1\",\"server_name\":\"x\",\"version\":\"2.15.1\",\"headers\":true,\"max_payload\":100,"
            + "\"client_id\":12,\"cluster\":\"c\",\"domain\":\"hub\",\"jetstream\":true,\"auth_required\":true,"
            + "\"nonce\":\"n\",\"connect_urls\":[\"10.0.0.1:4222\"],\"xyz\":{\"a\":[1]}} \r\n"
        guard case .info(let info)? = try parse(text).first else { throw Unexpected() }
        #expect(info.serverID == "N1" && info.serverName == "x" && info.version == "2.15.1")
        #expect(info.supportsHeaders && info.hasJetStream && info.requiresAuthentication && !info.requiresTLS)
        #expect(info.maxPayload == 100 && info.clientID == 12 && info.cluster == "c" && info.domain == "hub")
        #expect(info.nonce == "n")
    }

    @Test(
        "compares the server's version",
        arguments: [
            ("2.11.0", true), ("2.15.1", true), ("3.0.0", true), ("2.10.29", false), ("1.99.0", false), ("", false),
            ("2", false), ("2.x", false), ("2.11-beta", false), ("2.12.0-RC.1", true),
        ])
    func version(text: String, isEnough: Bool) {
        var info = NATSServerInfo()
        info.version = text
        #expect(info.isAtLeast(2, 11) == isEnough)
    }

    @Test(
        "rejects what a server must not send",
        arguments: [
            "HELLO\r\n", "PING\n", "\r\n", "MSG a 1\r\n", "MSG a b 1\r\n", "MSG a 1 -1\r\n", "MSG a 1 1x\r\n",
            "MSG a 1 b c 2\r\n", "MSG a 1 99999999999999999999\r\n", "MSG a 1 999999999999\r\n", "HMSG a 1 5\r\n",
            "HMSG a 1 0 5\r\n", "HMSG a 1 6 5\r\n", "MSG a 1 1\r\nxyz", "INFO {\r\n", "INFO {\"max_payload\":-1}\r\n",
            "INFO {\"max_payload\":\"x\"}\r\n", "INFO {\"version\":1}\r\n", "INFO {\"headers\":1}\r\n", "INFO []\r\n",
            "HTTP/1.1 400 Bad Request\r\n",
        ])
    func violations(text: String) {
        #expect(throws: NATSParser.Violation.self) { _ = try self.parse(text) }
    }

    @Test("rejects a line that is too long before its end arrives")
    func longLine() throws {
        let line = String(repeating: "x", count: 4_096)
        #expect(try parse(line).isEmpty)
        #expect(throws: NATSParser.Violation(description: "a line is too long")) { _ = try self.parse(line + "x") }
        let info = "INFO {\"x\":\"" + String(repeating: "x", count: 60_000)
        #expect(try parse(info + "\"}\r\n").count == 1)
        #expect(throws: NATSParser.Violation.self) { _ = try self.parse(info + info) }
    }

    @Test("skips a message that is too long without storing it, and goes on", arguments: [1, 100, Int.max])
    func longMessage(step: Int) throws {
        var limits = NATSParser.Limits()
        limits.payload = 10
        let text =
            "MSG a 5 11\r\n01234567890\r\nMSG a 5 10\r\n0123456789\r\nHMSG a 6 14 25\r\nNATS/1.0\r\nA:\r\n01234567890\r\n"
        #expect(
            try parse(text, step: step, limits: limits) == [
                .unusable(subject: "a", subscription: 5), message("a", "0123456789", to: 5),
                .unusable(subject: "a", subscription: 6),
            ])
        var parser = NATSParser(limits: limits)
        parser.append(Array("MSG a 5 1000000\r\n".utf8))
        for _ in 0..<900 {
            parser.append([UInt8](repeating: 0, count: 1_000))
            #expect(try parser.next() == nil)
            #expect(parser.bufferedBytes == 0)
        }
    }

    @Test(
        "a message with malformed headers is reported, and does not end the connection",
        arguments: [
            "HTTP/1.1\r\n\r\n", "NATS/1.0\r\nA b\r\n\r\n", "NATS/1.0\r\n: b\r\n\r\n", "NATS/1.0\r\nA: b\n\r\n\r\n",
            "NATS/1.0\r\nA: b\r\n", "NATS/1.0 abc\r\n\r\n", "NATS/1.0x\r\n\r\n", "NATS/1.0 5031\r\n\r\n",
            "NATS/1.0\r\nA: \u{1}\r\n\r\n", "NATS/1.0\r\n\r\nA: b\r\n\r\n",
        ])
    func malformedHeaders(block: String) throws {
        let text = "HMSG a 5 \(block.utf8.count) \(block.utf8.count + 1)\r\n\(block)x\r\nPING\r\n"
        #expect(try parse(text) == [.unusable(subject: "a", subscription: 5), .ping])
    }

    @Test("an error of the server is shown in short, with its control characters escaped")
    func errorText() throws {
        let operations = try parse("-ERR 'a\u{1B}[2J\(String(repeating: "x", count: 1_000))'\r\n-ERR plain\r\n")
        guard case .error(let raw) = operations[0] else { throw Unexpected() }
        let text = Text.escaped(raw)
        #expect(text.hasPrefix("a\\u{1b}[2J") && text.utf8.count < 300)
        #expect(operations[1] == .error("plain"))
    }

    struct Unexpected: Error {}
}

@Suite("Headers and subjects") struct HeaderTests {
    @Test("a block of headers is read as it was written")
    func roundTrip() throws {
        var headers = NATSHeaders()
        try headers.append("Nats-TTL", "30s")
        try headers.append("a", "")
        try headers.append("a", "ä: \t b")
        let block = headers.block
        #expect(block.elementsEqual("NATS/1.0\r\nNats-TTL: 30s\r\na: \r\na: ä: \t b\r\n\r\n".utf8))
        #expect(NATSHeaders(block: block[...]) == headers)
        #expect(headers["Nats-TTL"] == "30s" && headers["nats-ttl"] == nil)
        #expect(NATSHeaders().block.isEmpty)
    }

    @Test("reads the status of an answer")
    func status() {
        func read(_ text: String) -> NATSHeaders? { NATSHeaders(block: Array("\(text)\r\n\r\n".utf8)[...]) }
        #expect(read("NATS/1.0 204 EOB")?.status == 204)
        #expect(read("NATS/1.0 204 EOB")?.statusText == "EOB")
        #expect(read("NATS/1.0 404 Message Not Found")?.statusText == "Message Not Found")
        #expect(read("NATS/1.0   503  ")?.status == 503)
        #expect(read("NATS/1.0")?.status == nil)
    }

    @Test("a header cannot end its line or begin another one")
    func injection() {
        for (name, value) in [
            ("", "b"), ("a:", "b"), ("a b", "c"), ("a\r\nb", "c"), ("ä", "b"), ("a", "b\r\nc: d"), ("a", "b\n"),
            ("a", "\0"), ("a", " b"), ("a", "b\t"), ("a", "\u{7F}"),
        ] {
            var headers = NATSHeaders()
            #expect(throws: NATSError.invalidHeader(name)) { try headers.append(name, value) }
        }
    }

    @Test("a message with too many header fields is malformed")
    func manyFields() {
        let fields = String(repeating: "A: b\r\n", count: NATSHeaders.mostFields)
        #expect(NATSHeaders(block: Array("NATS/1.0\r\n\(fields)\r\n".utf8)[...]) != nil)
        #expect(NATSHeaders(block: Array("NATS/1.0\r\n\(fields)A: b\r\n\r\n".utf8)[...]) == nil)
    }

    @Test("a subject cannot end its line or add an argument")
    func subjects() throws {
        for text in ["", ".", "a.", ".a", "a..b", "a b", "a\r\nPING", "a\tb", "a.*", "a.>", "a*", "ä", "a\0"] {
            #expect(throws: NATSError.invalidSubject(text)) { _ = try NATSSubject(text) }
        }
        for text in ["a", "$JS.API.x", "_INBOX.a.1", String(repeating: "a", count: 1_024)] {
            #expect(try NATSSubject(text).description == text)
        }
        #expect(throws: NATSError.self) { _ = try NATSSubject(String(repeating: "a", count: 1_025)) }
        for text in ["a.*", "*", ">", "a.>", "*.a.>"] { #expect(try NATSSubjectPattern(text).description == text) }
        for text in [">.a", "a>", "a.b*", "**", "", "a. b"] {
            #expect(throws: NATSError.invalidSubject(text)) { _ = try NATSSubjectPattern(text) }
        }
    }

    @Test("CONNECT is JSON, whatever the client's name has")
    func connect() {
        let connect = ClientOperation.Connect(name: "a\"\r\nb", version: "1", proof: ("U1", "s"), usesTLS: true)
        let line = String(decoding: connect.line, as: UTF8.self)
        #expect(line.hasPrefix("CONNECT {\"verbose\":false,") && line.hasSuffix("\"nkey\":\"U1\",\"sig\":\"s\"}\r\n"))
        #expect(line.contains("\"name\":\"a\\\"\\u000d\\u000ab\""))
        #expect(line.utf8.filter { $0 == UInt8(ascii: "\n") }.count == 1)
    }
}
