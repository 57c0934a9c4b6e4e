import Testing

@testable import FreshetEmitters

@Suite("Who uses a jq helper when, as a dialogue")
struct HelperPoolTests {
    let start = ContinuousClock.now

    @Test("two go on at once, the third waits, and takes over the helper that is free first")
    func order() {
        var pool = HelperPool<String>()
        #expect(pool.enter(1) == .proceed(nil))
        #expect(pool.enter(2) == .proceed(nil))
        #expect(pool.enter(3) == .wait)
        #expect(pool.enter(4) == .wait)
        #expect(pool.leave("a", at: start) == .call(3, "a"))
        // A helper that is gone leaves its place: the next starts one.
        #expect(pool.leave(nil, at: start) == .call(4, nil))
        #expect(pool.leave("a", at: start) == .cool(at: start + .seconds(5)))
        #expect(pool.leave(nil, at: start) == .none)
        #expect(pool.enter(5) == .proceed("a"))
        #expect(pool.enter(6) == .proceed(nil))
        #expect(pool.enter(7) == .wait)
    }

    @Test("one that waits may be cancelled; one that was called may not, and leaves by itself")
    func abandon() {
        var pool = HelperPool<String>()
        for ticket in 1...4 as ClosedRange<UInt64> { _ = pool.enter(ticket) }
        #expect(pool.abandon(3) == true)
        #expect(pool.abandon(3) == false)
        #expect(pool.abandon(1) == false)
        #expect(pool.leave("a", at: start) == .call(4, "a"))
        #expect(pool.abandon(4) == false)
    }

    @Test("a helper that is free for five seconds is ended, the one used last stays longer")
    func cooling() {
        var pool = HelperPool<String>()
        _ = pool.enter(1)
        _ = pool.enter(2)
        _ = pool.leave("a", at: start)
        _ = pool.leave("b", at: start + .seconds(1))
        #expect(pool.cool(at: start + .milliseconds(4_999)).ended == [])
        let first = pool.cool(at: start + .seconds(5))
        #expect(first.ended == ["a"] && first.again == start + .seconds(6))
        #expect(pool.enter(3) == .proceed("b"))
        let second = pool.cool(at: start + .seconds(6))
        #expect(second.ended == [] && second.again == nil)
    }
}
