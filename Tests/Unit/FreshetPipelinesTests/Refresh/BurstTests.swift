import FreshetModel
import FreshetSignals
import Testing

@testable import FreshetPipelines

@Suite("Bursts and quiet periods")
struct BurstTests {
    let policy = RefreshPolicy(quiet: .seconds(2), atMost: .seconds(10), freshFor: .zero)

    @Test("outside of a burst the first signal passes immediately")
    func first() {
        let dialogue = Dialogue(policy)
        #expect(dialogue.at(1, .receives("file", at: 1)) == [.starts(1, ["file"])])
    }

    @Test("the signals of a burst are delivered together after the quiet period, with all causes")
    func gathered() throws {
        let dialogue = Dialogue(policy)
        _ = dialogue.at(0, .receives("network", at: 0))
        _ = dialogue.at(0.1, .succeeds(1))
        #expect(dialogue.at(0.5, .receives("network", at: 0.5)) == [])
        #expect(dialogue.at(1.5, .receives("file", at: 1.5)) == [])
        #expect(dialogue.at(2, .receives("network", at: 2)) == [])
        #expect(dialogue.waitsFor == Wait(.quiet, until: Dialogue.instant(4)))
        #expect(dialogue.pass(until: 60) == [.init(at: 4, output: .starts(2, ["network", "file"]))])
        let order = try #require(dialogue.orders.last)
        #expect(order.causes.map(\.count) == [2, 1])
        #expect(order.causes.summary == "network (2), file")
    }

    @Test("after at-most the held signals are delivered and the burst continues")
    func atMost() {
        let dialogue = Dialogue(policy)
        _ = dialogue.at(0, .receives("file", at: 0))
        _ = dialogue.at(0.01, .succeeds(1))
        var starts: [Dialogue.Moment] = []
        var run: UInt64 = 1
        for tick in 1...50 {
            let second = Double(tick) * 0.5
            let passed = dialogue.pass(until: second)
            starts += passed
            if !passed.isEmpty {
                run += 1
                _ = dialogue.at(second, .succeeds(run))
            }
            #expect(dialogue.at(second, .receives("file", at: second)) == [])
        }
        starts += dialogue.pass(until: 60)
        #expect(starts.map(\.at) == [10.5, 20.5, 27])
    }

    @Test("a burst ends after the quiet period, without a timer")
    func quietAgain() {
        let dialogue = Dialogue(policy)
        _ = dialogue.at(0, .receives("file", at: 0))
        _ = dialogue.at(0.1, .succeeds(1))
        #expect(dialogue.wake == nil)
        #expect(dialogue.at(2, .receives("file", at: 2)) == [.starts(2, ["file"])])
    }

    @Test("fifty flaps cost two runs, the first immediately and the last with all causes")
    func flaps() throws {
        let dialogue = Dialogue(policy, network: Dialogue.offline())
        var starts: [Dialogue.Moment] = []
        for flap in 0..<50 {
            let up = Double(flap) * 0.1
            let state = Dialogue.online(epoch: UInt64(flap) + 2, since: up)
            for output in dialogue.at(up, .network(state), .receives("network", at: up)) {
                starts.append(.init(at: up, output: output))
            }
            let down = up + 0.05
            for output in dialogue.at(down, .network(Dialogue.offline(epoch: UInt64(flap) + 2, since: down))) {
                if case .cancels(let run) = output { _ = dialogue.at(down + 0.01, .ended(run: run, .cancelled)) }
            }
        }
        let up = Dialogue.online(epoch: 100, since: 5)
        #expect(dialogue.at(5, .network(up), .receives("network", at: 5)) == [])
        starts += dialogue.pass(until: 100)
        #expect(starts.map(\.at) == [0, 7])
        #expect(try #require(dialogue.orders.last?.causes.first).count == 51)
    }

    @Test("signals that wait for the network prolong a burst")
    func prolonged() {
        let dialogue = Dialogue(policy)
        _ = dialogue.at(0, .receives("file", at: 0))
        _ = dialogue.at(0.1, .succeeds(1))
        _ = dialogue.at(1, .network(Dialogue.offline(since: 1)))
        _ = dialogue.at(1.5, .receives("resume", at: 1.5))
        #expect(dialogue.at(3, .network(Dialogue.online(epoch: 2, since: 3))) == [])
        #expect(dialogue.pass(until: 100) == [.init(at: 5, output: .starts(2, ["resume"]))])
    }

    @Test("with a quiet period of zero every signal passes")
    func noQuiet() {
        let dialogue = Dialogue(RefreshPolicy(quiet: .zero, freshFor: .zero))
        #expect(dialogue.at(1, .receives("file", at: 1)) == [.starts(1, ["file"])])
        _ = dialogue.at(1, .succeeds(1))
        #expect(dialogue.at(1, .receives("file", at: 1)) == [.starts(2, ["file"])])
    }

    @Test("the debouncer alone: first, held, delivered, quiet")
    func debouncer() {
        var debouncer = Debouncer<BootInstant>(quiet: .seconds(2), atMost: .seconds(3))
        func receives(_ seconds: Double) -> Bool { debouncer.receive(at: Dialogue.instant(seconds)) }
        func delivers(_ seconds: Double) -> Bool { debouncer.elapse(at: Dialogue.instant(seconds)) }
        #expect(receives(0))
        #expect(debouncer.deliversAt == nil)
        #expect(!receives(1))
        #expect(debouncer.deliversAt == Dialogue.instant(3))
        #expect(!receives(2.5))
        #expect(debouncer.deliversAt == Dialogue.instant(4))
        #expect(!delivers(3.9))
        #expect(delivers(4))
        #expect(debouncer.isBurst(at: Dialogue.instant(4)))
        #expect(!delivers(4.5))
        #expect(debouncer.quietAt == nil)
        debouncer.touch(at: Dialogue.instant(5))
        #expect(debouncer.quietAt == nil, "what cannot run begins no burst")
        #expect(receives(5))
    }
}
