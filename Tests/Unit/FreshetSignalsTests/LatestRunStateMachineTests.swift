import Testing

@testable import FreshetSignals

@Suite("When runs begin and end, event by event")
struct LatestRunStateMachineTests {
    struct ValidationError: Error {}
    typealias Machine = LatestRunStateMachine<String, ValidationError, String>

    /// A machine with a run in progress whose driver sleeps.
    func running() throws -> (Machine, Machine.RunNumber) {
        var machine = Machine(first: "first")
        machine.driverArrived()
        let number = try #require(machine.nextRun(isCancelled: false).number)
        machine.driverArrived()
        #expect(machine.currentRun(isCancelled: false) == .sleep)
        #expect(machine.driverSleeps("driver") == nil)
        return (machine, number)
    }

    @Test("outputs before a run starts are one")
    func outputsAreOne() throws {
        var machine = Machine()
        machine.driverArrived()
        #expect(machine.nextRun(isCancelled: false).text == "sleep")
        #expect(machine.driverSleeps("driver") == nil)
        let first = machine.output("next")
        #expect(first.wake == "driver")
        #expect(!first.supersedes)
        #expect(machine.output("next").wake == nil)
        let number = try #require(machine.nextRun(isCancelled: false).number)
        machine.driverArrived()
        #expect(machine.currentRun(isCancelled: false) == .sleep)
        #expect(machine.driverSleeps("driver") == nil)
        #expect(machine.runEnded(number, nil) == "driver")
        #expect(machine.currentRun(isCancelled: false) == .end)
        machine.driverArrived()
        #expect(machine.nextRun(isCancelled: false).text == "sleep")
    }

    @Test("an output supersedes the run in progress once; outputs until the next start are one")
    func supersedes() throws {
        var (machine, old) = try running()
        let action = machine.output("next")
        #expect(action.supersedes)
        #expect(action.wake == "driver")
        #expect(!machine.output("next").supersedes)
        #expect(machine.currentRun(isCancelled: false) == .end)
        #expect(machine.runEnded(old, ValidationError()) == nil, "the result of a superseded run is ignored")
        machine.driverArrived()
        let new = try #require(machine.nextRun(isCancelled: false).number)
        #expect(new != old)
        machine.driverArrived()
        #expect(machine.currentRun(isCancelled: false) == .sleep)
    }

    @Test("the late end of an old run does not end the new one")
    func lateMessage() throws {
        var (machine, old) = try running()
        _ = machine.output("next")
        #expect(machine.currentRun(isCancelled: false) == .end)
        machine.driverArrived()
        _ = machine.nextRun(isCancelled: false)
        machine.driverArrived()
        #expect(machine.runEnded(old, ValidationError()) == nil)
        #expect(machine.currentRun(isCancelled: false) == .sleep)
    }

    @Test("a failure ends the operator, whatever the signal does afterwards")
    func failure() throws {
        var (machine, number) = try running()
        #expect(machine.runEnded(number, ValidationError()) == "driver")
        #expect(machine.currentRun(isCancelled: false) == .end)
        #expect(!machine.output("next").supersedes)
        machine.driverArrived()
        #expect(machine.nextRun(isCancelled: false).text == "fail")
    }

    @Test("after the signal's end the run can finish")
    func signalEnds() throws {
        var (machine, number) = try running()
        #expect(machine.signalEnded() == "driver")
        #expect(machine.currentRun(isCancelled: false) == .sleep)
        #expect(machine.driverSleeps("driver") == nil)
        #expect(machine.runEnded(number, nil) == "driver")
        #expect(machine.currentRun(isCancelled: false) == .end)
        machine.driverArrived()
        #expect(machine.nextRun(isCancelled: false).text == "finish")
    }

    @Test("an output before the signal's end gives one more run")
    func outputThenEnd() {
        var machine = Machine()
        _ = machine.output("next")
        _ = machine.signalEnded()
        machine.driverArrived()
        #expect(machine.nextRun(isCancelled: false).number != nil)
    }

    @Test("an event between the request and the sleep keeps the driver awake")
    func awake() throws {
        var machine = Machine()
        machine.driverArrived()
        #expect(machine.nextRun(isCancelled: false).text == "sleep")
        _ = machine.signalEnded()
        #expect(machine.driverSleeps("driver") == "driver")

        var (other, _) = try running()
        _ = other.cancel()
        #expect(other.driverSleeps("driver") == "driver")
        #expect(other.currentRun(isCancelled: true) == .end)
        other.driverArrived()
        #expect(other.nextRun(isCancelled: true).text == "finish")
    }
}

extension LatestRunStateMachine.StartAction {
    fileprivate var number: LatestRunStateMachine.RunNumber? {
        if case .start(let number, _) = self { number } else { nil }
    }

    fileprivate var text: String {
        switch self {
        case .start: "start"
        case .finish(nil): "finish"
        case .finish: "fail"
        case .sleep: "sleep"
        }
    }
}
