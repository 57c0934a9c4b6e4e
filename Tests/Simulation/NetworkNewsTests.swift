import Testing

@testable import FreshetDaemon

@Suite("When the network's coming and going is news")
struct NetworkNewsTests {
    let start = ContinuousClock.now
    var news = FlapLimiter()

    @Test("the first change is told at once, and nothing more if it stays so")
    mutating func first() {
        #expect(news.due == nil)
        #expect(news.changed(at: start) == .say)
        #expect(news.due == start + FlapLimiter.quiet)
        #expect(news.elapsed(at: start + FlapLimiter.quiet - .nanoseconds(1)) == nil)
        #expect(news.elapsed(at: start + FlapLimiter.quiet) == nil)
        #expect(news.due == nil)
        #expect(news.changed(at: start + FlapLimiter.quiet) == .say)
    }

    @Test("a storm is two lines: its first change, and how many followed when it is calm")
    mutating func storm() {
        #expect(news.changed(at: start) == .say)
        for number in 1...99 {
            let now = start + .milliseconds(50 * number)
            #expect(news.changed(at: now) == .passOver)
            #expect(news.elapsed(at: now) == nil)
        }
        let last = start + .milliseconds(50 * 99)
        #expect(news.due == last + FlapLimiter.quiet)
        #expect(news.elapsed(at: last + FlapLimiter.quiet) == .calm(changes: 99))
        #expect(news.due == nil && news == FlapLimiter())
    }

    @Test("a storm that does not end is told once a minute, and so is its end")
    mutating func endless() throws {
        _ = news.changed(at: start)
        var now = start
        var told: [FlapLimiter.Summary] = []
        for _ in 1...150 {
            now += .seconds(1)
            if let summary = news.elapsed(at: now) { told.append(summary) }
            #expect(news.changed(at: now) == .passOver)
        }
        #expect(told == [.goesOn(changes: 59), .goesOn(changes: 60)])
        #expect(news.elapsed(at: now + FlapLimiter.quiet) == .calm(changes: 31))
    }

    @Test("the end of a storm is told also if nothing changed since it was last told")
    mutating func end() {
        _ = news.changed(at: start)
        var now = start
        while now < start + FlapLimiter.atMost {
            now += .seconds(4)
            _ = news.changed(at: now)
        }
        #expect(news.elapsed(at: now) == .goesOn(changes: 15))
        #expect(news.elapsed(at: now + FlapLimiter.quiet) == .calm(changes: 0))
        #expect(news.due == nil)
    }
}
