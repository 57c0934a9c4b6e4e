import Testing

@testable import FreshetSignals

@Suite("When runs begin and end, event by event")
struct LatestRunStateMachineTests {
    struct ValidationError: Error {}
    typealias Machine = LatestRunStateMachine<String, ValidationError, String>

    /// A machine with a run under way whose driver sleeps.
    func running() throws -> (Machine, Machine.RunNumber) {
        var machine = Machine(first: "first")
        machine.driverArrived()
        let number = try #require(machine.nextRun(isCancelled: false).number)
        machine.driverArrived()
        #expect(machine.presentRun(isCancelled: false) == .sleep)
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
        #expect(machine.presentRun(isCancelled: false) == .sleep)
        #expect(machine.driverSleeps("driver") == nil)
        #expect(machine.runEnded(number, nil) == "driver")
        #expect(machine.presentRun(isCancelled: false) == .end)
        machine.driverArrived()
        #expect(machine.nextRun(isCancelled: false).text == "sleep")
    }

    @Test("an output supersedes the run under way once; outputs until the next start are one")
    func supersedes() throws {
        var (machine, old) = try running()
        let action = machine.output("next")
        #expect(action.supersedes)
        #expect(action.wake == "driver")
        #expect(!machine.output("next").supersedes)
        #expect(machine.presentRun(isCancelled: false) == .end)
        #expect(machine.runEnded(old, ValidationError()) == nil, "what a superseded run says is no news")
        machine.driverArrived()
        let new = try #require(machine.nextRun(isCancelled: false).number)
        #expect(new != old)
        machine.driverArrived()
        #expect(machine.presentRun(isCancelled: false) == .sleep)
    }

    @Test("a late word of an old run does not end the new one")
    func lateWord() throws {
        var (machine, old) = try running()
        _ = machine.output("next")
        #expect(machine.presentRun(isCancelled: false) == .end)
        machine.driverArrived()
        _ = machine.nextRun(isCancelled: false)
        machine.driverArrived()
        #expect(machine.runEnded(old, ValidationError()) == nil)
        #expect(machine.presentRun(isCancelled: false) == .sleep)
    }

    @Test("a failure ends it, whatever the signal says afterwards")
    func failure() throws {
        var (machine, number) = try running()
        #expect(machine.runEnded(number, ValidationError()) == "driver")
        #expect(machine.presentRun(isCancelled: false) == .end)
        #expect(!machine.output("next").supersedes)
        machine.driverArrived()
        #expect(machine.nextRun(isCancelled: false).text == "fail")
    }

    @Test("the signal's end lets the run finish")
    func signalEnds() throws {
        var (machine, number) = try running()
        #expect(machine.signalEnded() == "driver")
        #expect(machine.presentRun(isCancelled: false) == .sleep)
        #expect(machine.driverSleeps("driver") == nil)
        #expect(machine.runEnded(number, nil) == "driver")
        #expect(machine.presentRun(isCancelled: false) == .end)
        machine.driverArrived()
        #expect(machine.nextRun(isCancelled: false).text == "finish")
    }

    @Test("an output and then the end of the signal: one more run")
    func outputThenEnd() {
        var machine = Machine()
        _ = machine.output("next")
        _ = machine.signalEnded()
        machine.driverArrived()
        #expect(machine.nextRun(isCancelled: false).number != nil)
    }

    @Test("what happens between asking and falling asleep keeps the driver awake")
    func awake() throws {
        var machine = Machine()
        machine.driverArrived()
        #expect(machine.nextRun(isCancelled: false).text == "sleep")
        _ = machine.signalEnded()
        #expect(machine.driverSleeps("driver") == "driver")

        var (other, _) = try running()
        _ = other.cancel()
        #expect(other.driverSleeps("driver") == "driver")
        #expect(other.presentRun(isCancelled: true) == .end)
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
