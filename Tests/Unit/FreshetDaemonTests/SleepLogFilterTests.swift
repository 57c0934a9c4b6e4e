import FreshetSystemSignals
import Testing

@testable import FreshetDaemon

@Suite("Messages about sleep")
struct SleepLogFilterTests {
    @Test("a missing logind is logged once, and then its appearance")
    func logind() {
        var filter = SleepLogFilter()
        #expect(filter.changed(.pending) == nil)
        #expect(filter.changed(.unavailable(reason: "no bus")) == .missing(reason: "no bus"))
        #expect(filter.changed(.pending) == nil)
        #expect(filter.changed(.unavailable(reason: "another reason")) == nil)
        #expect(filter.changed(.available) == .found)
        #expect(filter.changed(.unavailable(reason: "no bus")) == nil)
        #expect(filter.changed(.available) == nil)
    }

    @Test("each wake is logged once; a `resume` that is fired by hand does not count as a wake")
    func woke() {
        var filter = SleepLogFilter()
        let now = ContinuousClock.now
        #expect(filter.woke(SleepFact()) == false)
        #expect(filter.woke(SleepFact(awakeSince: now)) == true)
        #expect(filter.woke(SleepFact(awakeSince: now)) == false)
        #expect(filter.woke(SleepFact(awakeSince: now + .seconds(1))) == true)
    }

    @Test("a logind that is available from the start is not logged until it is missing")
    func availableAtStart() {
        var filter = SleepLogFilter()
        #expect(filter.changed(.available) == nil)
        #expect(filter.changed(.unavailable(reason: "no bus")) == .missing(reason: "no bus"))
    }

    @Test("the fact has a text for people")
    func text() {
        let now = ContinuousClock.now
        var fact = SleepFact(logind: .available)
        #expect(fact.text(at: now) == "awake since before the daemon started")
        #expect(fact.missing == nil)
        fact.awakeSince = now - .seconds(10_920)
        #expect(fact.text(at: now) == "awake since 3h 2min ago")
        fact.lastSleep = .seconds(28_860)
        fact.clockSteppedAt = now - .seconds(60)
        #expect(fact.text(at: now) == "awake since 3h 2min ago, last sleep 8h 1min, clock stepped 1min 0s ago")
        fact.isGoingToSleep = true
        #expect(fact.text(at: now).hasPrefix("going to sleep"))
        fact.logind = .unavailable(reason: "no socket")
        #expect(fact.missing == "no logind: no socket; detecting sleep by the clocks only")
    }
}
