import Testing

@testable import FreshetSignals

@Suite("When a failed upstream is retried, event by event")
struct RetryStateMachineTests {
    typealias Machine = RetryStateMachine<String>

    @Test("outputs since the attempt began count as one")
    func outputs() {
        var machine = Machine()
        for _ in 1...3 { #expect(machine.output() == nil) }
        machine.driverArrived()
        #expect(machine.nextAttempt(isCancelled: false) == .start(attempt: 2))
        machine.driverArrived()
        #expect(machine.nextAttempt(isCancelled: false) == .sleep)
        #expect(machine.driverSleeps("driver") == nil)
        #expect(machine.output() == "driver")
        #expect(machine.nextAttempt(isCancelled: false) == .start(attempt: 3))
    }

    @Test("an output between the request and the sleep keeps the driver awake")
    func awake() {
        var machine = Machine()
        machine.driverArrived()
        #expect(machine.nextAttempt(isCancelled: false) == .sleep)
        #expect(machine.output() == nil)
        #expect(machine.driverSleeps("driver") == "driver")
    }

    @Test("an output before the signal's end is answered, then the machine gives up")
    func ends() {
        var machine = Machine()
        _ = machine.output()
        _ = machine.signalEnded()
        machine.driverArrived()
        #expect(machine.nextAttempt(isCancelled: false) == .start(attempt: 2))
        machine.driverArrived()
        #expect(machine.nextAttempt(isCancelled: false) == .giveUp)
    }

    @Test("the signal's end wakes the driver, which gives up")
    func endsAsleep() {
        var machine = Machine()
        machine.driverArrived()
        #expect(machine.nextAttempt(isCancelled: false) == .sleep)
        #expect(machine.driverSleeps("driver") == nil)
        #expect(machine.signalEnded() == "driver")
        #expect(machine.nextAttempt(isCancelled: false) == .giveUp)
    }

    @Test("a cancelled driver gives up, whatever the signal does")
    func cancelled() {
        var machine = Machine()
        machine.driverArrived()
        #expect(machine.nextAttempt(isCancelled: false) == .sleep)
        #expect(machine.cancel() == nil)
        #expect(machine.driverSleeps("driver") == "driver")
        _ = machine.output()
        #expect(machine.nextAttempt(isCancelled: true) == .giveUp)
    }
}
