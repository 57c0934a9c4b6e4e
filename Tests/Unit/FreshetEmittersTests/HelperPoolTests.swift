import Testing

@testable import FreshetEmitters

@Suite("Who uses a jq helper when, as a dialogue")
struct HelperPoolTests {
    typealias Action = HelperPool<String>.Action

    let start = ContinuousClock.now
    let short = Duration.milliseconds(100)
    let long = Duration.seconds(2)

    /// A pool with as many requests at work as it has places, each of another pipeline: tickets and pipelines 1, 2, 3.
    private func full() -> HelperPool<String> {
        var pool = HelperPool<String>()
        for ticket in 1...3 as ClosedRange<UInt64> {
            #expect(pool.enter(ticket, of: ticket) == [.start(ticket, nil, turn: short)])
        }
        return pool
    }

    @Test("each level has a place; what comes then waits, and takes over the helper that is free first")
    func order() {
        var pool = full()
        #expect(pool.enter(4, of: 4) == [])
        #expect(pool.enter(5, of: 5) == [])
        #expect(pool.leave(1, "a", used: .zero, at: start) == [.start(4, "a", turn: short)])
        // A helper that is gone leaves its place: the next starts one.
        #expect(pool.leave(2, nil, used: nil, at: start) == [.start(5, nil, turn: short)])
        #expect(pool.leave(3, "b", used: .zero, at: start) == [.cool(at: start + .seconds(5))])
        #expect(pool.enter(6, of: 6) == [.start(6, "b", turn: short)])
    }

    @Test("a pipeline with many requests takes turns with others")
    func turns() {
        var pool = full()
        for ticket in 10...13 as ClosedRange<UInt64> { #expect(pool.enter(ticket, of: 7) == []) }
        #expect(pool.enter(20, of: 8) == [])
        #expect(pool.leave(1, nil, used: nil, at: start) == [.start(10, nil, turn: short)])
        #expect(pool.leave(2, nil, used: nil, at: start) == [.start(20, nil, turn: short)])
        #expect(pool.leave(3, nil, used: nil, at: start) == [.start(11, nil, turn: short)])
    }

    @Test("a request that takes long goes on while nobody waits for its place")
    func alone() {
        var pool = HelperPool<String>()
        #expect(pool.enter(1, of: 1) == [.start(1, nil, turn: short)])
        // It has the place of the longest turns, as nobody else was there.
        #expect(pool.turnEnds(1) == [.extend(1, turn: long)])
        #expect(pool.turnEnds(1) == [.extend(1, turn: nil)])
        #expect(pool.turnEnds(1) == [])
    }

    @Test("endless requests keep the places of long turns; a short one has the one in its place evicted")
    func eviction() {
        var pool = full()
        for ticket in 1...3 as ClosedRange<UInt64> {
            _ = pool.turnEnds(ticket)
            _ = pool.turnEnds(ticket)
        }
        // Places are given from the longest turns on: 3 has the shortest.
        #expect(pool.enter(4, of: 4).contains(.evict(3)))
        // The evicted one is to have two seconds: the place for that is taken by one that has had them.
        #expect(pool.evicted(3) == [.start(4, nil, turn: short), .evict(2)])
        #expect(pool.evicted(2) == [.start(3, nil, turn: long)])
        // Nobody ends the one that has the last place, and 4 is short.
        #expect(pool.enter(5, of: 5) == [])
        #expect(pool.leave(4, nil, used: nil, at: start) == [.start(5, nil, turn: short)])
    }

    @Test("an evicted request waits at its own level, and begins again before shorter ones have its place")
    func again() {
        var pool = full()
        // Places are given from the longest turns on: 1 has that, 3 the shortest.
        #expect(pool.turnEnds(3) == [])
        #expect(pool.enter(4, of: 4) == [.evict(3)])
        #expect(pool.enter(5, of: 5) == [])
        #expect(pool.evicted(3) == [.start(4, nil, turn: short)])
        #expect(pool.leave(4, nil, used: nil, at: start) == [.start(5, nil, turn: short)])
        #expect(pool.enter(6, of: 6) == [])
        // A place of long turns: the evicted one has it, though 6 waits too.
        #expect(pool.leave(2, nil, used: nil, at: start) == [.start(3, nil, turn: long)])
        #expect(pool.leave(5, nil, used: nil, at: start) == [.start(6, nil, turn: short)])
    }

    @Test("an overdue request moves to a free place of longer turns and does not begin again")
    func move() {
        var pool = full()
        #expect(pool.turnEnds(3) == [])
        #expect(pool.leave(1, nil, used: nil, at: start) == [.extend(3, turn: long)])
        #expect(pool.enter(4, of: 4) == [.start(4, nil, turn: short)])
    }

    @Test("a pipeline whose requests take long begins with a long turn, until one was short")
    func memory() {
        var pool = full()
        #expect(pool.turnEnds(3) == [])
        #expect(pool.leave(3, nil, used: nil, at: start) == [])
        #expect(pool.enter(4, of: 3) == [])
        // A place of long turns only.
        #expect(pool.enter(5, of: 5) == [.start(5, nil, turn: short)])
        #expect(pool.leave(2, nil, used: nil, at: start) == [.start(4, nil, turn: long)])
        #expect(pool.leave(4, nil, used: .milliseconds(20), at: start) == [])
        #expect(pool.enter(6, of: 3) == [.start(6, nil, turn: short)])
    }

    @Test("one that waits may be cancelled; one that was started may not, and leaves by itself")
    func abandon() {
        var pool = full()
        for ticket in 4...5 as ClosedRange<UInt64> { _ = pool.enter(ticket, of: ticket) }
        #expect(pool.abandon(4) == true)
        #expect(pool.abandon(4) == false)
        #expect(pool.abandon(1) == false)
        #expect(pool.leave(1, "a", used: .zero, at: start) == [.start(5, "a", turn: short)])
        #expect(pool.abandon(5) == false)
    }

    @Test("a helper that is free for five seconds is ended, the one used last stays longer")
    func cooling() {
        var pool = full()
        #expect(pool.leave(1, "a", used: .zero, at: start) == [.cool(at: start + .seconds(5))])
        #expect(pool.leave(2, "b", used: .zero, at: start + .seconds(1)) == [])
        #expect(pool.cool(at: start + .milliseconds(4_999)).ended == [])
        let first = pool.cool(at: start + .seconds(5))
        #expect(first.ended == ["a"] && first.again == start + .seconds(6))
        #expect(pool.enter(4, of: 4) == [.start(4, "b", turn: short)])
        let second = pool.cool(at: start + .seconds(6))
        #expect(second.ended == [] && second.again == nil)
    }
}
