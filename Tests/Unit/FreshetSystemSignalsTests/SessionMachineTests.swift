import Testing

@testable import FreshetSystemSignals

@Suite("Two snapshots of sessions")
struct SessionChangeTests {
    private func snapshot(_ sessions: LoginSession...) -> SessionSnapshot {
        SessionSnapshot(sessions: Dictionary(uniqueKeysWithValues: sessions.map { (sessionPath($0.id), $0) }))
    }

    private func session(_ id: String = "3", active: Bool = true, locked: Bool = false) -> LoginSession {
        logindSession(id, active: active, locked: locked).session
    }

    @Test("one that became active, or is there and is, has arrived, locked or not")
    func becameActive() {
        let news = ["session 3 of alice became active"]
        #expect(SessionChange(from: snapshot(session(active: false)), to: snapshot(session())).arrivals == news)
        #expect(SessionChange(from: snapshot(), to: snapshot(session())).arrivals == news)
        #expect(SessionChange(from: snapshot(), to: snapshot(session(locked: true))).arrivals == news)
        let wasLocked = snapshot(session(active: false, locked: true))
        #expect(SessionChange(from: wasLocked, to: snapshot(session())).arrivals == news)
    }

    @Test("one whose lock is taken off while it is active was unlocked")
    func unlocked() {
        let locked = snapshot(session(locked: true))
        #expect(SessionChange(from: locked, to: snapshot(session())).arrivals == ["session 3 of alice was unlocked"])
        let behind = snapshot(session(active: false, locked: true))
        #expect(SessionChange(from: behind, to: snapshot(session(active: false))).arrivals == [])
    }

    @Test("a lock, going to the back, an end, and nothing are no arrival")
    func nothing() {
        let before = snapshot(session())
        for after in [
            before, snapshot(session(locked: true)), snapshot(session(active: false)), snapshot(),
        ] {
            #expect(SessionChange(from: before, to: after).arrivals == [])
        }
        #expect(SessionChange(from: snapshot(), to: snapshot(session(active: false))).arrivals == [])
    }

    @Test("each of several is one")
    func several() {
        let delta = SessionChange(from: snapshot(session("3")), to: snapshot(session("3"), session("5"), session("4")))
        #expect(delta.arrivals == ["session 4 of alice became active", "session 5 of alice became active"])
    }
}

@Suite("What is kept of sessions")
struct SessionMachineTests {
    /// A machine that has heard of these sessions from the start.
    private func machine(
        _ scope: SessionScope = .local, _ sessions: LogindMessage.Properties...
    ) -> SessionMachine {
        var machine = SessionMachine(scope)
        #expect(machine.logindBecame(.heard(sender: ":1.1")) == .init(lists: true))
        relist(&machine, sessions, arrivals: [])
        return machine
    }

    /// Answers a listing.
    private func relist(
        _ machine: inout SessionMachine, _ sessions: [LogindMessage.Properties], arrivals: [String]
    ) {
        let rows = sessions.map {
            LogindMessage.Row(path: sessionPath($0.session.id), userID: $0.session.userID)
        }
        var heard = machine.listed(rows, listing: machine.listing).arrivals
        for session in sessions {
            heard += machine.answered(sessionPath(session.session.id), session, listing: machine.listing).arrivals
        }
        #expect(heard == arrivals)
        #expect(machine.fact.logind == .available)
    }

    @Test("what fires nothing is counted, and answers to a listing are not")
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
        // A new one is asked for; that it counts, or is gone, comes with the answer.
        #expect(machine.added(sessionPath("4")).asks == [sessionPath("4")])
        #expect(machine.minor == 3)
        #expect(machine.answered(sessionPath("4"), nil, listing: machine.listing).arrivals == [])
        #expect(machine.minor == 4)
    }

    @Test("what is found at the start is how it is; what changes is news")
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

    @Test("a new session is asked for; what changes meanwhile is in its answer")
    func added() {
        var machine = machine()
        let path = sessionPath("4")
        #expect(machine.added(path) == .init(asks: [path]))
        #expect(machine.added(path) == .init())
        #expect(machine.changed(path, .init(isActive: true)) == .init())
        let answer = machine.answered(path, logindSession("4", active: true), listing: machine.listing)
        #expect(answer == .init(arrivals: ["session 4 of alice became active"]))
        // One that has gone before it answered.
        let gone = sessionPath("5")
        #expect(machine.added(gone) == .init(asks: [gone]))
        #expect(machine.answered(gone, nil, listing: machine.listing) == .init())
        #expect(machine.removed(gone) == .init())
        #expect(machine.fact.sessions.count == 1)
    }

    @Test(
        "other machines', greeters', services' and other users' sessions do not count",
        arguments: [
            logindSession("4", active: true, remote: true), logindSession("4", active: true, class: "greeter"),
            logindSession("4", active: true, class: "background"),
            logindSession("4", of: "bob", user: 1_001, active: true),
        ])
    func others(_ other: LogindMessage.Properties) {
        var machine = machine(.user(1_000))
        let path = sessionPath("4")
        #expect(machine.added(path) == .init(asks: [path]))
        #expect(machine.answered(path, other, listing: machine.listing) == .init())
        #expect(machine.changed(path, .init(isActive: true)) == .init())
        #expect(machine.changed(path, .init()) == .init())
        #expect(machine.fact.sessions == [])
        // One that is promoted is asked for again.
        #expect(machine.changed(path, .init(isVague: true)) == .init(asks: [path]))
        let promoted = machine.answered(path, logindSession("4", active: true), listing: machine.listing)
        #expect(promoted.arrivals == ["session 4 of alice became active"])
    }

    @Test("after a loss all are listed anew, and who arrived meanwhile fires once")
    func lost() {
        var machine = machine(.local, logindSession("3", active: true), logindSession("4"))
        #expect(machine.logindBecame(.missing(reason: "no bus")) == .init())
        #expect(machine.fact.logind == .unavailable(reason: "no bus") && machine.fact.sessions.count == 2)
        #expect(machine.logindBecame(.missing(reason: "no bus")) == .init())
        #expect(machine.logindBecame(.heard(sender: ":1.2")) == .init(lists: true))
        relist(
            &machine, [logindSession("3", active: true), logindSession("4", active: true)],
            arrivals: ["session 4 of alice became active"])
        // Another logind, of which nothing was heard in between.
        #expect(machine.logindBecame(.heard(sender: ":1.3")) == .init(lists: true))
        relist(&machine, [logindSession("3", active: true), logindSession("4", active: true)], arrivals: [])
    }

    @Test("without logind there was no session: what is found later is news")
    func late() {
        var machine = SessionMachine(.local)
        #expect(machine.logindBecame(.missing(reason: "no bus")) == .init())
        #expect(machine.logindBecame(.pending) == .init())
        #expect(machine.logindBecame(.heard(sender: ":1.2")) == .init(lists: true))
        relist(&machine, [logindSession("3", active: true)], arrivals: ["session 3 of alice became active"])
    }

    @Test("answers of a listing that was overtaken are void")
    func overtaken() {
        var machine = machine(.local, logindSession("3"))
        let path = sessionPath("3")
        _ = machine.logindBecame(.heard(sender: ":1.2"))
        let old = machine.listing
        #expect(machine.listed([.init(path: path, userID: 1_000)], listing: old).asks == [path])
        _ = machine.logindBecame(.missing(reason: "no bus"))
        _ = machine.logindBecame(.heard(sender: ":1.3"))
        #expect(machine.answered(path, logindSession("3", active: true), listing: old) == .init())
        #expect(machine.listed([], listing: old) == .init())
        relist(&machine, [logindSession("3")], arrivals: [])
    }

    @Test("a list that is refused is said, and no reason to fire later than need be")
    func refused() {
        var machine = SessionMachine(.local)
        _ = machine.logindBecame(.heard(sender: ":1.1"))
        #expect(machine.listed(nil, reason: "denied", listing: machine.listing) == .init())
        #expect(machine.fact.logind == .unavailable(reason: "denied"))
        #expect(machine.added(sessionPath("3")) == .init())
    }

    @Test("no more than so many are asked for at a time, and all in the end")
    func limit() {
        var machine = SessionMachine(.local)
        _ = machine.logindBecame(.heard(sender: ":1.1"))
        let count = SessionMachine.maximumQuestions * 2 + 1
        let paths = (0..<count).map { sessionPath("\($0)") }
        var asked = machine.listed(paths.map { .init(path: $0, userID: 1_000) }, listing: machine.listing).asks
        #expect(asked == Array(paths.prefix(SessionMachine.maximumQuestions)))
        var index = 0
        while index < asked.count {
            asked += machine.answered(asked[index], logindSession("\(index)"), listing: machine.listing).asks
            index += 1
            #expect(asked.count - index <= SessionMachine.maximumQuestions)
        }
        #expect(asked == paths && machine.fact.sessions.count == count)
        #expect(machine.fact.description.hasSuffix("; and \(count - SessionFact.namedSessions) more"))
    }
}
