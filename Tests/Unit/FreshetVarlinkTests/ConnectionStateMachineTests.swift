import Testing

@testable import FreshetVarlink

@Suite struct ConnectionStateMachineTests {
    private let start = ContinuousClock.Instant.now

    private func machine(limit: Int = 64) -> ConnectionStateMachine {
        ConnectionStateMachine(messageLimit: limit, silence: .seconds(30), now: start)
    }

    private func bytes(_ text: String) -> [UInt8] { Array((text + "\0").utf8) }

    private let first = #"{"method":"a.B"}"#
    private let oneway = #"{"method":"a.C","oneway":true}"#

    @Test("calls are served one after the other, in their order")
    func order() {
        var machine = machine()
        #expect(machine.next() == .read)
        machine.received(bytes(first) + bytes(oneway))
        #expect(machine.next() == .serve(VarlinkCallMessage(method: "a.B")))
        #expect(machine.isCalling)
        machine.callEnded(at: start)
        #expect(machine.next() == .serve(VarlinkCallMessage(method: "a.C", oneway: true)))
        machine.callEnded(at: start)
        #expect(machine.next() == .read)
    }

    @Test("a client that has closed its sending side is served to the last call, then the connection closes")
    func halfClosed() {
        var machine = machine()
        machine.received(bytes(first) + bytes(first) + Array("{\"met".utf8))
        machine.receivedEnd()
        for _ in 0..<2 {
            #expect(machine.next() == .serve(VarlinkCallMessage(method: "a.B")))
            machine.callEnded(at: start)
        }
        #expect(machine.next() == .close)
    }

    @Test("going away during a call cancels it")
    func hangUpDuringCall() {
        var machine = machine()
        machine.received(bytes(first) + bytes(first))
        _ = machine.next()
        #expect(machine.hangUp() == .cancel)
        machine.callEnded(at: start)
        #expect(machine.next() == .close)
    }

    @Test("going away during a call that wants no answer cancels nothing; of what follows only such calls are begun")
    func hangUpDuringOneway() {
        var machine = machine()
        machine.received(bytes(oneway) + bytes(first) + bytes(oneway))
        _ = machine.next()
        #expect(machine.hangUp() == .readOn)
        machine.callEnded(at: start)
        #expect(machine.next() == .serve(VarlinkCallMessage(method: "a.C", oneway: true)))
        machine.callEnded(at: start)
        machine.receivedEnd()
        #expect(machine.next() == .close)
    }

    @Test("a wrong envelope is answered with the member's name, and the next call is served")
    func wrongEnvelope() {
        var machine = machine()
        machine.received(bytes(#"{"methode":"a.B"}"#) + bytes(first))
        #expect(machine.next() == .refuse(.invalidParameter("methode")))
        #expect(machine.next() == .serve(VarlinkCallMessage(method: "a.B")))
    }

    @Test("an upgrade to another protocol is refused")
    func upgrade() {
        var machine = machine()
        machine.received(bytes(#"{"method":"a.B","upgrade":true}"#))
        #expect(machine.next() == .refuse(.methodNotImplemented("a.B")))
        #expect(machine.next() == .read)
    }

    @Test("what is not JSON closes the connection", arguments: ["", "GET / HTTP/1.1", "{", "[]"])
    func garbage(_ text: String) {
        var machine = machine()
        machine.received(bytes(text) + bytes(first))
        #expect(machine.next() == .close)
        #expect(machine.next() == .close)
    }

    @Test("a message of the limit is served, one byte more closes the connection")
    func limit() {
        let text = first + String(repeating: " ", count: 64 - first.utf8.count)
        var fits = machine()
        fits.received(bytes(text))
        #expect(fits.next() == .serve(VarlinkCallMessage(method: "a.B")))
        var over = machine()
        over.received(Array((text + " ").utf8))
        #expect(over.next() == .close)
    }

    @Test("silence counts from the end of the last call, and not during one")
    func silence() {
        var machine = machine()
        machine.received(bytes(first))
        _ = machine.next()
        #expect(machine.silenceTimerExpired(at: start + .seconds(100)) == .none)
        machine.callEnded(at: start + .seconds(100))
        #expect(machine.silenceTimerExpired(at: start + .seconds(110)) == .lookAgain(at: start + .seconds(130)))
        // Bytes that do not make a call are silence too.
        machine.received(Array("{".utf8))
        #expect(machine.silenceTimerExpired(at: start + .seconds(130)) == .close)
        #expect(machine.next() == .close)
    }

    @Test("a last reply that nobody fetches is silence too, from when the kernel takes no more of it")
    func unfetchedReply() {
        var machine = machine()
        machine.received(bytes(first))
        _ = machine.next()
        machine.answers()
        #expect(machine.silenceTimerExpired(at: start + .seconds(90)) == .lookAgain(at: start + .seconds(120)))
        #expect(machine.writeStalled(at: start + .seconds(100)) == start + .seconds(130))
        // Asked again without having got on, it is the same silence.
        #expect(machine.writeStalled(at: start + .seconds(110)) == start + .seconds(130))
        machine.writeWentOn()
        #expect(machine.writeStalled(at: start + .seconds(125)) == start + .seconds(155))
        #expect(machine.silenceTimerExpired(at: start + .seconds(130)) == .lookAgain(at: start + .seconds(155)))
        #expect(machine.silenceTimerExpired(at: start + .seconds(155)) == .close)
        #expect(machine.next() == .close)
    }

    @Test("a stream that its client does not read is held back, for as long as that takes")
    func unreadStream() {
        var machine = machine()
        machine.received(bytes(first))
        _ = machine.next()
        #expect(machine.writeStalled(at: start) == nil)
        #expect(machine.silenceTimerExpired(at: start + .seconds(1_000)) == .none)
    }

    @Test("the server waits for a client that has no call under way, or does not read")
    func waiting() {
        var machine = machine()
        #expect(machine.waitingSince == start)
        machine.received(bytes(first))
        _ = machine.next()
        #expect(machine.waitingSince == nil)
        _ = machine.writeStalled(at: start + .seconds(5))
        #expect(machine.waitingSince == start + .seconds(5))
        machine.writeWentOn()
        #expect(machine.waitingSince == nil)
        machine.answers()
        #expect(machine.waitingSince == nil)
        machine.callEnded(at: start + .seconds(9))
        #expect(machine.waitingSince == start + .seconds(9))
        machine.stop()
        #expect(machine.waitingSince == nil)
    }

    @Test("a client that goes away while its reply is written ends the connection")
    func hangUpDuringReply() {
        var machine = machine()
        machine.received(bytes(first) + bytes(first))
        _ = machine.next()
        machine.answers()
        #expect(machine.hangUp() == .cancel)
        #expect(machine.next() == .close)
    }
}

@Suite struct ConnectionLimiterTests {
    private var limits: VarlinkServer.Limits {
        var limits = VarlinkServer.Limits()
        limits.clients = 10
        limits.clientsPerUser = 4
        limits.clientsKeptForRoot = 2
        return limits
    }

    @Test("a user has as many clients as the limit, another still finds room")
    func perUser() {
        var census = ConnectionLimiter(limits)
        for _ in 0..<4 { #expect(census.admit(user: 1_000) == true) }
        #expect(census.admit(user: 1_000) == false)
        #expect(census.admit(user: 1_001) == true)
        census.leave(user: 1_000)
        #expect(census.admit(user: 1_000) == true)
    }

    @Test("the last places are root's")
    func keptForRoot() {
        var census = ConnectionLimiter(limits)
        for user in 0..<8 { #expect(census.admit(user: UInt32(1_000 + user)) == true) }
        #expect(census.admit(user: 2_000) == false)
        #expect(census.admit(user: 0) == true)
        #expect(census.admit(user: 0) == true)
        #expect(census.admit(user: 0) == false)
        #expect(census.count == 10)
    }

    @Test("the limits are those that the documentation names")
    func defaults() {
        let limits = VarlinkServer.Limits()
        #expect(limits.clients == 256 && limits.clientsPerUser == 32 && limits.clientsKeptForRoot == 8)
        #expect(limits.messageBytes == 65_536 && limits.silence == .seconds(30))
    }
}

@Suite struct InterfaceDescriptionTests {
    @Test("methods and their parameters are found")
    func methods() throws {
        let description = try InterfaceDescription(
            parsing: """
                # method Comment(no: int) -> ()
                interface a.b
                type T (x: int) # method No() -> ()
                method One(first: ?[]string, second: (inner: int, other: T), third: [string]bool) -> (reply: int)
                method Two()->()
                error E (method: string)
                """)
        #expect(description.name == "a.b")
        #expect(description.methods == ["One": ["first", "second", "third"], "Two": []])
    }

    @Test("a text that is no description is refused", arguments: ["", "hello", "interface", "interface a.b method X"])
    func faults(_ text: String) {
        #expect(throws: InterfaceDescription.ValidationError.self) { try InterfaceDescription(parsing: text) }
    }

    @Test("a handler that is not described is a fault")
    func strayHandler() {
        #expect(throws: VarlinkInterface.ValidationError.self) {
            try VarlinkInterface(
                description: "interface a.b\nmethod One() -> ()\n", methods: ["Two": { _ in .none }])
        }
    }
}
