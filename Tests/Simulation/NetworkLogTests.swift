import FreshetModel
import Testing

@testable import FreshetDaemon

@Suite("Log lines about network changes")
struct NetworkLogTests {
    let start = BootInstant.now
    var limiter = FlapLimiter()

    @Test("the first change is logged immediately, and nothing more if the state stays")
    mutating func first() {
        #expect(limiter.due == nil)
        #expect(limiter.changed(at: start) == .log)
        #expect(limiter.due == start + FlapLimiter.quiet)
        #expect(limiter.elapsed(at: start + FlapLimiter.quiet - .nanoseconds(1)) == nil)
        #expect(limiter.elapsed(at: start + FlapLimiter.quiet) == nil)
        #expect(limiter.due == nil)
        #expect(limiter.changed(at: start + FlapLimiter.quiet) == .log)
    }

    @Test("a burst is two log lines: its first change, and the number of suppressed changes at its end")
    mutating func burst() {
        #expect(limiter.changed(at: start) == .log)
        for number in 1...99 {
            let now = start + .milliseconds(50 * number)
            #expect(limiter.changed(at: now) == .suppress)
            #expect(limiter.elapsed(at: now) == nil)
        }
        let last = start + .milliseconds(50 * 99)
        #expect(limiter.due == last + FlapLimiter.quiet)
        #expect(limiter.elapsed(at: last + FlapLimiter.quiet) == .quiet(changes: 99))
        #expect(limiter.due == nil && limiter == FlapLimiter())
    }

    @Test("a burst that does not end is logged once a minute, and so is its end")
    mutating func endless() throws {
        _ = limiter.changed(at: start)
        var now = start
        var logged: [FlapLimiter.Summary] = []
        for _ in 1...150 {
            now += .seconds(1)
            if let summary = limiter.elapsed(at: now) { logged.append(summary) }
            #expect(limiter.changed(at: now) == .suppress)
        }
        #expect(logged == [.goesOn(changes: 59), .goesOn(changes: 60)])
        #expect(limiter.elapsed(at: now + FlapLimiter.quiet) == .quiet(changes: 31))
    }

    @Test("the end of a burst is logged even if nothing changed since the last line")
    mutating func end() {
        _ = limiter.changed(at: start)
        var now = start
        while now < start + FlapLimiter.atMost {
            now += .seconds(4)
            _ = limiter.changed(at: now)
        }
        #expect(limiter.elapsed(at: now) == .goesOn(changes: 15))
        #expect(limiter.elapsed(at: now + FlapLimiter.quiet) == .quiet(changes: 0))
        #expect(limiter.due == nil)
    }

    @Test("a change at the last instant of a burst belongs to the burst, unless the summary came before it")
    mutating func edge() {
        var late = limiter
        for change in [start, start + .seconds(1)] {
            _ = limiter.changed(at: change)
            _ = late.changed(at: change)
        }
        let end = start + .seconds(1) + FlapLimiter.quiet
        #expect(limiter.changed(at: end) == .suppress)
        #expect(limiter.elapsed(at: end + FlapLimiter.quiet) == .quiet(changes: 2))
        #expect(late.elapsed(at: end) == .quiet(changes: 1))
        #expect(late.changed(at: end) == .log)
    }
}
