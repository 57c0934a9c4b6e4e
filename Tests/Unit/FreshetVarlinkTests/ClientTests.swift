import FreshetEventLoop
import Glibc
import TestSupport
import Testing

@testable import FreshetVarlink

@Suite(.serialized, .hangLimit) struct ClientTests {
    private let wait = "org.example.test.Wait"

    @Test("after an error reply the connection stays usable")
    func refused() async throws {
        try await withServer { harness in
            let client = try VarlinkClient(path: harness.path)
            #expect(throws: VarlinkClientError.refused(.methodNotFound("org.example.test.X"))) {
                try client.call("org.example.test.X")
            }
            let reply = try client.call("org.example.test.Echo", VarlinkParameters(encoding: Text(text: "x")))
            #expect(try reply.decode(as: Text.self).text == "x")
        }
    }

    @Test("the client delivers a stream reply by reply, and ends it when the caller returns false")
    func stream() async throws {
        try await withServer { harness in
            let client = try VarlinkClient(path: harness.path)
            var numbers: [Int] = []
            try client.callMore("org.example.test.Count", VarlinkParameters(encoding: Number(number: 5))) { reply in
                numbers.append((try? reply.decode(as: Number.self).number) ?? 0)
                return true
            }
            #expect(numbers == [1, 2, 3, 4, 5])
            var count = 0
            try client.callMore("org.example.test.Flood") { _ in
                count += 1
                return count < 20
            }
            #expect(count == 20)
            #expect(eventually { harness.record["flood ended"] == 1 })
            #expect(throws: VarlinkClientError.closed) { try client.call("org.varlink.service.GetInfo") }
        }
    }

    @Test("the client begins several calls and takes their replies, including errors, in the same order")
    func pipelined() async throws {
        try await withServer { harness in
            let client = try VarlinkClient(path: harness.path)
            let count = "org.example.test.Count"
            try client.begin("org.example.test.Echo", VarlinkParameters(encoding: Text(text: "x")), more: false)
            try client.begin(count, VarlinkParameters(encoding: Number(number: 3)))
            try client.begin("org.example.test.X", more: false)
            try client.begin(count, VarlinkParameters(encoding: Number(number: 2)))
            var texts: [String] = []
            try client.takeReplies { reply in
                texts.append((try? reply.decode(as: Text.self).text) ?? "")
                return true
            }
            #expect(texts == ["x"])
            func numbers() throws(VarlinkClientError) -> [Int] {
                var numbers: [Int] = []
                try client.takeReplies { reply in
                    numbers.append((try? reply.decode(as: Number.self).number) ?? 0)
                    return true
                }
                return numbers
            }
            #expect(try numbers() == [1, 2, 3])
            #expect(throws: VarlinkClientError.refused(.methodNotFound("org.example.test.X"))) { try numbers() }
            #expect(try numbers() == [1, 2])
        }
    }

    @Test("while no reply arrives, the client calls a function repeatedly")
    func meanwhile() async throws {
        try await withServer { harness in
            let client = try VarlinkClient(path: harness.path)
            var count = 0
            #expect(throws: VarlinkClientError.timedOut) {
                try client.callMore(
                    self.wait, timeout: .milliseconds(200), every: .milliseconds(1), meanwhile: { count += 1 }
                ) { _ in true }
            }
            #expect(count > 0)
        }
    }

    @Test("a large reply arrives whole")
    func large() async throws {
        try await withServer { harness in
            let text = String(repeating: "ä", count: 30_000)
            let client = try VarlinkClient(path: harness.path)
            let reply = try client.call("org.example.test.Echo", VarlinkParameters(encoding: Text(text: text)))
            #expect(try reply.decode(as: Text.self).text == text)
        }
    }

    @Test("a call without a reply returns immediately")
    func oneway() async throws {
        try await withServer { harness in
            let client = try VarlinkClient(path: harness.path)
            try client.callOneway("org.example.test.Note", VarlinkParameters(encoding: Text(text: "one")))
            #expect(eventually { harness.record["one"] == 1 })
        }
    }

    @Test("the client gives up a service that does not answer in time")
    func timeout() async throws {
        try await withServer { [wait] harness in
            let client = try VarlinkClient(path: harness.path)
            #expect(throws: VarlinkClientError.timedOut) { try client.call(wait, timeout: .milliseconds(10)) }
            #expect(eventually { harness.record["wait ended"] == 1 })
        }
    }

    @Test("the client waits for a silent service as long as the silence handler allows it")
    func silence() async throws {
        try await withServer { [wait] harness in
            let client = try VarlinkClient(path: harness.path)
            var asked = 0
            client.silence = VarlinkClient.Silence(length: .milliseconds(2)) { _ in
                asked += 1
                return asked < 3
            }
            #expect(throws: VarlinkClientError.timedOut) { try client.call(wait, every: .milliseconds(1)) }
            #expect(asked == 3)
        }
    }

    @Test("the client gives up a service that accepts no connections when its queue is full")
    func fullQueue() throws {
        let directory = try TemporaryDirectory()
        let listener = try VarlinkListener(path: directory.path("s"))
        defer { listener.close() }
        var clients: [VarlinkClient] = []
        let error = #expect(throws: VarlinkClientError.self) {
            for _ in 0..<5_000 {
                clients.append(try VarlinkClient(path: directory.path("s"), timeout: .milliseconds(5)))
            }
        }
        #expect(error == .timedOut && !clients.isEmpty)
        // A timeout below the resolution of the system does not mean no limit.
        #expect(throws: VarlinkClientError.timedOut) {
            try VarlinkClient(path: directory.path("s"), timeout: .nanoseconds(1))
        }
    }

    @Test("a path without a service is an error that names the path")
    func unreachable() {
        let error = #expect(throws: VarlinkClientError.self) { try VarlinkClient(path: "/nonexistent/socket") }
        #expect(error?.description == "cannot connect to '/nonexistent/socket': No such file or directory")
    }

    @Test("the client distinguishes a server that closes from one that violates the protocol")
    func wrongServer() throws {
        let directory = try TemporaryDirectory()
        let listener = try VarlinkListener(path: directory.path("s"))
        defer { listener.close() }
        for (answer, expected) in [
            ("", VarlinkClientError.closed), ("half", .closed),
            ("hello\0", .violation("a reply is not a Varlink message")),
            (
                "{\"parameters\":{},\"continues\":true}\0",
                .violation("the service announced a further reply to a call without 'more'")
            ),
        ] {
            let client = try VarlinkClient(path: directory.path("s"))
            let server = OwnedDescriptor(accept(listener.descriptor.rawValue, nil, nil))
            _ = Array(answer.utf8).withUnsafeBytes { send(server.rawValue, $0.baseAddress, $0.count, 0) }
            shutdown(server.rawValue, Int32(SHUT_WR))
            #expect(throws: expected) { try client.call("a.B", timeout: .seconds(20)) }
            #expect(throws: VarlinkClientError.closed) { try client.call("a.B") }
        }
    }
}
