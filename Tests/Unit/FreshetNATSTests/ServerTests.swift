import FreshetEventLoop
import Glibc
import NATSTestSupport
import TestSupport
import Testing
import ThreadTestSupport

@testable import FreshetNATS

@Suite(
    "With a real nats-server", .enabled(if: NATSServer.isAvailable, "needs nats-server; run Scripts/setup test"),
    .hangLimit
)
struct ServerTests {
    private let a = NATSSubject(trusted: "a")

    @Test("a client connects, and knows its server")
    func connect() async throws {
        let server = try await NATSServer("max_payload: 4096\njetstream { store_dir: \"DIRECTORY/store\" }")
        try await withConnectedClient(NATSConfiguration(try server.address())) { client in
            let info = try #require(await client.state.serverInfo)
            #expect(info.isAtLeast(2, 11) && info.supportsHeaders && info.hasJetStream && info.serverName == "test")
            #expect(info.maxPayload == 4_096 && info.clientID != nil && !info.requiresTLS)
        }
    }

    @Test("a message arrives with its headers and its payload, whatever bytes it has")
    func publish() async throws {
        let server = try await NATSServer()
        try await withConnectedClient(NATSConfiguration(try server.address())) { client in
            let subscription = try await client.subscribe(try NATSSubjectPattern("x.*"))
            var headers = NATSHeaders()
            try headers.append("A", "ä b")
            let payload = (0..<100_000).map { UInt8(truncatingIfNeeded: $0) }
            let subject = try NATSSubject("x.1")
            try await client.publish(subject, payload, headers: headers, reply: self.a)
            try await client.publish(subject)
            #expect(
                try await subscription.next()
                    == .message(NATSMessage(subject: "x.1", reply: "a", headers: headers, payload: payload)))
            #expect(try await subscription.next() == .message(NATSMessage(subject: "x.1")))
            subscription.cancel()
            #expect(try await subscription.next() == nil)
        }
    }

    @Test("a request gets its reply, also when many wait at the same time")
    func request() async throws {
        let server = try await NATSServer()
        try await withConnectedClient(NATSConfiguration(try server.address())) { client in
            let subscription = try await client.subscribe(NATSSubjectPattern(self.a))
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask {
                    for try await delivery in subscription {
                        guard case .message(let message) = delivery, let reply = message.reply else { continue }
                        try await client.publish(try NATSSubject(reply), Array("re: \(message.text)".utf8))
                    }
                }
                try await withThrowingTaskGroup(of: Void.self) { requests in
                    for number in 0..<100 {
                        requests.addTask {
                            let reply = try await client.request(
                                self.a, Array("\(number)".utf8), timeout: testTimeout)
                            #expect(reply.text == "re: \(number)")
                        }
                    }
                    try await requests.waitForAll()
                }
                subscription.cancel()
                try await group.waitForAll()
            }
        }
    }

    @Test("a request to which nothing subscribes fails immediately; one without a reply fails in time")
    func noReply() async throws {
        let server = try await NATSServer()
        try await withConnectedClient(NATSConfiguration(try server.address())) { client in
            await #expect(throws: NATSError.noResponders) { try await client.request(self.a, timeout: testTimeout) }
            let subscription = try await client.subscribe(NATSSubjectPattern(self.a))
            await #expect(throws: NATSError.timedOut) {
                try await client.request(self.a, timeout: .milliseconds(20))
            }
            let request = Task { try await client.request(self.a, timeout: testTimeout) }
            #expect(try await subscription.next() != nil)
            #expect(try await subscription.next() != nil)
            request.cancel()
            await #expect(throws: NATSError.cancelled) { try await request.value }
        }
    }

    @Test("a batch of JetStream comes as several replies, until its end")
    func batch() async throws {
        let server = try await NATSServer("jetstream { store_dir: \"DIRECTORY/store\" }")
        try await withConnectedClient(NATSConfiguration(try server.address())) { client in
            let stream = #"{"name":"S","subjects":["s.>"],"storage":"memory","allow_direct":true}"#
            let created = try await client.request(
                try NATSSubject("$JS.API.STREAM.CREATE.S"), Array(stream.utf8), timeout: testTimeout)
            #expect(created.text.contains("\"config\""), "\(created.text)")
            for number in 1...20 {
                let stored = try await client.request(
                    try NATSSubject("s.\(number)"), Array("\(number)".utf8), timeout: testTimeout)
                #expect(stored.text.contains("\"stream\":\"S\""))
            }
            let get = try NATSSubject("$JS.API.DIRECT.GET.S")
            let batch = try await client.requestSeveral(
                get, Array(#"{"multi_last":["s.>"],"batch":100}"#.utf8), timeout: testTimeout)
            #expect(batch.map(\.text) == (1...20).map(String.init))
            #expect(batch.last?.headers["Nats-Subject"] == "s.20")
            let few = try await client.requestSeveral(
                get, Array(#"{"multi_last":["s.>"],"batch":100}"#.utf8), timeout: testTimeout,
                isLast: { $0.text == "3" })
            #expect(few.map(\.text) == ["1", "2", "3"])
            await #expect(throws: NATSError.repliesTooLarge) {
                try await client.requestSeveral(
                    get, Array(#"{"multi_last":["s.>"],"batch":100}"#.utf8), timeout: testTimeout,
                    limits: NATSReplyLimits(replies: 5))
            }
        }
    }

    @Test("a payload above the server's limit is not sent; the limit itself is")
    func maxPayload() async throws {
        let server = try await NATSServer("max_payload: 1000")
        try await withConnectedClient(NATSConfiguration(try server.address())) { client in
            let subscription = try await client.subscribe(NATSSubjectPattern(self.a))
            var headers = NATSHeaders()
            try headers.append("A", "b")
            let rest = 1_000 - headers.block.count
            await #expect(throws: NATSError.payloadTooLarge(1_001, limit: 1_000)) {
                try await client.publish(self.a, [UInt8](repeating: 1, count: rest + 1), headers: headers)
            }
            try await client.publish(self.a, [UInt8](repeating: 1, count: rest), headers: headers)
            guard case .message(let message)? = try await subscription.next() else { throw NoMessage() }
            #expect(message.payload.count == rest)
            try await client.flush(timeout: testTimeout)
        }
    }

    @Test("when the server is killed and starts again, subscriptions continue, and the loss is visible")
    func restart() async throws {
        let server = try await NATSServer()
        try await withConnectedClient(NATSConfiguration(try server.address())) { client in
            let subscription = try await client.subscribe(NATSSubjectPattern(self.a))
            try await client.publish(self.a, Array("1".utf8))
            #expect(try await subscription.text() == "1")
            // The reply never comes.
            let request = Task { try await client.request(self.a, timeout: testTimeout) }
            #expect(try await subscription.text() == "")
            await server.kill()
            await #expect(throws: NATSError.connectionLost) { try await request.value }
            _ = try await client.failure()
            await #expect(throws: NATSError.notConnected) { try await client.publish(self.a) }
            let waiting = try await client.subscribe(try NATSSubjectPattern("b"))
            try await server.start()
            #expect(await client.isConnected())
            #expect(try await subscription.next() == .resubscribed)
            try await client.publish(self.a, Array("2".utf8))
            try await client.publish(try NATSSubject("b"), Array("3".utf8))
            #expect(try await subscription.text() == "2")
            #expect(try await waiting.text() == "3", "a subscription that had no connection has lost nothing")
        }
    }

    @Test("the client uses another server when one is killed")
    func twoServers() async throws {
        let (one, two) = (try await NATSServer(), try await NATSServer())
        try await withConnectedClient(NATSConfiguration(try one.address(), try two.address())) { client in
            guard case .connected(let host, _) = await client.state else { throw NoMessage() }
            let (used, other) = host.hasSuffix(":\(one.port)") ? (one, two) : (two, one)
            await used.kill()
            let moved = await eventually {
                guard case .connected(let host, _) = await client.state else { return false }
                return host.hasSuffix(":\(other.port)")
            }
            let state = await client.state
            #expect(moved, "\(state)")
        }
    }

    @Test("a network epoch makes another connection; without a network there is none")
    func epochs() async throws {
        let server = try await NATSServer()
        try await withConnectedClient(NATSConfiguration(try server.address())) { client in
            let first = try #require(await client.state.serverInfo?.clientID)
            await client.beginEpoch(1)
            let isOther = await eventually { await client.state.serverInfo?.clientID.map { $0 != first } ?? false }
            #expect(isOther)
            await client.beginEpoch(2, isNetworkPresent: false)
            #expect(await client.state == .waitingForNetwork)
            await #expect(throws: NATSError.notConnected) { try await client.publish(self.a) }
            await client.beginEpoch(2, isNetworkPresent: true)
            #expect(await client.isConnected())
        }
    }

    @Test("a slow reader loses messages and knows how many; the client's memory and others are not affected")
    func slowReader() async throws {
        let server = try await NATSServer()
        try await withConnectedClient(NATSConfiguration(try server.address())) { client in
            let slow = try await client.subscribe(
                NATSSubjectPattern(self.a), limits: NATSBufferLimits(messages: 10, bytes: 50_000))
            let payload = [UInt8](repeating: 7, count: 1_000)
            for round in 1...20 {
                for _ in 1...50 { try await client.publish(self.a, payload) }
                try await client.flush(timeout: testTimeout)
                #expect(slow.buffer.bufferedBytes <= 50_000, "round \(round)")
            }
            for _ in 0..<10 { #expect(try await slow.next() == .message(NATSMessage(subject: "a", payload: payload))) }
            #expect(try await slow.next() == .dropped(990))
            try await client.publish(self.a, Array("now".utf8))
            #expect(try await slow.text() == "now")
        }
    }

    @Test("a message that is longer than the client's limit is counted as dropped")
    func oversized() async throws {
        let server = try await NATSServer()
        var configuration = NATSConfiguration(try server.address())
        configuration.limits.payload = 1_000
        try await withConnectedClient(configuration) { client in
            let subscription = try await client.subscribe(NATSSubjectPattern(self.a))
            try await client.publish(self.a, [UInt8](repeating: 7, count: 100_000))
            try await client.publish(self.a, Array("short".utf8))
            #expect(try await subscription.next() == .dropped(1))
            #expect(try await subscription.text() == "short")
        }
    }

    @Test("when the server reads nothing, sending fails at the limit of the buffer, and continues later")
    func frozenServer() async throws {
        let server = try await NATSServer()
        var configuration = NATSConfiguration(try server.address())
        configuration.limits.outgoing = 200_000
        try await withConnectedClient(configuration) { client in
            server.freeze(true)
            let payload = [UInt8](repeating: 7, count: 50_000)
            var error: NATSError?
            let isFull = await eventually {
                do throws(NATSError) { try await client.publish(self.a, payload) } catch let full { error = full }
                return error != nil
            }
            #expect(isFull && error == .outgoingBufferFull(limit: 200_000), "\(String(describing: error))")
            server.freeze(false)
            let isFlushed = await eventually {
                do throws(NATSError) {
                    try await client.flush(timeout: testTimeout)
                    return true
                } catch { return false }
            }
            let state = await client.state
            #expect(isFlushed, "\(state)")
            try await client.publish(self.a, payload)
        }
    }

    @Test("limits of requests and subscriptions are errors")
    func limits() async throws {
        let server = try await NATSServer()
        var configuration = NATSConfiguration(try server.address())
        configuration.limits.requests = 1
        configuration.limits.subscriptions = 1
        try await withConnectedClient(configuration) { client in
            let subscription = try await client.subscribe(NATSSubjectPattern(self.a))
            await #expect(throws: NATSError.tooManySubscriptions(limit: 1)) {
                _ = try await client.subscribe(NATSSubjectPattern(self.a))
            }
            let request = Task { try await client.request(self.a, timeout: testTimeout) }
            #expect(try await subscription.next() != nil)
            await #expect(throws: NATSError.tooManyRequests(limit: 1)) {
                try await client.flush(timeout: testTimeout)
            }
            request.cancel()
            _ = await request.result
            subscription.cancel()
            let isFree = await eventually { (try? await client.subscribe(NATSSubjectPattern(self.a))) != nil }
            #expect(isFree)
        }
    }

    struct NoMessage: Error {}
}
