import FreshetSignals
import TestSupport
import Testing

@testable import FreshetSystemSignals

/// A real bus with a peer that plays logind.
@Suite("The session monitor", .hangLimit)
struct SessionMonitorTests {
    @Test("reports login, lock, unlock, a switch to another session and back, and logout")
    func life() async throws {
        try await BusBed.with { bed in
            try await bed.start()
            let monitor = SessionMonitor(bus: await bed.connection(), scope: .local)
            let logind = try await BusPeer.connected(to: bed.address)
            await logind.setSessions(logindSession("3", active: true), logindSession("4", of: "bob", remote: true))
            // logind is missing at first: later results fire.
            try await monitor.reach { $0.logind == .unavailable(reason: "logind does not run") }
            var causes = monitor.foreground.causes.makeAsyncIterator()
            try await logind.own("org.freedesktop.login1")
            #expect(await causes.next(isolation: nil)?.first?.last.detail == "session 3 of alice became active")
            #expect(monitor.fact.description == "session 3 of alice active, unlocked")

            try await logind.changeSession("3", locked: true)
            try await monitor.reach { $0.description == "session 3 of alice active, locked" }
            try await logind.changeSession("3", locked: false)
            let unlocked = await causes.next(isolation: nil)?.first
            #expect(unlocked?.last.detail == "session 3 of alice was unlocked" && unlocked?.count == 1)

            try await logind.changeSession("3", active: false)
            try await logind.addSession(logindSession("5", of: "carol", user: 1_002, active: true))
            #expect(await causes.next(isolation: nil)?.first?.last.detail == "session 5 of carol became active")
            try await logind.removeSession("5")
            try await logind.changeSession("3", active: true)
            let back = await causes.next(isolation: nil)?.first
            #expect(back?.last.detail == "session 3 of alice became active" && back?.last.number == 4)
            try await logind.removeSession("3")
            try await monitor.reach { $0.sessions.isEmpty }
            await logind.leave()
            try await monitor.reach { $0.logind == .unavailable(reason: "logind does not run") }
        }
    }

    @Test("lists as many sessions as logind allows, and finds the user's own among them")
    func many() async throws {
        try await BusBed.with { bed in
            try await bed.start()
            let logind = try await BusPeer.connected(to: bed.address)
            // SessionsMax= in logind.conf(5).
            let others = (0..<8_191).map { logindSession("o\($0)", of: "somebody", user: 2_000_000_000) }
            await logind.setSessions([logindSession("3", active: true)] + others)
            try await logind.own("org.freedesktop.login1")
            let monitor = SessionMonitor(bus: await bed.connection(), scope: .user(1_000))
            try await monitor.reach { $0.logind == .available && !$0.sessions.isEmpty }
            #expect(monitor.fact.description == "session 3 of alice active, unlocked")
            await logind.leave()
        }
    }

    @Test("does not fire for the initial state, and ignores senders other than logind")
    func start() async throws {
        try await BusBed.with { bed in
            try await bed.start()
            let logind = try await BusPeer.connected(to: bed.address)
            await logind.setSessions(logindSession("3", active: true))
            try await logind.own("org.freedesktop.login1")
            let bus = await bed.connection()
            try await bus.reach { $0 == .connected }
            let monitor = SessionMonitor(bus: bus, scope: .user(1_000))
            var causes = monitor.foreground.causes.makeAsyncIterator()
            try await monitor.reach { $0.sessions.count == 1 }
            let forger = try await BusPeer.connected(to: bed.address)
            await forger.setSessions(logindSession("3", locked: true))
            try await forger.changeSession("3", active: false)
            try await forger.changeSession("3", active: true)
            try await bus.settle()
            try await logind.changeSession("3", active: false)
            try await logind.changeSession("3", active: true)
            #expect(await causes.next(isolation: nil)?.first?.count == 1)
            await forger.leave()
            await logind.leave()
        }
    }

    @Test("lists sessions again after a restart of the bus, and an arrival in the meantime fires once")
    func restarted() async throws {
        try await BusBed.with { bed in
            try await bed.start()
            let first = try await BusPeer.connected(to: bed.address)
            await first.setSessions(logindSession("3", active: true, locked: true), logindSession("4", active: true))
            try await first.own("org.freedesktop.login1")
            let monitor = SessionMonitor(bus: await bed.connection(), scope: .local)
            try await monitor.reach { $0.sessions.count == 2 }
            var causes = monitor.foreground.causes.makeAsyncIterator()
            await bed.stop()
            try await monitor.reach { $0.logind != .available }
            #expect(monitor.fact.sessions.count == 2)
            await first.leave()
            try await bed.start()
            let second = try await BusPeer.connected(to: bed.address)
            await second.setSessions(logindSession("3", active: true), logindSession("4", active: true))
            try await second.own("org.freedesktop.login1")
            let cause = await causes.next(isolation: nil)?.first
            #expect(cause?.count == 1 && cause?.last.detail == "session 3 of alice was unlocked")
            #expect(await second.listings == 1)
            await second.leave()
        }
    }

    @Test("reports that there is no bus and no session")
    func withoutBus() {
        let monitor = SessionMonitor(bus: nil, scope: .local)
        #expect(monitor.fact == SessionFact(logind: .unavailable(reason: "the system bus is not used")))
    }
}

extension SessionMonitor {
    /// Waits for a fact; the suite's time limit is the deadline.
    fileprivate func reach(_ isWanted: @Sendable (SessionFact) -> Bool) async throws {
        for await fact in facts where isWanted(fact) { return }
        throw CancellationError()
    }
}
