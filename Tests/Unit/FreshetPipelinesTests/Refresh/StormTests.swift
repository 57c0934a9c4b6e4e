import Testing

@testable import FreshetPipelines

@Suite("Calm and storm")
struct StormTests {
    let policy = RefreshPolicy(quiet: .seconds(2), atMost: .seconds(10), freshFor: .zero)

    @Test("in calm the first signal passes at once")
    func first() {
        let talk = Dialogue(policy)
        #expect(talk.at(1, .hears("file", at: 1)) == [.starts(1, ["file"])])
    }

    @Test("what comes in a storm is delivered as one when it has been quiet, with all causes")
    func gathered() throws {
        let talk = Dialogue(policy)
        _ = talk.at(0, .hears("network", at: 0))
        _ = talk.at(0.1, .succeeds(1))
        #expect(talk.at(0.5, .hears("network", at: 0.5)) == [])
        #expect(talk.at(1.5, .hears("file", at: 1.5)) == [])
        #expect(talk.at(2, .hears("network", at: 2)) == [])
        #expect(talk.waitsFor == Wait(.quiet, until: Dialogue.instant(4)))
        #expect(talk.pass(until: 60) == [.init(at: 4, deed: .starts(2, ["network", "file"]))])
        let order = try #require(talk.orders.last)
        #expect(order.causes.map(\.count) == [2, 1])
        #expect(order.causes.summary == "network (2), file")
    }

    @Test("after at-most what was gathered is delivered and the storm goes on")
    func atMost() {
        let talk = Dialogue(policy)
        _ = talk.at(0, .hears("file", at: 0))
        _ = talk.at(0.01, .succeeds(1))
        var starts: [Dialogue.Moment] = []
        var run: UInt64 = 1
        for tick in 1...50 {
            let second = Double(tick) * 0.5
            let passed = talk.pass(until: second)
            starts += passed
            if !passed.isEmpty {
                run += 1
                _ = talk.at(second, .succeeds(run))
            }
            #expect(talk.at(second, .hears("file", at: second)) == [])
        }
        starts += talk.pass(until: 60)
        #expect(starts.map(\.at) == [10.5, 20.5, 27])
    }

    @Test("it is calm again when quiet has passed, without being woken for it")
    func calmAgain() {
        let talk = Dialogue(policy)
        _ = talk.at(0, .hears("file", at: 0))
        _ = talk.at(0.1, .succeeds(1))
        #expect(talk.wake == nil)
        #expect(talk.at(2, .hears("file", at: 2)) == [.starts(2, ["file"])])
    }

    @Test("fifty flaps cost two runs, the first at once and the last with all causes")
    func flaps() throws {
        let talk = Dialogue(policy, network: Dialogue.offline())
        var starts: [Dialogue.Moment] = []
        for flap in 0..<50 {
            let up = Double(flap) * 0.1
            let state = Dialogue.online(epoch: UInt64(flap) + 2, since: up)
            for deed in talk.at(up, .network(state), .hears("network", at: up)) {
                starts.append(.init(at: up, deed: deed))
            }
            let down = up + 0.05
            for deed in talk.at(down, .network(Dialogue.offline(epoch: UInt64(flap) + 2, since: down))) {
                if case .cancels(let run) = deed { _ = talk.at(down + 0.01, .ended(run: run, .cancelled)) }
            }
        }
        let up = Dialogue.online(epoch: 100, since: 5)
        #expect(talk.at(5, .network(up), .hears("network", at: 5)) == [])
        starts += talk.pass(until: 100)
        #expect(starts.map(\.at) == [0, 7])
        #expect(try #require(talk.orders.last?.causes.first).count == 51)
    }

    @Test("signals that wait for the network prolong the storm in front of which they wait")
    func prolonged() {
        let talk = Dialogue(policy)
        _ = talk.at(0, .hears("file", at: 0))
        _ = talk.at(0.1, .succeeds(1))
        _ = talk.at(1, .network(Dialogue.offline(since: 1)))
        _ = talk.at(1.5, .hears("resume", at: 1.5))
        #expect(talk.at(3, .network(Dialogue.online(epoch: 2, since: 3))) == [])
        #expect(talk.pass(until: 100) == [.init(at: 5, deed: .starts(2, ["resume"]))])
    }

    @Test("with quiet zero every signal passes")
    func noQuiet() {
        let talk = Dialogue(RefreshPolicy(quiet: .zero, freshFor: .zero))
        #expect(talk.at(1, .hears("file", at: 1)) == [.starts(1, ["file"])])
        _ = talk.at(1, .succeeds(1))
        #expect(talk.at(1, .hears("file", at: 1)) == [.starts(2, ["file"])])
    }

    @Test("the gate alone: first, held, delivered, calm")
    func gate() {
        var gate = Debouncer(quiet: .seconds(2), atMost: .seconds(3))
        func hears(_ seconds: Double) -> Bool { gate.hear(at: Dialogue.instant(seconds)) }
        func delivers(_ seconds: Double) -> Bool { gate.elapse(at: Dialogue.instant(seconds)) }
        #expect(hears(0))
        #expect(gate.deliversAt == nil)
        #expect(!hears(1))
        #expect(gate.deliversAt == Dialogue.instant(3))
        #expect(!hears(2.5))
        #expect(gate.deliversAt == Dialogue.instant(4))
        #expect(!delivers(3.9))
        #expect(delivers(4))
        #expect(gate.isStorm(at: Dialogue.instant(4)))
        #expect(!delivers(4.5))
        #expect(gate.calmAt == nil)
        gate.touch(at: Dialogue.instant(5))
        #expect(gate.calmAt == nil, "what cannot run begins no storm")
        #expect(hears(5))
    }
}
