import Testing

@testable import FreshetSignals

@Suite("One subscription, event by event")
struct SubscriptionStateMachineTests {
    typealias Firings = SubscriptionStateMachine<PendingFiringCount, String>
    typealias Causes = SubscriptionStateMachine<PendingCauses, String>
    let start = ContinuousClock.now

    func occurrence(_ signal: String, _ number: UInt64) -> Occurrence {
        Occurrence(signal: signal, number: number, instant: start)
    }

    @Test("firings before the first next() are delivered one by one, after one yield")
    func pendingFirings() {
        var machine = Firings(listings: [1])
        #expect(machine.record(occurrence("a", 1), source: 0) == nil)
        #expect(machine.record(occurrence("a", 2), source: 0) == nil)

        #expect(machine.arrive(isCancelled: false) == .yieldFirst, "it must yield after a firing")
        #expect(machine.take(isCancelled: false).isDelivery)
        #expect(machine.arrive(isCancelled: false) == .look, "nothing arrived since it yielded")
        #expect(machine.take(isCancelled: false).isDelivery)
        #expect(machine.arrive(isCancelled: false) == .look)
        #expect(machine.take(isCancelled: false).isSleep)
    }

    @Test("a firing wakes a sleeping consumer, once; the next firing obliges it to yield")
    func wake() {
        var machine = Firings(listings: [1])
        #expect(machine.arrive(isCancelled: false) == .look)
        #expect(machine.take(isCancelled: false).isSleep)
        #expect(machine.sleep("waiter") == nil)
        #expect(machine.record(occurrence("a", 1), source: 0) == "waiter")
        #expect(machine.record(occurrence("a", 2), source: 0) == nil)
        #expect(machine.take(isCancelled: false).isDelivery)
        #expect(machine.arrive(isCancelled: false) == .yieldFirst)
        #expect(machine.take(isCancelled: false).isDelivery)
    }

    @Test("a firing between the check and the sleep keeps the consumer awake")
    func firingBeforeSleep() {
        var machine = Firings(listings: [1])
        #expect(machine.arrive(isCancelled: false) == .look)
        #expect(machine.take(isCancelled: false).isSleep)
        #expect(machine.record(occurrence("a", 1), source: 0) == nil)
        #expect(machine.sleep("waiter") == "waiter")
        #expect(machine.take(isCancelled: false).isDelivery)
    }

    @Test("a cancelled next() ends and takes nothing; the next one takes the firing")
    func cancellation() {
        var machine = Firings(listings: [1])
        _ = machine.arrive(isCancelled: false)
        _ = machine.take(isCancelled: false)
        #expect(machine.sleep("waiter") == nil)
        #expect(machine.cancel() == "waiter")
        #expect(machine.record(occurrence("a", 1), source: 0) == nil)
        #expect(machine.take(isCancelled: true).isEnd)

        #expect(machine.arrive(isCancelled: false) == .yieldFirst)
        #expect(machine.take(isCancelled: false).isDelivery)
    }

    @Test("a next() that was woken and cancelled before it ran takes nothing")
    func cancelledAfterWake() {
        var machine = Firings(listings: [1])
        _ = machine.arrive(isCancelled: false)
        _ = machine.take(isCancelled: false)
        _ = machine.sleep("waiter")
        #expect(machine.record(occurrence("a", 1), source: 0) == "waiter")
        #expect(machine.cancel() == nil)
        #expect(machine.take(isCancelled: true).isEnd)
        _ = machine.arrive(isCancelled: false)
        #expect(machine.take(isCancelled: false).isDelivery)
    }

    @Test("a cancellation before the sleep keeps the consumer awake")
    func cancelledBeforeSleep() {
        var machine = Firings(listings: [1])
        _ = machine.arrive(isCancelled: false)
        _ = machine.take(isCancelled: false)
        #expect(machine.cancel() == nil)
        #expect(machine.sleep("waiter") == "waiter")
        #expect(machine.take(isCancelled: true).isEnd)
        #expect(machine.cancel() == nil, "a cancellation that comes too late has no effect")
        _ = machine.arrive(isCancelled: false)
        #expect(machine.take(isCancelled: false).isSleep)
        #expect(machine.sleep("later") == nil)
    }

    @Test("the end comes when all sources have finished and all firings are taken")
    func end() {
        var machine = Firings(listings: [1, 1])
        #expect(machine.record(occurrence("a", 1), source: 0) == nil)
        #expect(machine.sourceFinished() == nil)
        _ = machine.arrive(isCancelled: false)
        #expect(machine.take(isCancelled: false).isDelivery)
        _ = machine.arrive(isCancelled: false)
        #expect(machine.take(isCancelled: false).isSleep)
        #expect(machine.sleep("waiter") == nil)
        #expect(machine.sourceFinished() == "waiter")
        #expect(machine.take(isCancelled: false).isEnd)
        _ = machine.arrive(isCancelled: false)
        #expect(machine.take(isCancelled: false).isEnd)
    }

    @Test("a source that is listed twice counts as two firings and one cause")
    func listings() {
        var firings = Firings(listings: [2, 1])
        #expect(firings.record(occurrence("a", 1), source: 0) == nil)
        for _ in 1...2 {
            _ = firings.arrive(isCancelled: false)
            #expect(firings.take(isCancelled: false).isDelivery)
        }
        _ = firings.arrive(isCancelled: false)
        #expect(firings.take(isCancelled: false).isSleep)

        var causes = PendingCauses(listings: [2, 1])
        causes.record(occurrence("a", 1), source: 0)
        #expect(causes.take() == [Cause(first: occurrence("a", 1))])
    }

    @Test("causes are in the order of their first firing, with first, last and count")
    func causes() {
        var causes = PendingCauses(listings: [1, 1, 1])
        for (signal, number, source) in [("b", 1, 1), ("a", 1, 0), ("b", 2, 1), ("b", 3, 1)] {
            causes.record(occurrence(signal, UInt64(number)), source: source)
        }
        #expect(
            causes.take() == [
                Cause(first: occurrence("b", 1), last: occurrence("b", 3), count: 3),
                Cause(first: occurrence("a", 1)),
            ])
        #expect(causes.take() == nil)
        causes.record(occurrence("a", 2), source: 0)
        #expect(causes.take() == [Cause(first: occurrence("a", 2))])
    }

    @Test("discarded firings are neither delivered nor require a yield")
    func forget() {
        var machine = Causes(listings: [1])
        #expect(machine.record(occurrence("a", 1), source: 0) == nil)
        machine.forget()
        #expect(machine.arrive(isCancelled: false) == .look)
        #expect(machine.take(isCancelled: false).isSleep)
        #expect(machine.sleep("waiter") == nil)
        #expect(machine.record(occurrence("a", 2), source: 0) == "waiter")
    }
}

extension SubscriptionStateMachine.TakeAction {
    fileprivate var isDelivery: Bool { if case .deliver = self { true } else { false } }
    fileprivate var isEnd: Bool { if case .end = self { true } else { false } }
    fileprivate var isSleep: Bool { if case .sleep = self { true } else { false } }
}
