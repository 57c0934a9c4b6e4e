import FreshetModel
import Testing

@testable import FreshetEmitters

@Suite("The scheduling of requests on jq helpers")
struct HelperPoolTests {
    typealias Action = HelperPool<String>.Action

    let start = BootInstant.now
    let short = Duration.milliseconds(100)
    let long = Duration.seconds(2)

    /// A pool in which each permit is in use by a request of another pipeline: tickets and pipelines 1, 2, 3.
    private func full() -> HelperPool<String> {
        var pool = HelperPool<String>()
        for ticket in 1...3 as ClosedRange<UInt64> {
            #expect(pool.enter(ticket, of: ticket) == [.start(ticket, nil, slice: short)])
        }
        return pool
    }

    @Test("each level has one permit; further requests wait and get the helper that becomes free first")
    func order() {
        var pool = full()
        #expect(pool.enter(4, of: 4) == [])
        #expect(pool.enter(5, of: 5) == [])
        #expect(pool.leave(1, "a", used: .zero, at: start) == [.start(4, "a", slice: short)])
        // A helper that has ended returns its permit: the next request starts a new helper.
        #expect(pool.leave(2, nil, used: nil, at: start) == [.start(5, nil, slice: short)])
        #expect(pool.leave(3, "b", used: .zero, at: start) == [.cool(at: start + .seconds(5))])
        #expect(pool.enter(6, of: 6) == [.start(6, "b", slice: short)])
    }

    @Test("a pipeline with many requests alternates with other pipelines")
    func alternation() {
        var pool = full()
        for ticket in 10...13 as ClosedRange<UInt64> { #expect(pool.enter(ticket, of: 7) == []) }
        #expect(pool.enter(20, of: 8) == [])
        #expect(pool.leave(1, nil, used: nil, at: start) == [.start(10, nil, slice: short)])
        #expect(pool.leave(2, nil, used: nil, at: start) == [.start(20, nil, slice: short)])
        #expect(pool.leave(3, nil, used: nil, at: start) == [.start(11, nil, slice: short)])
    }

    @Test("a long request continues while no other request waits for its permit")
    func alone() {
        var pool = HelperPool<String>()
        #expect(pool.enter(1, of: 1) == [.start(1, nil, slice: short)])
        // The request has the permit for the longest slices, because there are no other requests.
        #expect(pool.sliceEnded(1) == [.extend(1, slice: long)])
        #expect(pool.sliceEnded(1) == [.extend(1, slice: nil)])
        #expect(pool.sliceEnded(1) == [])
    }

    @Test("endless requests keep the permits for long slices; a short request evicts the request with its permit")
    func eviction() {
        var pool = full()
        for ticket in 1...3 as ClosedRange<UInt64> {
            _ = pool.sliceEnded(ticket)
            _ = pool.sliceEnded(ticket)
        }
        // Permits for the longest slices are assigned first: 3 has the permit for the shortest slices.
        #expect(pool.enter(4, of: 4).contains(.evict(3)))
        // The evicted request gets two seconds next. A request that has already used two seconds has the permit for
        // that.
        #expect(pool.evicted(3) == [.start(4, nil, slice: short), .evict(2)])
        #expect(pool.evicted(2) == [.start(3, nil, slice: long)])
        // The request with the permit of the last level is not evicted, and 4 is short.
        #expect(pool.enter(5, of: 5) == [])
        #expect(pool.leave(4, nil, used: nil, at: start) == [.start(5, nil, slice: short)])
    }

    @Test("an evicted request waits at its own level, and gets that level's permit before shorter requests")
    func again() {
        var pool = full()
        // Permits for the longest slices are assigned first: 1 has the longest slice, 3 the shortest.
        #expect(pool.sliceEnded(3) == [])
        #expect(pool.enter(4, of: 4) == [.evict(3)])
        #expect(pool.enter(5, of: 5) == [])
        #expect(pool.evicted(3) == [.start(4, nil, slice: short)])
        #expect(pool.leave(4, nil, used: nil, at: start) == [.start(5, nil, slice: short)])
        #expect(pool.enter(6, of: 6) == [])
        // The evicted request gets the permit for long slices, although 6 waits too.
        #expect(pool.leave(2, nil, used: nil, at: start) == [.start(3, nil, slice: long)])
        #expect(pool.leave(5, nil, used: nil, at: start) == [.start(6, nil, slice: short)])
    }

    @Test("an overdue request gets a free permit for longer slices and does not start again")
    func move() {
        var pool = full()
        #expect(pool.sliceEnded(3) == [])
        #expect(pool.leave(1, nil, used: nil, at: start) == [.extend(3, slice: long)])
        #expect(pool.enter(4, of: 4) == [.start(4, nil, slice: short)])
    }

    @Test("a pipeline with long requests begins with a long slice, until one of its requests is short")
    func memory() {
        var pool = full()
        #expect(pool.sliceEnded(3) == [])
        #expect(pool.leave(3, nil, used: nil, at: start) == [])
        #expect(pool.enter(4, of: 3) == [])
        // Request 4 may use only a permit for long slices.
        #expect(pool.enter(5, of: 5) == [.start(5, nil, slice: short)])
        #expect(pool.leave(2, nil, used: nil, at: start) == [.start(4, nil, slice: long)])
        #expect(pool.leave(4, nil, used: .milliseconds(20), at: start) == [])
        #expect(pool.enter(6, of: 3) == [.start(6, nil, slice: short)])
    }

    @Test("a waiting request can be abandoned; a request that was started cannot, and leaves the pool itself")
    func abandon() {
        var pool = full()
        for ticket in 4...5 as ClosedRange<UInt64> { _ = pool.enter(ticket, of: ticket) }
        #expect(pool.abandon(4) == true)
        #expect(pool.abandon(4) == false)
        #expect(pool.abandon(1) == false)
        #expect(pool.leave(1, "a", used: .zero, at: start) == [.start(5, "a", slice: short)])
        #expect(pool.abandon(5) == false)
    }

    @Test("a helper without work for five seconds is ended; the most recently used helper stays longer")
    func cooling() {
        var pool = full()
        #expect(pool.leave(1, "a", used: .zero, at: start) == [.cool(at: start + .seconds(5))])
        #expect(pool.leave(2, "b", used: .zero, at: start + .seconds(1)) == [])
        #expect(pool.cool(at: start + .milliseconds(4_999)).ended == [])
        let first = pool.cool(at: start + .seconds(5))
        #expect(first.ended == ["a"] && first.again == start + .seconds(6))
        #expect(pool.enter(4, of: 4) == [.start(4, "b", slice: short)])
        let second = pool.cool(at: start + .seconds(6))
        #expect(second.ended == [] && second.again == nil)
    }
}
