import FreshetEventLoop
import Glibc
import TestSupport
import Testing
import ThreadTestSupport

@testable import FreshetControl
@testable import FreshetVarlink

@Suite(.hangLimit) struct ControlClientTests {
    private let level = "{\"parameters\":{\"level\":\"info\"}}\0"

    @Test("a call that changes nothing is repeated once if the daemon closes the connection")
    func repeated() async throws {
        let (level, calls) = try await calls(answers: ["", level]) { try $0.logLevel() }
        #expect(level == .info)
        #expect(calls == ["io.freshet.Control.GetLogLevel", "io.freshet.Control.GetLogLevel"])
    }

    @Test("a call that is closed twice fails")
    func closedTwice() async throws {
        await #expect(throws: ControlClient.Failure.closed) {
            try await calls(answers: ["", ""]) { try $0.logLevel() }
        }
    }

    @Test("a call that changes something is not repeated")
    func once() async throws {
        await #expect(throws: ControlClient.Failure.closed) {
            try await calls(answers: ["", level]) { try $0.hold("a") }
        }
    }

    @Test("if no daemon follows, the failure is the closed connection")
    func noSuccessor() throws {
        let directory = try TemporaryDirectory()
        let listener = try VarlinkListener(path: directory.path("s"))
        let client = try ControlClient(path: directory.path("s"))
        close(accept(listener.descriptor.rawValue, nil, nil))
        listener.close()
        #expect(throws: ControlClient.Failure.closed) { try client.logLevel() }
    }

    /// Calls a server that gives each connection one of these answers and then closes it.
    private func calls<Value: Sendable>(
        answers: [String], _ body: @escaping @Sendable (ControlClient) throws -> Value
    ) async throws -> (value: Value, calls: [String]) {
        let directory = try TemporaryDirectory()
        let path = directory.path("s")
        let listener = try VarlinkListener(path: path)
        // Here accept(2) has to wait for a client.
        try #require(fcntl(listener.descriptor.rawValue, F_SETFL, 0) == 0)
        let descriptor = listener.descriptor
        async let server = onThread {
            var calls: [String] = []
            for answer in answers {
                let connection = OwnedDescriptor(accept(descriptor.rawValue, nil, nil))
                guard connection.rawValue >= 0 else { break }
                calls.append(Self.method(connection))
                _ = Array(answer.utf8).withUnsafeBytes {
                    send(connection.rawValue, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
                }
            }
            return calls
        }
        let value = await onThread { try body(try ControlClient(path: path)) }
        // Ends the server if it still waits for a connection.
        shutdown(listener.descriptor.rawValue, Int32(SHUT_RDWR))
        let calls = try await server.get()
        return (try value.get(), calls)
    }

    private static func method(_ connection: OwnedDescriptor) -> String {
        var bytes = [UInt8](repeating: 0, count: 4_096)
        let count = recv(connection.rawValue, &bytes, bytes.count, 0)
        let text = String(decoding: bytes.prefix(max(0, count)), as: UTF8.self)
        return text.split(separator: "\"").first { $0.hasPrefix("io.freshet") }.map(String.init) ?? ""
    }
}
