import Testing

@testable import FreshetSystemSignals

@Suite("Two session snapshots")
struct SessionChangeTests {
    private func snapshot(_ sessions: LoginSession...) -> SessionSnapshot {
        SessionSnapshot(sessions: Dictionary(uniqueKeysWithValues: sessions.map { (sessionPath($0.id), $0) }))
    }

    private func session(_ id: String = "3", active: Bool = true, locked: Bool = false) -> LoginSession {
        logindSession(id, active: active, locked: locked).session
    }

    @Test("a session that became active, or is new and active, has an arrival, locked or not")
    func becameActive() {
        let arrivals = ["session 3 of alice became active"]
        #expect(SessionChange(from: snapshot(session(active: false)), to: snapshot(session())).arrivals == arrivals)
        #expect(SessionChange(from: snapshot(), to: snapshot(session())).arrivals == arrivals)
        #expect(SessionChange(from: snapshot(), to: snapshot(session(locked: true))).arrivals == arrivals)
        let wasLocked = snapshot(session(active: false, locked: true))
        #expect(SessionChange(from: wasLocked, to: snapshot(session())).arrivals == arrivals)
    }

    @Test("a session that is unlocked while it is active has an arrival")
    func unlocked() {
        let locked = snapshot(session(locked: true))
        #expect(SessionChange(from: locked, to: snapshot(session())).arrivals == ["session 3 of alice was unlocked"])
        let behind = snapshot(session(active: false, locked: true))
        #expect(SessionChange(from: behind, to: snapshot(session(active: false))).arrivals == [])
    }

    @Test("a lock, a switch to the background and an end are not arrivals")
    func nothing() {
        let before = snapshot(session())
        for after in [
            before, snapshot(session(locked: true)), snapshot(session(active: false)), snapshot(),
        ] {
            #expect(SessionChange(from: before, to: after).arrivals == [])
        }
        #expect(SessionChange(from: snapshot(), to: snapshot(session(active: false))).arrivals == [])
    }

    @Test("each of several sessions has an arrival")
    func several() {
        let delta = SessionChange(from: snapshot(session("3")), to: snapshot(session("3"), session("5"), session("4")))
        #expect(delta.arrivals == ["session 4 of alice became active", "session 5 of alice became active"])
    }
}

@Suite("The tracked sessions")
struct SessionMachineTests {
    /// A machine with these sessions from the start.
    private func machine(
        _ scope: SessionScope = .local, _ sessions: LogindMessage.Properties...
    ) -> SessionMachine {
        var machine = SessionMachine(scope)
        #expect(machine.logindBecame(.received(sender: ":1.1")) == .init(lists: true))
        relist(&machine, sessions, arrivals: [])
        return machine
    }

    /// Replies to a listing.
    private func relist(
        _ machine: inout SessionMachine, _ sessions: [LogindMessage.Properties], arrivals: [String]
    ) {
        let rows = sessions.map {
            LogindMessage.Row(path: sessionPath($0.session.id), userID: $0.session.userID)
        }
        var received = machine.listed(rows, listing: machine.listing).arrivals
        for session in sessions {
            received += machine.answered(sessionPath(session.session.id), session, listing: machine.listing).arrivals
        }
        #expect(received == arrivals)
        #expect(machine.fact.logind == .available)
    }

    @Test("messages that fire nothing are counted, and replies to a listing are not")
    func minor() {
        var machine = machine(.local, logindSession("3", active: true))
        #expect(machine.minor == 0)
        let path = sessionPath("3")
        #expect(machine.changed(path, LogindMessage.Change(isLocked: true)).arrivals == [])
        #expect(machine.minor == 1)
        #expect(machine.changed(path, LogindMessage.Change(isLocked: false)).arrivals.count == 1)
        #expect(machine.minor == 1)
        // Idle hints and the like.
        #expect(machine.changed(path, LogindMessage.Change()) == .init())
        #expect(machine.minor == 2)
        #expect(machine.removed(path).arrivals == [])
        #expect(machine.minor == 3)
        // A new session's properties are requested; the reply shows whether it counts, or is gone.
        #expect(machine.added(sessionPath("4")).requests == [sessionPath("4")])
        #expect(machine.minor == 3)
        #expect(machine.answered(sessionPath("4"), nil, listing: machine.listing).arrivals == [])
        #expect(machine.minor == 4)
    }

    @Test("the first result is the initial state; later changes fire")
    func start() {
        var machine = machine(.local, logindSession("3", active: true))
        #expect(machine.fact.description == "session 3 of alice active, unlocked")
        let path = sessionPath("3")
        #expect(machine.changed(path, .init(isLocked: true)) == .init())
        #expect(machine.fact.description == "session 3 of alice active, locked")
        #expect(machine.changed(path, .init(isLocked: false)) == .init(arrivals: ["session 3 of alice was unlocked"]))
        #expect(machine.changed(path, .init(isLocked: false)) == .init())
        #expect(machine.changed(path, .init(isActive: false)) == .init())
        #expect(machine.changed(path, .init(isActive: true)) == .init(arrivals: ["session 3 of alice became active"]))
        #expect(machine.removed(path) == .init())
        #expect(machine.fact.description == "no session")
    }

    @Test("a new session's properties are requested; changes in the meantime are in the reply")
    func added() {
        var machine = machine()
        let path = sessionPath("4")
        #expect(machine.added(path) == .init(requests: [path]))
        #expect(machine.added(path) == .init())
        #expect(machine.changed(path, .init(isActive: true)) == .init())
        let answer = machine.answered(path, logindSession("4", active: true), listing: machine.listing)
        #expect(answer == .init(arrivals: ["session 4 of alice became active"]))
        // A session that ended before its reply.
        let gone = sessionPath("5")
        #expect(machine.added(gone) == .init(requests: [gone]))
        #expect(machine.answered(gone, nil, listing: machine.listing) == .init())
        #expect(machine.removed(gone) == .init())
        #expect(machine.fact.sessions.count == 1)
    }

    @Test(
        "remote sessions and those of greeters, services and other users do not count",
        arguments: [
            logindSession("4", active: true, remote: true), logindSession("4", active: true, class: "greeter"),
            logindSession("4", active: true, class: "background"),
            logindSession("4", of: "bob", user: 1_001, active: true),
        ])
    func others(_ other: LogindMessage.Properties) {
        var machine = machine(.user(1_000))
        let path = sessionPath("4")
        #expect(machine.added(path) == .init(requests: [path]))
        #expect(machine.answered(path, other, listing: machine.listing) == .init())
        #expect(machine.changed(path, .init(isActive: true)) == .init())
        #expect(machine.changed(path, .init()) == .init())
        #expect(machine.fact.sessions == [])
        // A session with a changed class is requested again.
        #expect(machine.changed(path, .init(isVague: true)) == .init(requests: [path]))
        let promoted = machine.answered(path, logindSession("4", active: true), listing: machine.listing)
        #expect(promoted.arrivals == ["session 4 of alice became active"])
    }

    @Test("after a loss all sessions are listed again, and an arrival in the meantime fires once")
    func lost() {
        var machine = machine(.local, logindSession("3", active: true), logindSession("4"))
        #expect(machine.logindBecame(.missing(reason: "no bus")) == .init())
        #expect(machine.fact.logind == .unavailable(reason: "no bus") && machine.fact.sessions.count == 2)
        #expect(machine.logindBecame(.missing(reason: "no bus")) == .init())
        #expect(machine.logindBecame(.received(sender: ":1.2")) == .init(lists: true))
        relist(
            &machine, [logindSession("3", active: true), logindSession("4", active: true)],
            arrivals: ["session 4 of alice became active"])
        // Another logind process, without a message in between.
        #expect(machine.logindBecame(.received(sender: ":1.3")) == .init(lists: true))
        relist(&machine, [logindSession("3", active: true), logindSession("4", active: true)], arrivals: [])
    }

    @Test("without logind there was no session: later results fire")
    func late() {
        var machine = SessionMachine(.local)
        #expect(machine.logindBecame(.missing(reason: "no bus")) == .init())
        #expect(machine.logindBecame(.pending) == .init())
        #expect(machine.logindBecame(.received(sender: ":1.2")) == .init(lists: true))
        relist(&machine, [logindSession("3", active: true)], arrivals: ["session 3 of alice became active"])
    }

    @Test("replies of an interrupted listing are void")
    func overtaken() {
        var machine = machine(.local, logindSession("3"))
        let path = sessionPath("3")
        _ = machine.logindBecame(.received(sender: ":1.2"))
        let old = machine.listing
        #expect(machine.listed([.init(path: path, userID: 1_000)], listing: old).requests == [path])
        _ = machine.logindBecame(.missing(reason: "no bus"))
        _ = machine.logindBecame(.received(sender: ":1.3"))
        #expect(machine.answered(path, logindSession("3", active: true), listing: old) == .init())
        #expect(machine.listed([], listing: old) == .init())
        relist(&machine, [logindSession("3")], arrivals: [])
    }

    @Test("a refused list is reported, and does not fire later than necessary")
    func refused() {
        var machine = SessionMachine(.local)
        _ = machine.logindBecame(.received(sender: ":1.1"))
        #expect(machine.listed(nil, reason: "denied", listing: machine.listing) == .init())
        #expect(machine.fact.logind == .unavailable(reason: "denied"))
        #expect(machine.added(sessionPath("3")) == .init())
    }

    @Test("properties are requested for a limited number of sessions at a time, and for all in the end")
    func limit() {
        var machine = SessionMachine(.local)
        _ = machine.logindBecame(.received(sender: ":1.1"))
        let count = SessionMachine.maximumRequests * 2 + 1
        let paths = (0..<count).map { sessionPath("\($0)") }
        var requested = machine.listed(paths.map { .init(path: $0, userID: 1_000) }, listing: machine.listing).requests
        #expect(requested == Array(paths.prefix(SessionMachine.maximumRequests)))
        var index = 0
        while index < requested.count {
            let session = logindSession("\(index)")
            requested += machine.answered(requested[index], session, listing: machine.listing).requests
            index += 1
            #expect(requested.count - index <= SessionMachine.maximumRequests)
        }
        #expect(requested == paths && machine.fact.sessions.count == count)
        #expect(machine.fact.description.hasSuffix("; and \(count - SessionFact.namedSessions) more"))
    }
}
