import FreshetSystemSignals
import Testing

@testable import FreshetDaemon

@Suite("What is said of sleep")
struct SleepLogFilterTests {
    @Test("that logind is missing is said once, and that it was found after that")
    func logind() {
        var news = SleepLogFilter()
        #expect(news.heard(.pending) == nil)
        #expect(news.heard(.unavailable(reason: "no bus")) == .missing(reason: "no bus"))
        #expect(news.heard(.pending) == nil)
        #expect(news.heard(.unavailable(reason: "another reason")) == nil)
        #expect(news.heard(.available) == .found)
        #expect(news.heard(.unavailable(reason: "no bus")) == nil)
        #expect(news.heard(.available) == nil)
    }

    @Test("the machine woke up once for each wake; raised by hand, `resume` is none")
    func woke() {
        var news = SleepLogFilter()
        let now = ContinuousClock.now
        #expect(news.woke(SleepFact()) == false)
        #expect(news.woke(SleepFact(awakeSince: now)) == true)
        #expect(news.woke(SleepFact(awakeSince: now)) == false)
        #expect(news.woke(SleepFact(awakeSince: now + .seconds(1))) == true)
    }

    @Test("where logind is there from the start nothing is said, until it is not")
    func thereAtOnce() {
        var news = SleepLogFilter()
        #expect(news.heard(.available) == nil)
        #expect(news.heard(.unavailable(reason: "no bus")) == .missing(reason: "no bus"))
    }

    @Test("the fact in words")
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
        #expect(fact.missing == "no logind: no socket; the clocks alone are watched")
    }
}
