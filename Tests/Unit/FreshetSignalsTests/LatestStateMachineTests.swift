import Testing

@testable import FreshetSignals

@Suite("The deliveries and reads of a combination, event by event")
struct LatestStateMachineTests {
    typealias Machine = LatestStateMachine<ArrayRow<Int>, String>

    /// Two branches that have delivered 1 and 2; the first array waits.
    func complete() -> Machine {
        var machine = Machine(ArrayRow(count: 2), branches: 2)
        #expect(machine.deliver(1, by: 0) == .keep)
        #expect(!machine.mustRest)
        #expect(machine.deliver(2, by: 1) == .offer)
        return machine
    }

    @Test("until each branch has delivered, only the latest elements are kept, and all branches are read")
    func gathering() {
        var machine = Machine(ArrayRow(count: 2), branches: 2)
        for number in 1...3 {
            #expect(machine.deliver(number, by: 0) == .keep)
            #expect(!machine.mustRest)
            #expect(machine.rest(0, "0", isCancelled: false) == "0", "it may continue")
        }
        #expect(machine.deliver(9, by: 1) == .offer)
        #expect(machine.take(offeredBy: 1).snapshot == [3, 9])
    }

    @Test("a branch whose element is in the first array rests until that array was taken")
    func resting() {
        var machine = complete()
        #expect(machine.mustRest)
        #expect(machine.rest(0, "0", isCancelled: false) == nil)
        let action = machine.take(offeredBy: 1)
        #expect(action.snapshot == [1, 2])
        #expect(action.wake == ["0"])
        #expect(!machine.mustRest)
        #expect(machine.take(offeredBy: 1).wake.isEmpty)
    }

    @Test("an element that arrives when the row has just become complete is in the second array")
    func overtaking() {
        var machine = complete()
        #expect(machine.deliver(7, by: 0) == .restAndOffer)
        #expect(machine.rest(0, "0", isCancelled: false) == nil)
        #expect(machine.take(offeredBy: 1).snapshot == [1, 2])
        #expect(machine.take(offeredBy: 0).snapshot == [7, 2])
    }

    @Test("each array has one more element than the previous one, in the order in which they are taken")
    func flowing() {
        var machine = complete()
        _ = machine.take(offeredBy: 1)
        #expect(machine.deliver(7, by: 0) == .offer)
        #expect(machine.deliver(8, by: 1) == .offer)
        #expect(machine.take(offeredBy: 1).snapshot == [1, 8])
        #expect(machine.take(offeredBy: 0).snapshot == [7, 8])
    }

    @Test("a cancelled branch does not rest")
    func cancelled() {
        var machine = complete()
        #expect(machine.rest(0, "0", isCancelled: true) == "0")
        #expect(machine.rest(0, "0", isCancelled: false) == nil)
        #expect(machine.cancel(0) == "0")
        #expect(machine.cancel(0) == nil)
        #expect(machine.take(offeredBy: 1).wake.isEmpty)
    }
}

@Suite("The other sequence of withLatestFrom, event by event")
struct WithLatestFromStateMachineTests {
    @Test("the latest value is kept; the end of the other sequence ends the result only if it had none")
    func latest() {
        var machine = WithLatestFromStateMachine<Int>()
        #expect(machine.latest == nil)
        #expect(machine.endsWithOther)
        #expect(machine.otherDelivered(1) == nil)
        #expect(machine.otherDelivered(2) == 1)
        #expect(machine.latest == 2)
        #expect(!machine.endsWithOther)
    }
}
