import TestSupport
import Testing

@testable import FreshetNATS

/// An instant, in seconds after the beginning of a test.
private func at(_ seconds: Double) -> ContinuousClock.Instant { origin + .seconds(seconds) }
private let origin = ContinuousClock.Instant.now

@Suite("The schedule of attempts to connect") struct ReconnectScheduleTests {
    private func schedule(_ servers: Int, fraction: Double = 0) -> ReconnectSchedule {
        ReconnectSchedule(servers: servers, timing: NATSTiming(), fraction: fraction)
    }

    @Test("the first attempt is immediate, at a random server")
    func first() {
        #expect(schedule(3).first(at: at(0)) == .init(server: 0, at: at(0)))
        #expect(schedule(3, fraction: 0.5).first(at: at(0)).server == 1)
        #expect(schedule(3, fraction: 0.999).first(at: at(0)).server == 2)
        #expect(schedule(3, fraction: 1).first(at: at(0)).server == 2)
    }

    @Test("the limit of the delay doubles with each round of all servers, up to two minutes")
    func doubling() {
        var schedule = schedule(2)
        let delays = (0..<14).map { index in
            let attempt = schedule.failed(index % 2, at: at(0), fraction: 1)
            #expect(attempt.server == (index + 1) % 2)
            return attempt.at - at(0)
        }
        #expect(delays == [2, 4, 4, 8, 8, 16, 16, 32, 32, 64, 64, 120, 120, 120].map { .seconds($0) })
    }

    @Test("the delay is random from zero to the limit")
    func jitter() {
        for (fraction, delay) in [(0, 0.0), (0.25, 0.5), (1, 2)] {
            var schedule = schedule(2)
            #expect(schedule.failed(0, at: at(0), fraction: fraction).at == at(delay))
        }
    }

    @Test("a stable connection starts the delays again; one that ends soon does not")
    func stable() {
        var schedule = schedule(1)
        for _ in 0..<20 { _ = schedule.failed(0, at: at(0), fraction: 1) }
        schedule.accepted(by: 0)
        #expect(schedule.ended(0, after: .seconds(29), at: at(0), fraction: 1).at == at(120))
        #expect(schedule.ended(0, after: .seconds(30), at: at(0), fraction: 1).at == at(2))
    }

    @Test("a server that refused the credential is left out for an hour, ±10 %")
    func refused() {
        var schedule = schedule(2)
        #expect(schedule.refused(by: 0, at: at(0), fraction: 1) == .init(server: 1, at: at(2)))
        #expect(schedule.isRefused)
        // Only the other server is tried.
        #expect(schedule.failed(1, at: at(2), fraction: 1).server == 1)
        // Both: hourly.
        #expect(schedule.refused(by: 1, at: at(10), fraction: 0) == .init(server: 1, at: at(10 + 3_240)))
        let next = schedule.refused(by: 1, at: at(3_250), fraction: 0)
        #expect(next.server == 0 && (at(3_959)...at(3_961)).contains(next.at))
        schedule.accepted(by: 0)
        #expect(!schedule.isRefused)
    }

    @Test("a server that accepts the client does not end the pause of another one that refused it")
    func refusedByOne() {
        var schedule = schedule(2)
        #expect(schedule.refused(by: 0, at: at(0), fraction: 0).server == 1)
        schedule.accepted(by: 1)
        #expect(!schedule.isRefused)
        #expect(schedule.ended(1, after: .seconds(60), at: at(60), fraction: 0).server == 1)
    }

    @Test("a refused credential costs 24 attempts a day, however often the network changes")
    func noBurst() {
        var schedule = schedule(1)
        var random = SeededGenerator(seed: 1)
        var now = at(0)
        var attempts = 0
        while now < at(86_400) {
            attempts += 1
            let attempt = schedule.refused(by: 0, at: now, fraction: .random(in: 0..<1, using: &random))
            for _ in 0..<10 { #expect(schedule.networkChanged(at: now, fraction: 0).at == attempt.at) }
            now = attempt.at
        }
        #expect((20...28).contains(attempts))
    }

    @Test("10,000 clients of a server that restarts come back spread over the first limit")
    func spread() {
        var random = SeededGenerator(seed: 2)
        var seconds = [0, 0]
        for _ in 0..<10_000 {
            var schedule = schedule(1)
            let attempt = schedule.ended(
                0, after: .seconds(3_600), at: at(0), fraction: .random(in: 0..<1, using: &random))
            seconds[attempt.at < at(1) ? 0 : 1] += 1
        }
        #expect(seconds.allSatisfy { (4_700...5_300).contains($0) })
    }
}

@Suite("The machine of a connection") struct SessionMachineTests {
    private var machine = SessionMachine(hosts: ["a:1", "b:2"], timing: NATSTiming(), fraction: 0)

    /// A machine with a connection to the first server, since 0 s.
    private func connected(nonce: Bool = false) -> SessionMachine {
        var machine = machine
        #expect(machine.start(at: at(0)) == .connect(server: 0))
        #expect(machine.connected(at: at(0)) == .none)
        #expect(machine.received(NATSServerInfo(), usesTLS: true, at: at(0), fraction: 0) == .authenticate)
        #expect(machine.receivedPong(at: at(0)) == .establish)
        return machine
    }

    @Test("a connection is made in four steps")
    func dialogue() {
        let machine = connected()
        #expect(machine.isConnected && machine.deadline == at(150))
        #expect(machine.state == .connected(host: "a:1", NATSServerInfo()))
    }

    @Test("an idle connection has a deadline only far away, and bytes of the server move it")
    func keepalive() {
        var machine = connected()
        machine.received(at: at(1))
        #expect(machine.deadline == at(150), "a busy connection does not set the timer with each message")
        machine.received(at: at(120))
        #expect(machine.deadline == at(270))
        #expect(machine.tick(at: at(269), fraction: 0) == .none)
        #expect(machine.tick(at: at(270), fraction: 0) == .ping)
        #expect(machine.deadline == at(280))
        machine.received(at: at(271))
        #expect(machine.deadline == at(421))
    }

    @Test("a server that does not answer PING is left for the next one")
    func silence() {
        var machine = connected()
        #expect(machine.tick(at: at(150), fraction: 0) == .ping)
        #expect(machine.tick(at: at(160), fraction: 1) == .close)
        #expect(
            machine.state
                == .disconnected(
                    .connectionFailed(host: "a:1", reason: "the server does not answer"), nextAttempt: at(162)))
        #expect(machine.tick(at: at(162), fraction: 0) == .connect(server: 1))
    }

    @Test("a server that sends no INFO, or no PONG, is given up after ten seconds")
    func handshakeTimeout() {
        for sendsInfo in [false, true] {
            var machine = machine
            _ = machine.start(at: at(0))
            _ = machine.connected(at: at(1))
            if sendsInfo { _ = machine.received(NATSServerInfo(), usesTLS: true, at: at(5), fraction: 0) }
            #expect(machine.deadline == at(11))
            #expect(machine.tick(at: at(11), fraction: 0) == .close)
        }
    }

    @Test("a refused credential is a state with hourly attempts")
    func refused() {
        var machine = SessionMachine(hosts: ["a:1"], timing: NATSTiming(), fraction: 0)
        _ = machine.start(at: at(0))
        _ = machine.connected(at: at(0))
        _ = machine.received(NATSServerInfo(), usesTLS: true, at: at(0), fraction: 0)
        machine.received(error: "Authorization Violation", at: at(0))
        #expect(machine.ended(.closed(host: "a:1", reason: nil), at: at(0), fraction: 0.5) == .close)
        #expect(
            machine.state
                == .refused(.refused(host: "a:1", reason: "Authorization Violation"), nextAttempt: at(3_600)))
        #expect(machine.network(epoch: 1, isPresent: true, at: at(9), fraction: 0) == .none)
        #expect(machine.deadline == at(3_600), "another network does not change the credential")
    }

    @Test("an error of the server explains the end of the connection")
    func serverError() {
        var machine = connected()
        machine.received(error: "Maximum Connections Exceeded", at: at(60))
        _ = machine.ended(.connectionFailed(host: "a:1", reason: "reset"), at: at(60), fraction: 0)
        #expect(
            machine.state
                == .disconnected(.closed(host: "a:1", reason: "Maximum Connections Exceeded"), nextAttempt: at(60)))
    }

    @Test("an error of the server that did not end the connection explains no later end")
    func harmlessError() {
        var machine = connected()
        machine.received(error: "Invalid Publish Subject", at: at(1))
        let lost = NATSError.connectionFailed(host: "a:1", reason: "reset")
        _ = machine.ended(lost, at: at(60), fraction: 0)
        #expect(machine.state == .disconnected(lost, nextAttempt: at(60)))
    }

    @Test("a new network epoch drops the connection and makes another one; the same epoch changes nothing")
    func epoch() {
        var machine = connected()
        #expect(machine.network(epoch: 0, isPresent: true, at: at(1), fraction: 0.5) == .none)
        #expect(machine.network(epoch: 2, isPresent: true, at: at(1), fraction: 0.5) == .close)
        #expect(machine.deadline == at(2))
        #expect(machine.network(epoch: 1, isPresent: false, at: at(1), fraction: 0.5) == .none)
        #expect(machine.tick(at: at(2), fraction: 0) == .connect(server: 0))
    }

    @Test("without a network, nothing is tried")
    func absent() {
        var machine = connected()
        #expect(machine.network(epoch: 0, isPresent: false, at: at(1), fraction: 0) == .close)
        #expect(machine.state == .waitingForNetwork && machine.deadline == nil)
        #expect(machine.network(epoch: 1, isPresent: false, at: at(2), fraction: 0) == .none)
        #expect(machine.network(epoch: 1, isPresent: true, at: at(3), fraction: 0) == .none)
        #expect(machine.tick(at: at(3), fraction: 0) == .connect(server: 0))
        var another = self.machine
        #expect(another.network(epoch: 1, isPresent: false, at: at(0), fraction: 0) == .none)
        #expect(another.start(at: at(0)) == .none)
        #expect(another.state == .waitingForNetwork)
    }

    @Test("a server that shuts down is left for another one, if there is one")
    func shutdown() {
        var info = NATSServerInfo()
        info.isShuttingDown = true
        var machine = connected()
        #expect(machine.received(info, usesTLS: true, at: at(60), fraction: 0) == .close)
        #expect(machine.tick(at: at(60), fraction: 0) == .connect(server: 1))
    }

    @Test("an error of the server explains a closed connection, and not what the client found wrong")
    func explanation() {
        for (error, isExplained) in [
            (NATSError.closed(host: "a:1", reason: nil), true), (.connectionFailed(host: "a:1", reason: "reset"), true),
            (.violation(host: "a:1", "BANG"), false), (.outgoingBufferFull(limit: 1), false),
        ] {
            var machine = connected()
            machine.received(error: "Stale Connection", at: at(59))
            _ = machine.ended(error, at: at(60), fraction: 0)
            let reason = NATSError.closed(host: "a:1", reason: "Stale Connection")
            #expect(machine.state == .disconnected(isExplained ? reason : error, nextAttempt: at(60)))
        }
    }

    @Test("a server that requires TLS on a plain connection is not used")
    func tlsRequired() {
        var info = NATSServerInfo()
        info.requiresTLS = true
        var machine = machine
        _ = machine.start(at: at(0))
        _ = machine.connected(at: at(0))
        #expect(machine.received(info, usesTLS: false, at: at(0), fraction: 0) == .close)
        #expect(machine.state == .disconnected(.tlsRequired(host: "a:1"), nextAttempt: at(0)))
    }

    @Test("a stopped machine has no deadline, and a late event does nothing")
    func stopped() {
        var machine = connected()
        #expect(machine.stop() == .close)
        #expect(machine.deadline == nil && machine.state == .stopped)
        #expect(machine.ended(.connectionLost, at: at(1), fraction: 0) == .none)
        #expect(machine.network(epoch: 9, isPresent: true, at: at(1), fraction: 0) == .none)
    }

    @Test(
        "distinguishes errors about the credential",
        arguments: [
            ("Authorization Violation", true), ("User Authentication Revoked", true),
            ("User Authentication Expired", true), ("Account Authentication Expired", true),
            ("Authentication Timeout", false), ("Stale Connection", false),
            ("Permissions Violation for Publish to \"a\"", false),
        ])
    func refusals(text: String, isRefusal: Bool) {
        #expect(SessionMachine.isRefusal(text) == isRefusal)
    }

    @Test("reads the subject of a missing right")
    func permissions() {
        #expect(PermissionViolation("Permissions Violation for Publish to \"a.b\"") == .publish("a.b"))
        #expect(
            PermissionViolation("Permissions Violation for Subscription to \"a.>\" using queue \"q\"")
                == .subscribe("a.>"))
        #expect(PermissionViolation("Stale Connection") == nil)
        let long = String(repeating: "x", count: 2_000)
        #expect(PermissionViolation("Permissions Violation for Publish to \"\(long)\"") == .publish(long))
        #expect(PermissionViolation(#"Permissions Violation for Publish to "a\"b\\c""#) == .publish(#"a"b\c"#))
        #expect(PermissionViolation(#"Permissions Violation for Publish to "a\""#) == nil)
    }
}

@Suite("The table of requests") struct RequestTableTests {
    private func reply(_ text: String, status: String? = nil) -> NATSMessage {
        let block = status.flatMap { NATSHeaders(block: Array("NATS/1.0 \($0)\r\n\r\n".utf8)[...]) }
        return NATSMessage(subject: "r", headers: block ?? NATSHeaders(), payload: Array(text.utf8))
    }

    private func table(_ kind: RequestKind) -> (RequestTable<String>, UInt64) {
        var table = RequestTable<String>(limit: 4)
        let token = table.makeToken()
        table.add(token, kind, subject: "s", timeout: .seconds(5), at: at(0), "w")
        return (table, token)
    }

    @Test("the first reply ends a request; a later one is ignored")
    func single() {
        var (table, token) = table(.single)
        let result = table.received(reply("x"), for: token, at: at(1))
        #expect(result?.0 == "w" && result?.1 == .success([reply("x")]))
        #expect(table.received(reply("y"), for: token, at: at(1)) == nil)
        #expect(table.deadline == nil && table.count == 0)
    }

    @Test("the status 503 means that nothing subscribes")
    func noResponders() {
        for kind in [RequestKind.single, .several(NATSReplyLimits(), isLast: { _ in false })] {
            var (table, token) = table(kind)
            #expect(table.received(reply("", status: "503"), for: token, at: at(1))?.1 == .failure(.noResponders))
        }
    }

    @Test("the status 204, or the caller, ends several replies; each one starts the time again")
    func several() {
        var (table, token) = table(.several(NATSReplyLimits(), isLast: { $0.payload == Array("end".utf8) }))
        for second in 1...3 {
            #expect(table.received(reply("x"), for: token, at: at(Double(second))) == nil)
            #expect(table.deadline == at(Double(second) + 5))
        }
        var copy = table
        let batch = copy.received(reply("", status: "204 EOB"), for: token, at: at(4))
        #expect(batch?.1 == .success([reply("x"), reply("x"), reply("x")]))
        #expect(table.function(for: reply("x"), token)?(reply("x")) == false)
        #expect(table.function(for: reply("", status: "204 EOB"), token) == nil)
        let isLast = table.function(for: reply("end"), token)?(reply("end")) ?? false
        let last = table.received(reply("end"), for: token, isLast: isLast, at: at(4))
        #expect(last?.1 == .success([reply("x"), reply("x"), reply("x"), reply("end")]))
    }

    @Test("replies beyond the limits end the request")
    func limits() {
        for limits in [NATSReplyLimits(replies: 2), NATSReplyLimits(bytes: 2 * reply("xx").weight + 1)] {
            var (table, token) = table(.several(limits, isLast: { _ in false }))
            #expect(table.received(reply("xx"), for: token, at: at(1)) == nil)
            #expect(table.received(reply("xx"), for: token, at: at(1)) == nil)
            #expect(table.received(reply("xx"), for: token, at: at(1))?.1 == .failure(.repliesTooLarge))
        }
    }

    @Test("the token of one request says nothing about the next one")
    func tokens() {
        let table = RequestTable<Int>(limit: 3)
        let tokens = (0..<100).map { _ in table.makeToken() }
        #expect(zip(tokens, tokens.dropFirst()).allSatisfy { $0 &+ 1 != $1 })
        #expect(Set(tokens).count == 100)
    }

    @Test("while replies are not permitted, requests end with the server's words, and a flush goes on")
    func refusal() {
        var table = RequestTable<String>(limit: 3)
        table.add(table.makeToken(), .single, subject: "s", timeout: .seconds(5), at: at(0), "a")
        table.add(table.makeToken(), .flush, subject: "", timeout: .seconds(5), at: at(0), "b")
        #expect(table.refuse(.notPermitted("x")) == ["a"])
        #expect(table.refusal == .notPermitted("x") && table.count == 1)
    }

    @Test("requests expire at their time, and a full table says so")
    func expiry() {
        var table = RequestTable<Int>(limit: 3)
        for seconds in 1...3 {
            table.add(
                table.makeToken(), .single, subject: "s\(seconds)", timeout: .seconds(seconds), at: at(0), seconds)
        }
        #expect(table.isFull && table.deadline == at(1))
        #expect(table.expire(at: at(0.9)).isEmpty)
        #expect(table.expire(at: at(2)) == [1, 2])
        #expect(table.deadline == at(3) && !table.isFull)
        #expect(table.remove(to: "s2").isEmpty && table.remove(to: "s3") == [3])
        #expect(table.deadline == nil && table.removeAll().isEmpty)
    }
}

@Suite("The buffer of a subscription", .hangLimit) struct SubscriptionBufferTests {
    private func message(_ text: String) -> NATSMessage { NATSMessage(subject: "s", payload: Array(text.utf8)) }

    @Test("a slow reader gets the oldest messages, and the number of those that were dropped, at their position")
    func slowReader() async throws {
        let buffer = SubscriptionBuffer(limits: NATSBufferLimits(messages: 2))
        for text in ["a", "b", "c", "d"] { buffer.add(message(text)) }
        #expect(try await buffer.next() == .message(message("a")))
        buffer.add(message("e"))
        buffer.finish(.success(()))
        #expect(try await buffer.next() == .message(message("b")))
        #expect(try await buffer.next() == .dropped(2))
        #expect(try await buffer.next() == .message(message("e")))
        #expect(try await buffer.next() == nil)
        #expect(buffer.bufferedBytes == 0)
    }

    @Test("the bytes of messages have a limit too, and losses take no memory")
    func bytes() async throws {
        let buffer = SubscriptionBuffer(limits: NATSBufferLimits(bytes: 1_000))
        for _ in 0..<10_000 {
            buffer.add(message(String(repeating: "x", count: 400)))
            buffer.resubscribed()
            buffer.drop()
        }
        #expect(buffer.bufferedBytes <= 1_000)
        #expect(try await buffer.next() == .message(message(String(repeating: "x", count: 400))))
        #expect(try await buffer.next() == .dropped(1))
        #expect(try await buffer.next() == .resubscribed)
    }

    @Test("a reader waits for the next message; cancelling it ends the wait")
    func waiting() async throws {
        let buffer = SubscriptionBuffer(limits: NATSBufferLimits())
        let reader = Task { try await buffer.next() }
        buffer.add(message("a"))
        #expect(try await reader.value == .message(message("a")))
        let cancelled = Task { try await buffer.next() }
        cancelled.cancel()
        #expect(try await cancelled.value == nil)
    }

    @Test("a subscription that the server does not permit ends with its error")
    func refused() async throws {
        let buffer = SubscriptionBuffer(limits: NATSBufferLimits())
        buffer.finish(.failure(.notPermitted("x")))
        buffer.finish(.success(()))
        await #expect(throws: NATSError.notPermitted("x")) { try await buffer.next() }
    }
}
