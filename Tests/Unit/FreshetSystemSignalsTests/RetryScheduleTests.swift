import Testing

@testable import FreshetSystemSignals

@Suite("When paths are looked at")
struct RetryScheduleTests {
    private let start = ContinuousClock.Instant.now
    private func at(_ seconds: Int) -> ContinuousClock.Instant { start + .seconds(seconds) }

    @Test("one look at a time: what is heard meanwhile is for the next one, all of it")
    func oneAtATime() {
        let agenda = Dialogue()
        #expect(agenda.hear(1, .written, at: at(0)))
        #expect(agenda.isLooking)
        #expect(!agenda.hear(1, .written, at: at(0)))
        #expect(!agenda.hear(1, .look, at: at(0)))
        agenda.keep(1, .rewatch)
        #expect(agenda.hear(2, .look, at: at(0)), "another path does not wait for it")
        #expect(agenda.ended(1, isBlocked: false, at: at(1)) == [.written, .look, .rewatch])
        #expect(agenda.ended(1, isBlocked: false, at: at(1)) == nil)
        #expect(agenda.ended(2, isBlocked: false, at: at(1)) == nil)
        #expect(!agenda.isLooking && agenda.deadline == nil)
        agenda.keep(1, .look)
        #expect(agenda.ended(1, isBlocked: false, at: at(1)) == nil, "nobody looks")
    }

    @Test("a look that does not end is told once, and when it ends all is as before")
    func slow() {
        let agenda = Dialogue()
        _ = agenda.hear(1, .look, at: at(0))
        _ = agenda.hear(2, .look, at: at(3))
        #expect(agenda.deadline == at(5))
        #expect(agenda.due(at: at(4)).slow.isEmpty)
        #expect(agenda.due(at: at(5)).slow == [1])
        #expect(agenda.isHeldUp && agenda.deadline == at(8))
        #expect(agenda.due(at: at(7)).slow.isEmpty)
        agenda.isSlow(2)
        #expect(agenda.deadline == nil && agenda.due(at: at(9)).slow.isEmpty)
        #expect(!agenda.hear(1, .written, at: at(10)), "it is under way still")
        #expect(agenda.ended(1, isBlocked: false, at: at(20)) == .written)
        #expect(agenda.deadline == at(25))
    }

    @Test("what had an obstacle is looked at again after 1, 2, 4 … 300 s, all together; what is new, soon")
    func retry() {
        let agenda = Dialogue()
        func end(_ follower: UInt64, _ isBlocked: Bool, _ now: Int) {
            _ = agenda.hear(follower, .look, at: at(now))
            #expect(agenda.ended(follower, isBlocked: isBlocked, at: at(now)) == nil)
        }
        end(1, true, 0)
        end(2, false, 0)
        var now = 0
        for pause in [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300] {
            #expect(agenda.deadline == at(now + pause))
            #expect(agenda.due(at: at(now + pause - 1)).again.isEmpty)
            now += pause
            #expect(agenda.due(at: at(now)).again == [1])
            end(1, true, now)
        }
        end(3, true, now)
        #expect(agenda.deadline == at(now + 1))
        #expect(agenda.due(at: at(now + 1)).again == [1, 3])
        end(1, false, now + 1)
        end(3, false, now + 1)
        #expect(agenda.deadline == nil)
    }

    @Test("who goes may make room: what has an obstacle is looked at now; and nothing is left of the one that went")
    func removed() {
        let agenda = Dialogue()
        _ = agenda.hear(1, .look, at: at(0))
        _ = agenda.ended(1, isBlocked: true, at: at(0))
        _ = agenda.hear(2, .look, at: at(0))
        _ = agenda.hear(2, .look, at: at(0))
        agenda.remove(2, at: at(0))
        #expect(!agenda.isLooking)
        #expect(agenda.ended(2, isBlocked: true, at: at(0)) == nil)
        #expect(agenda.due(at: at(0)).again == [1])
        agenda.remove(1, at: at(0))
        #expect(agenda.deadline == nil)
    }
}

/// An agenda whose answers can be expected where it is told something.
private final class Dialogue {
    private var agenda = RetrySchedule()
    var isLooking: Bool { agenda.isLooking }
    var isHeldUp: Bool { agenda.isHeldUp }
    var deadline: ContinuousClock.Instant? { agenda.deadline }

    func hear(_ follower: UInt64, _ events: FileEvents, at now: ContinuousClock.Instant) -> Bool {
        agenda.hear(follower, events, at: now)
    }
    func ended(_ follower: UInt64, isBlocked: Bool, at now: ContinuousClock.Instant) -> FileEvents? {
        agenda.ended(follower, isBlocked: isBlocked, at: now)
    }
    func due(at now: ContinuousClock.Instant) -> (slow: [UInt64], again: [UInt64]) { agenda.due(at: now) }
    func keep(_ follower: UInt64, _ events: FileEvents) { agenda.keep(follower, events) }
    func isSlow(_ follower: UInt64) { agenda.isSlow(follower) }
    func remove(_ follower: UInt64, at now: ContinuousClock.Instant) { agenda.remove(follower, at: now) }
}
