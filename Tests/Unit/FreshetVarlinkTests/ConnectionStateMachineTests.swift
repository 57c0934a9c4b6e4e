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

    @Test("a call with the same bytes as the last one is served as that one, and a longer or shorter one as itself")
    func sameBytes() {
        var machine = machine()
        for _ in 0..<2 {
            for (text, call) in [
                (first, VarlinkCallMessage(method: "a.B")), (oneway, VarlinkCallMessage(method: "a.C", oneway: true)),
                (first + " ", VarlinkCallMessage(method: "a.B")),
                (#"{"method":"a.D"}"#, VarlinkCallMessage(method: "a.D")),
            ] {
                // Twice in one read, and once in parts.
                machine.received(bytes(text) + bytes(text) + Array(text.utf8.prefix(5)))
                machine.received(Array(bytes(text).dropFirst(5)))
                for _ in 0..<3 {
                    #expect(machine.next() == .serve(call))
                    machine.callEnded(at: start)
                }
                #expect(machine.next() == .read)
            }
        }
        machine.received(bytes(first) + bytes(oneway))
        #expect(machine.hangUp() == .readOn)
        #expect(machine.next() == .serve(VarlinkCallMessage(method: "a.C", oneway: true)))
    }

    @Test("after a client closes its sending side, all its calls are served, then the connection closes")
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

    @Test("a client that goes away during a call cancels the call")
    func hangUpDuringCall() {
        var machine = machine()
        machine.received(bytes(first) + bytes(first))
        _ = machine.next()
        #expect(machine.hangUp() == .cancel)
        machine.callEnded(at: start)
        #expect(machine.next() == .close)
    }

    @Test("a client that goes away during a oneway call cancels nothing; only its further oneway calls are served")
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

    @Test("an invalid envelope is answered with the member's name, and the next call is served")
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

    @Test("a message that is not a JSON object closes the connection", arguments: ["", "GET / HTTP/1.1", "{", "[]"])
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

    @Test("silence counts from the end of the last call, and not during a call")
    func silence() {
        var machine = machine()
        machine.received(bytes(first))
        _ = machine.next()
        #expect(machine.silenceTimerExpired(at: start + .seconds(100)) == .none)
        machine.callEnded(at: start + .seconds(100))
        #expect(machine.silenceTimerExpired(at: start + .seconds(110)) == .checkAgain(at: start + .seconds(130)))
        // Bytes without a complete call count as silence too.
        machine.received(Array("{".utf8))
        #expect(machine.silenceTimerExpired(at: start + .seconds(130)) == .close)
        #expect(machine.next() == .close)
    }

    @Test("an unread last reply counts as silence from when the kernel takes no more of its bytes")
    func unfetchedReply() {
        var machine = machine()
        machine.received(bytes(first))
        _ = machine.next()
        machine.answers()
        #expect(machine.silenceTimerExpired(at: start + .seconds(90)) == .checkAgain(at: start + .seconds(120)))
        #expect(machine.writeStalled(leaving: 9, at: start + .seconds(100)) == start + .seconds(130))
        // A second stall without progress continues the same silence.
        #expect(machine.writeStalled(leaving: 9, at: start + .seconds(110)) == start + .seconds(130))
        machine.writeWentOn()
        #expect(machine.writeStalled(leaving: 9, at: start + .seconds(125)) == start + .seconds(155))
        #expect(machine.silenceTimerExpired(at: start + .seconds(130)) == .checkAgain(at: start + .seconds(155)))
        #expect(machine.silenceTimerExpired(at: start + .seconds(155)) == .close)
        #expect(machine.next() == .close)
    }

    @Test("a stream whose client does not read ends, and a stream without events goes on")
    func unreadStream() throws {
        var machine = machine()
        machine.received(bytes(first))
        _ = machine.next()
        machine.follows(at: start)
        #expect(machine.silenceTimerExpired(at: start + .seconds(1_000)) == .none)
        let stalled = start + .seconds(1_000)
        #expect(machine.writeStalled(leaving: 4_096, at: stalled) == stalled + .seconds(30))
        #expect(machine.pendingOutput == 4_096)
        // The client reads a part of the reply, and then stops.
        machine.writeWentOn()
        #expect(machine.pendingOutput == 0)
        #expect(machine.writeStalled(leaving: 1_024, at: stalled + .seconds(20)) == stalled + .seconds(50))
        #expect(machine.silenceTimerExpired(at: stalled + .seconds(30)) == .checkAgain(at: stalled + .seconds(50)))
        // next() during a call would end the process.
        try #require(machine.silenceTimerExpired(at: stalled + .seconds(50)) == .close)
        #expect(machine.pendingOutput == 0)
        #expect(machine.next() == .close)
    }

    @Test("a call that follows events keeps this state until it ends")
    func following() {
        var machine = machine()
        #expect(machine.followingSince == nil)
        machine.received(bytes(first) + bytes(first))
        _ = machine.next()
        #expect(machine.followingSince == nil)
        machine.follows(at: start + .seconds(1))
        machine.follows(at: start + .seconds(2))
        #expect(machine.followingSince == start + .seconds(1))
        machine.callEnded(at: start + .seconds(3))
        #expect(machine.followingSince == nil)
        _ = machine.next()
        #expect(machine.followingSince == nil)
    }

    @Test("the server waits for a client without a call in progress, and for a client that does not read")
    func waiting() {
        var machine = machine()
        #expect(machine.waitingSince == start)
        machine.received(bytes(first))
        _ = machine.next()
        #expect(machine.waitingSince == nil)
        _ = machine.writeStalled(leaving: 9, at: start + .seconds(5))
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
    private typealias Client = ConnectionLimiter.Client
    private typealias Activity = ConnectionLimiter.Activity

    @Test("clients get at most a quarter of the process's descriptors, and root still gets a connection")
    func fewDescriptors() {
        let usual = VarlinkServer.Limits()
        #expect(usual.with(descriptors: 16_384) == usual && usual.with(descriptors: .max) == usual)
        #expect(usual.with(descriptors: 1_024) == usual)
        for descriptors in [UInt64(0), 16, 64, 128, 1_023] {
            let limits = usual.with(descriptors: descriptors)
            #expect(limits.clients == max(4, Int(descriptors / 4)))
            var limiter = ConnectionLimiter(limits)
            for user in 1...300 { _ = limiter.admit(.init(user: UInt32(user), rank: .unprivileged)) }
            #expect((1..<limits.clients).contains(limiter.count))
            let isRootAdmitted = limiter.admit(.init(user: 0, rank: .root))
            #expect(isRootAdmitted)
        }
    }

    private var limits: VarlinkServer.Limits {
        var limits = VarlinkServer.Limits()
        limits.clients = 12
        limits.clientsPerUser = 4
        limits.clientsKeptForPrivileged = 4
        limits.clientsKeptForRoot = 2
        return limits
    }

    private let root = Client(user: 0, rank: .root)
    private let member = Client(user: 500, rank: .privileged)
    private func user(_ user: UInt32) -> Client { Client(user: user, rank: .unprivileged) }

    /// A server in which one client after the other arrives, as ``VarlinkServer`` treats them.
    private struct ArrivalSimulation {
        var limiter: ConnectionLimiter
        var occupants: [ConnectionLimiter.Occupant] = []
        let start = ContinuousClock.Instant.now
        var now: ContinuousClock.Instant

        init(_ limits: VarlinkServer.Limits) {
            limiter = ConnectionLimiter(limits)
            now = start
        }

        /// Returns whether the client was admitted, and which other client was displaced.
        mutating func arrive(
            _ client: Client, _ activity: (ContinuousClock.Instant) -> Activity = { .following(since: $0) }
        ) -> (isAdmitted: Bool, displaced: Client?) {
            now += .milliseconds(10)
            var displaced: Client?
            if !limiter.admit(client) {
                guard let index = limiter.displaced(by: client, among: occupants, now: now) else { return (false, nil) }
                let other = occupants.remove(at: index).client
                displaced = other
                limiter.leave(other)
                guard limiter.admit(client) else { return (false, displaced) }
            }
            occupants.append(.init(client: client, accepted: now, activity: activity(now)))
            return (true, displaced)
        }

        func count(_ client: Client) -> Int { occupants.count { $0.client == client } }
    }

    @Test("a user has as many clients as the limit, and another user is still admitted")
    func perUser() {
        var limiter = ConnectionLimiter(limits)
        for _ in 0..<4 { #expect(limiter.admit(user(1_000)) == true) }
        #expect(limiter.admit(user(1_000)) == false)
        #expect(limiter.admit(user(1_001)) == true)
        limiter.leave(user(1_000))
        #expect(limiter.admit(user(1_000)) == true)
    }

    @Test("the last free connections are for privileged clients, and the very last for root")
    func reserved() {
        var limiter = ConnectionLimiter(limits)
        for number: UInt32 in 0..<8 { #expect(limiter.admit(user(1_000 + number)) == true) }
        #expect(limiter.admit(user(2_000)) == false)
        for _ in 0..<2 { #expect(limiter.admit(member) == true) }
        #expect(limiter.admit(member) == false)
        for _ in 0..<2 { #expect(limiter.admit(root) == true) }
        #expect(limiter.admit(root) == false)
        #expect(limiter.count == 12)
    }

    @Test("an attacker with many users keeps out no newcomer and no privileged client")
    func manyUsers() {
        var arrivals = ArrivalSimulation(limits)
        for number: UInt32 in 0..<100 { #expect(arrivals.arrive(user(100_000 + number)).isAdmitted) }
        // Each user holds one connection, and an honest newcomer is admitted, whatever the others do.
        #expect(arrivals.arrive(user(1_000)).isAdmitted)
        for client in [member, member, root, root, root] { #expect(arrivals.arrive(client).isAdmitted) }
        #expect(arrivals.count(member) == 2 && arrivals.count(root) == 3)
        for number: UInt32 in 0..<100 { _ = arrivals.arrive(user(200_000 + number)) }
        #expect(arrivals.count(member) == 2 && arrivals.count(root) == 3)
        // The same holds if their calls never end.
        var busy = ArrivalSimulation(limits)
        for number: UInt32 in 0..<100 { #expect(busy.arrive(user(100_000 + number)) { _ in .working }.isAdmitted) }
        for client in [user(1_000), member, root] { #expect(busy.arrive(client).isAdmitted) }
    }

    @Test("the user with the most connections gives way, and users with few keep theirs")
    func mostConnections() {
        var arrivals = ArrivalSimulation(limits)
        let (honest, other) = (user(1_000), user(1_001))
        #expect(arrivals.arrive(honest).isAdmitted)
        for number: UInt32 in 0..<2 {
            for _ in 0..<4 { _ = arrivals.arrive(user(100_000 + number)) { _ in .working } }
        }
        #expect(arrivals.count(honest) == 1)
        #expect(arrivals.arrive(other).isAdmitted && arrivals.arrive(other).isAdmitted)
        #expect(arrivals.count(honest) == 1 && arrivals.count(other) == 2)
        // Repeated attempts change nothing.
        for _ in 0..<50 { for number: UInt32 in 0..<2 { _ = arrivals.arrive(user(100_000 + number)) } }
        #expect(arrivals.count(honest) == 1 && arrivals.count(other) == 2)
        #expect(arrivals.occupants.count == 8)
    }

    @Test("a user with as many connections as the others displaces none of them")
    func equalConnections() {
        var arrivals = ArrivalSimulation(limits)
        let (honest, attacker) = (user(1_000), user(100_000))
        for _ in 0..<3 { _ = arrivals.arrive(honest) }
        for _ in 0..<3 { _ = arrivals.arrive(attacker) { _ in .working } }
        for _ in 0..<2 { _ = arrivals.arrive(user(100_001)) { _ in .working } }
        #expect(!arrivals.arrive(attacker) { _ in .working }.isAdmitted)
        #expect(arrivals.count(honest) == 3 && arrivals.count(attacker) == 3)
    }

    @Test("a user's waiting connection gives way first, then a follower, but no working call to the same user")
    func order() {
        var arrivals = ArrivalSimulation(limits)
        let client = user(1_000)
        _ = arrivals.arrive(client) { _ in .working }
        _ = arrivals.arrive(client)
        _ = arrivals.arrive(client) { .waiting(since: $0) }
        _ = arrivals.arrive(client) { _ in .abandoned }
        for activity in [Activity.abandoned, .waiting(since: arrivals.now), .following(since: arrivals.now)] {
            let before = arrivals.occupants
            #expect(arrivals.arrive(client) { _ in .working }.isAdmitted)
            let gone = before.filter { !arrivals.occupants.contains($0) }.map(\.activity)
            switch (gone.first, activity) {
            case (.abandoned, .abandoned), (.waiting, .waiting), (.following, .following): break
            default: Issue.record("\(gone) instead of \(activity)")
            }
        }
        #expect(!arrivals.arrive(client).isAdmitted)
        // A newcomer of another user is admitted.
        for number: UInt32 in 0..<4 { #expect(arrivals.arrive(user(2_000 + number)) { _ in .working }.isAdmitted) }
        #expect(arrivals.arrive(user(3_000)).displaced == client)
    }

    @Test("a newcomer has time for its first call: the latest connections are the last to give way")
    func settling() {
        var arrivals = ArrivalSimulation(limits)
        for number: UInt32 in 0..<8 { _ = arrivals.arrive(user(100_000 + number)) { _ in .working } }
        arrivals.now += .seconds(2)
        // The server has not read its first call yet.
        let honest = user(1_000)
        #expect(arrivals.arrive(honest) { .waiting(since: $0) }.displaced == user(100_000))
        for number: UInt32 in 0..<7 {
            #expect(arrivals.arrive(user(200_000 + number)) { _ in .working }.isAdmitted)
            #expect(arrivals.count(honest) == 1)
        }
    }

    @Test("a privileged client displaces unprivileged clients before clients of the same rank")
    func privileged() {
        var arrivals = ArrivalSimulation(limits)
        for _ in 0..<4 { _ = arrivals.arrive(Client(user: 501, rank: .privileged)) }
        for number: UInt32 in 0..<6 { _ = arrivals.arrive(user(1_000 + number)) { _ in .working } }
        for _ in 0..<4 { #expect(arrivals.arrive(member).displaced?.rank == .unprivileged) }
        // The limit for one user holds for a privileged client too; its oldest follower gives way.
        #expect(arrivals.arrive(member).displaced == member)
        for _ in 0..<4 { #expect(arrivals.arrive(root).isAdmitted) }
        #expect(arrivals.occupants.allSatisfy { $0.client.rank != .unprivileged })
        #expect(arrivals.arrive(root).displaced?.rank == .privileged)
        #expect(!arrivals.arrive(user(1_000)).isAdmitted)
    }

    @Test("the limits match the documentation")
    func defaults() {
        let limits = VarlinkServer.Limits()
        #expect(limits.clients == 256 && limits.clientsPerUser == 32)
        #expect(limits.clientsKeptForPrivileged == 32 && limits.clientsKeptForRoot == 8)
        #expect(limits.messageBytes == 65_536 && limits.silence == .seconds(30))
        #expect(limits.pendingOutputBytes == 16 << 20)
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

    @Test("an invalid description is rejected", arguments: ["", "hello", "interface", "interface a.b method X"])
    func errors(_ text: String) {
        #expect(throws: InterfaceDescription.ValidationError.self) { try InterfaceDescription(parsing: text) }
    }

    @Test("a handler without a described method is an error")
    func strayHandler() {
        #expect(throws: VarlinkInterface.ValidationError.self) {
            try VarlinkInterface(
                description: "interface a.b\nmethod One() -> ()\n", methods: ["Two": { _ in .none }])
        }
    }
}
