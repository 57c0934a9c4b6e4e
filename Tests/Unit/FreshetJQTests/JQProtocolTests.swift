import Glibc
import Testing

@testable import FreshetHelper
@testable import FreshetJQ

@Suite("The protocol between a helper and its client")
struct JQProtocolTests {
    /// A helper on a separate thread at the other end of a socket.
    final class Helper: Sendable {
        let socket: Int32

        init() throws {
            var ends: [Int32] = [-1, -1]
            try #require(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends) == 0)
            socket = ends[0]
            let theirs = ends[1]
            var thread = pthread_t()
            let argument = UnsafeMutableRawPointer(bitPattern: Int(theirs))
            pthread_create(
                &thread, nil,
                { argument in
                    let descriptor = Int32(Int(bitPattern: argument))
                    JQHelper.run(input: descriptor, output: descriptor)
                    close(descriptor)
                    return nil
                }, argument)
            pthread_detach(thread)
        }

        deinit { close(socket) }

        func send(_ bytes: [UInt8]) {
            _ = Glibc.send(socket, bytes, bytes.count, Int32(MSG_NOSIGNAL))
        }

        /// The next reply; nil if the helper closes the connection.
        func reply(maxOutput: UInt64 = 1 << 20) throws -> HelperReply? {
            var decoder = HelperReply.Decoder(maxOutput: maxOutput)
            var buffer = [UInt8](repeating: 0, count: 7)
            while true {
                let count = recv(socket, &buffer, buffer.count, 0)
                guard count > 0 else { return nil }
                if let reply = try decoder.take(buffer[..<count]) { return reply }
            }
        }

        func exchange(_ request: HelperRequest) throws -> HelperReply? {
            send(request.head)
            send(request.input)
            return try reply(maxOutput: request.maxOutput)
        }
    }

    @Test("requests are answered one after the other")
    func dialogue() throws {
        let helper = try Helper()
        let input = Array("{\"a\":[1,2]}".utf8)
        #expect(
            try helper.exchange(HelperRequest(.outputs, program: ".a[]", input: input, maxOutput: 100))
                == HelperReply(.done, verdict: true, bytes: Array("1\n2\n".utf8)))
        #expect(
            try helper.exchange(HelperRequest(.outputs, program: "|", input: input, maxOutput: 100))?.status
                == .invalidProgram)
        #expect(
            try helper.exchange(HelperRequest(.verdict, program: ".a == null", input: input, maxOutput: 0))
                == HelperReply(.done, verdict: false))
        #expect(
            try helper.exchange(HelperRequest(.outputs, program: "é", input: [], maxOutput: 0))?.status
                == .invalidProgram)
        #expect(
            try helper.exchange(HelperRequest(.outputs, program: ".", input: [], maxOutput: 0)) == HelperReply(.done))
    }

    @Test("two requests that are sent together are answered in order")
    func pipelined() throws {
        let helper = try Helper()
        var bytes: [UInt8] = []
        for program in ["1", "2"] {
            let request = HelperRequest(.outputs, program: program, input: Array("0".utf8), maxOutput: 10)
            bytes += request.head + request.input
        }
        helper.send(bytes)
        let one = Array("1\n".utf8)
        var received: [UInt8] = []
        let expected = HelperReply(.done, verdict: true, bytes: one).head.count * 2 + 4
        var buffer = [UInt8](repeating: 0, count: 100)
        while received.count < expected {
            let count = recv(helper.socket, &buffer, buffer.count, 0)
            try #require(count > 0)
            received += buffer[..<count]
        }
        #expect(received[16] == UInt8(ascii: "1") && received[34] == UInt8(ascii: "2"))
    }

    @Test("an invalid request ends the helper")
    func nonsense() throws {
        var wrongVersion = HelperRequest(.outputs, program: ".", input: [], maxOutput: 0).head
        wrongVersion[3] += 1
        var wrongPurpose = HelperRequest(.outputs, program: ".", input: [], maxOutput: 0).head
        wrongPurpose[4] = 9
        for bytes in [Array("GET / HTTP/1.1\r\nHost: example.com\r\n\r\n".utf8), wrongVersion, wrongPurpose] {
            let helper = try Helper()
            helper.send(bytes)
            #expect(try helper.reply() == nil)
        }
    }

    @Test("a request states whether its input is a text")
    func text() throws {
        let helper = try Helper()
        let input = Array("1 2".utf8)
        #expect(
            try helper.exchange(HelperRequest(.outputs, program: ".", input: input, isText: true, maxOutput: 100))
                == HelperReply(.done, verdict: true, bytes: Array("\"1 2\"\n".utf8)))
        #expect(
            try helper.exchange(HelperRequest(.outputs, program: ".", input: input, maxOutput: 100))
                == HelperReply(.done, verdict: true, bytes: Array("1\n2\n".utf8)))
    }

    @Test("the limits of a header hold exactly")
    func limits() throws {
        let program = String(repeating: " ", count: HelperRequest.maxProgram)
        let request = HelperRequest(.outputs, program: program, input: [], maxOutput: .max)
        let header = try #require(HelperRequest.Header(Array(request.head[..<HelperRequest.Header.size])))
        #expect(header.program == HelperRequest.maxProgram && header.maxOutput == .max && header.input == 0)
        let longer = HelperRequest(.outputs, program: program + " ", input: [], maxOutput: 0)
        #expect(HelperRequest.Header(Array(longer.head[..<HelperRequest.Header.size])) == nil)

        var head = Array(HelperRequest(.verdict, program: "", input: [], maxOutput: 0).head)
        head.replaceSubrange(16..<24, with: littleEndian(UInt64(HelperRequest.maxInput)))
        #expect(HelperRequest.Header(head)?.input == HelperRequest.maxInput)
        head.replaceSubrange(16..<24, with: littleEndian(UInt64(HelperRequest.maxInput) + 1))
        #expect(HelperRequest.Header(head) == nil)
        head.replaceSubrange(16..<24, with: littleEndian(UInt64.max))
        #expect(HelperRequest.Header(head) == nil)
    }

    @Test("a reply can be decoded from pieces of any size")
    func pieces() throws {
        let reply = HelperReply(.failed, verdict: false, bytes: Array("words".utf8))
        let bytes = reply.head + reply.bytes
        for size in 1...bytes.count {
            var decoder = HelperReply.Decoder(maxOutput: 0)
            var result: HelperReply?
            for start in stride(from: 0, to: bytes.count, by: size) {
                #expect(result == nil)
                result = try decoder.take(bytes[start..<min(start + size, bytes.count)])
            }
            #expect(result == reply)
        }
    }

    @Test("a reply that is invalid, too long or followed by further bytes is an error")
    func noReply() throws {
        let reply = HelperReply(.done, verdict: true, bytes: [UInt8](repeating: 1, count: 5_000))
        let bytes = reply.head + reply.bytes
        var unknown = bytes
        unknown[4] = 200
        for (bytes, limit) in [
            (bytes, 4_999), (unknown, 5_000), (bytes + [0], 5_000), (Array("HTTP/1.1 200 OK\r\n".utf8), 99),
        ]
            as [([UInt8], UInt64)]
        {
            #expect(throws: HelperReply.Decoder.InvalidReply.self) {
                var decoder = HelperReply.Decoder(maxOutput: limit)
                _ = try decoder.take(bytes)
            }
        }
        var decoder = HelperReply.Decoder(maxOutput: 5_000)
        #expect(try decoder.take(bytes) == reply)
    }

    private func littleEndian(_ number: UInt64) -> [UInt8] {
        (0..<8).map { UInt8(truncatingIfNeeded: number >> (8 * $0)) }
    }
}
