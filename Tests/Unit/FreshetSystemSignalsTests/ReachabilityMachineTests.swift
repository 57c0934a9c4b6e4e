import Testing

@testable import FreshetSystemSignals

@Suite("Tracking targets")
struct ReachabilityMachineTests {
    private let start = ContinuousClock.Instant.now
    private func at(_ seconds: Int) -> ContinuousClock.Instant { start + .seconds(seconds) }

    private func machine() -> ReachabilityMachine {
        var machine = ReachabilityMachine()
        machine.tables.apply(.link(index: 2, Link(name: Array("wan0".utf8), flags: 0x41)))
        return machine
    }

    private func route(_ gateway: String, from source: String) throws -> RouteAnswer {
        .route(RouteAnswer.Route(type: 1, index: 2, gateway: try address(gateway), source: try address(source)))
    }

    private func answers(v4: RouteAnswer = .refused(101), v6: RouteAnswer = .refused(101)) throws
        -> [IPAddress: RouteAnswer]
    {
        [try address("203.0.113.1"): v4, try address("2001:db8::1"): v6]
    }

    @Test("a sequence of network changes publishes the right facts and firings")
    func dialogue() throws {
        var machine = machine()
        let first = machine.add(.elsewhere, try answers(), at: at(0))
        #expect(!first.isReachable && first.description == "no route" && first.epoch == 0)
        #expect(try machine.queries == [address("203.0.113.1"), address("2001:db8::1")])

        // A default route: the epoch begins and the signal fires.
        let via1 = try route("192.0.2.1", from: "192.0.2.2")
        var outcome = machine.look(try answers(v4: via1), at: at(10))
        var fact = try #require(outcome.changes.first?.fact)
        #expect(outcome.epoch == 1)
        #expect(outcome.changes.map(\.firing) == ["reachable via 192.0.2.1 on wan0 from 192.0.2.2"])
        #expect(fact.isReachable && fact.since == at(10) && fact.changedAt == at(10) && fact.epoch == 1)

        // The same again: no change.
        #expect(machine.look(try answers(v4: via1), at: at(11)) == ReachabilityMachine.Outcome())
        #expect(machine.minor(of: .elsewhere) == 0)
        // The same again although the kernel sent an event about something else: minor.
        #expect(machine.look(try answers(v4: via1), received: true, at: at(11)) == ReachabilityMachine.Outcome())
        #expect(machine.minor(of: .elsewhere) == 1 && machine.minor == 1)

        // IPv6 appears later: the fact changes, nothing fires, and `since` and `changedAt` are unchanged.
        outcome = machine.look(try answers(v4: via1, v6: route("fe80::1", from: "2001:db8:1::2")), at: at(12))
        fact = try #require(outcome.changes.first?.fact)
        #expect(outcome.epoch == nil && outcome.changes.first?.firing == nil)
        #expect(fact.paths.count == 2 && fact.changedAt == at(10) && fact.epoch == 1)
        #expect(machine.minor == 2)

        // Another gateway.
        let via9 = try route("192.0.2.9", from: "192.0.2.2")
        outcome = machine.look(try answers(v4: via9), at: at(20))
        fact = try #require(outcome.changes.first?.fact)
        #expect(outcome.epoch == 2)
        #expect(outcome.changes.map(\.firing) == ["path changed: via 192.0.2.9 on wan0 from 192.0.2.2"])
        #expect(fact.since == at(10) && fact.changedAt == at(20) && fact.epoch == 2)

        // Carrier lost: a fact, no firing, no epoch.
        machine.tables.apply(.link(index: 2, Link(name: Array("wan0".utf8), flags: 0x1)))
        outcome = machine.look(try answers(v4: via9), at: at(30))
        fact = try #require(outcome.changes.first?.fact)
        #expect(outcome.epoch == nil && outcome.changes.first?.firing == nil)
        #expect(!fact.isReachable && fact.since == at(30) && fact.changedAt == at(30) && fact.epoch == 2)
        #expect(fact.description == "wan0 is down or has no carrier")

        // And back.
        machine.tables.apply(.link(index: 2, Link(name: Array("wan0".utf8), flags: 0x41)))
        outcome = machine.look(try answers(v4: via9), at: at(31))
        #expect(outcome.epoch == 3)
        #expect(machine.fired == 3 && machine.minor == 2 && machine.minor(of: .elsewhere) == 2)
        machine.remove(.elsewhere)
        #expect(machine.minor(of: .elsewhere) == 0)
    }

    @Test("all targets that change in one update begin one epoch")
    func oneEpoch() throws {
        var machine = machine()
        let host = NetworkTarget.address(try address("198.51.100.7"))
        _ = machine.add(.elsewhere, try answers(), at: at(0))
        _ = machine.add(host, [try address("198.51.100.7"): .refused(101)], at: at(0))
        var all = try answers(v4: route("192.0.2.1", from: "192.0.2.2"))
        all[try address("198.51.100.7")] = try route("192.0.2.1", from: "192.0.2.2")
        let outcome = machine.look(all, at: at(1))
        #expect(outcome.epoch == 1)
        #expect(outcome.changes.map(\.fact.target) == [.elsewhere, host])
        #expect(outcome.changes.allSatisfy { $0.fact.epoch == 1 && $0.firing != nil })
    }

    @Test("an epoch for another reason affects all targets, and changes found with it belong to it")
    func epochForAll() throws {
        var machine = machine()
        let host = NetworkTarget.address(try address("198.51.100.7"))
        let via = try route("192.0.2.1", from: "192.0.2.2")
        _ = machine.add(.elsewhere, try answers(v4: via), at: at(0))
        _ = machine.add(host, [try address("198.51.100.7"): .refused(101)], at: at(0))
        // Nothing else has changed: facts, and no firing.
        var all = try answers(v4: via)
        all[try address("198.51.100.7")] = .refused(101)
        var outcome = machine.look(all, at: at(60), after: machine.beginEpoch(at: at(60)))
        #expect(outcome.epoch == 1)
        #expect(outcome.changes.map(\.fact.epoch) == [1, 1])
        #expect(outcome.changes.map(\.fact.isReachable) == [true, false])
        #expect(outcome.changes.allSatisfy { $0.firing == nil && $0.fact.changedAt == at(60) })
        #expect(outcome.changes.allSatisfy { $0.fact.since == at(0) })
        // Another path, found at the same time, belongs to the same epoch and fires.
        all[try address("203.0.113.1")] = try route("192.0.2.9", from: "192.0.2.2")
        outcome = machine.look(all, at: at(90), after: machine.beginEpoch(at: at(90)))
        #expect(outcome.epoch == 2 && machine.epoch == 2)
        #expect(outcome.changes.map(\.fact.target) == [.elsewhere, host, .elsewhere])
        #expect(outcome.changes.compactMap(\.firing).count == 1)
        #expect(outcome.changes.allSatisfy { $0.fact.epoch == 2 })
        // And without netlink.
        _ = machine.becomeUnavailable("no netlink", at: at(100))
        outcome = machine.beginEpoch(at: at(120))
        #expect(outcome.changes.map(\.fact.isReachable) == [true, true])
        #expect(outcome.changes.allSatisfy { $0.fact.epoch == outcome.epoch })
    }

    @Test("an unanswered query changes nothing, and has to be repeated")
    func unanswered() throws {
        var machine = machine()
        let via = try route("192.0.2.1", from: "192.0.2.2")
        let fact = machine.add(.elsewhere, try answers(v4: via), at: at(0))
        #expect(fact.isReachable)
        let outcome = machine.look(try answers(v4: .unanswered(11)), at: at(1))
        #expect(outcome.isIncomplete && outcome.changes.isEmpty)
        #expect(machine.add(.elsewhere, [:], at: at(2)) == fact)
    }

    @Test("a removed target is neither queried nor published")
    func removed() throws {
        var machine = machine()
        _ = machine.add(.elsewhere, try answers(), at: at(0))
        machine.remove(.elsewhere)
        #expect(machine.queries.isEmpty)
        let outcome = machine.look(try answers(v4: route("192.0.2.1", from: "192.0.2.2")), at: at(1))
        #expect(outcome == ReachabilityMachine.Outcome())
    }

    @Test("without netlink every target is assumed reachable, published once")
    func blind() throws {
        var machine = machine()
        let via = try route("192.0.2.1", from: "192.0.2.2")
        let host = NetworkTarget.address(try address("198.51.100.7"))
        _ = machine.add(.elsewhere, try answers(v4: via), at: at(0))
        _ = machine.add(host, [try address("198.51.100.7"): .refused(101)], at: at(0))
        let outcome = machine.becomeUnavailable("no netlink", at: at(5))
        #expect(outcome.epoch == 1)
        #expect(outcome.changes.map(\.fact.isReachable) == [true, true])
        #expect(outcome.changes.map(\.fact.isAssumed) == [true, true])
        #expect(outcome.changes.map { $0.firing != nil } == [false, true])
        #expect(machine.queries.isEmpty)
        let late = machine.add(.address(try address("192.0.2.77")), [:], at: at(6))
        #expect(late.isReachable && late.isAssumed)
    }
}
