import Testing

@testable import FreshetSignals

@Suite("The way of elements from a driver to next(), event by event")
struct HandoffStateMachineTests {
    struct ValidationError: Error, Equatable {}
    typealias Machine = HandoffStateMachine<Int, ValidationError, String, String>

    /// A machine whose driver runs, and its round.
    func running() -> (Machine, Machine.Round) {
        var machine = Machine()
        machine.arrive()
        #expect(machine.ask().text == "start")
        let round = machine.beginRound().round
        return (machine, round)
    }

    @Test("the driver starts at the first next() and not before")
    func start() {
        var machine = Machine()
        machine.arrive()
        #expect(machine.ask().text == "start")
        #expect(machine.ask().text == "sleep")
        #expect(machine.sleep("consumer") == nil)
    }

    @Test("an offer wakes the consumer, which takes it and frees the producer")
    func offer() {
        var (machine, round) = running()
        #expect(machine.sleep("consumer") == nil)
        #expect(machine.offer(1, in: round, by: "p").text == "hold, wake consumer")
        #expect(machine.offer(2, in: round, by: "q").text == "hold")
        #expect(machine.ask().text == "deliver 1 of p")
        machine.arrive()
        #expect(machine.ask().text == "deliver 2 of q")
        machine.arrive()
        #expect(machine.ask().text == "sleep")
    }

    @Test("an offer between asking and falling asleep keeps the consumer awake")
    func offerBeforeSleep() {
        var (machine, round) = running()
        #expect(machine.ask().text == "sleep")
        #expect(machine.offer(1, in: round, by: "p").text == "hold")
        #expect(machine.sleep("consumer") == "consumer")
    }

    @Test("a new round drops what waits and what comes late")
    func rounds() {
        var (machine, old) = running()
        #expect(machine.offer(1, in: old, by: "p").text == "hold")
        let (new, dropped) = machine.beginRound()
        #expect(dropped == ["p"])
        #expect(machine.offer(2, in: old, by: "p").text == "drop")
        #expect(machine.ask().text == "sleep")
        #expect(machine.offer(3, in: new, by: "p").text == "hold")
        #expect(machine.ask().text == "deliver 3 of p")
    }

    @Test("the end and a failure are delivered once, then the end for ever")
    func ends() {
        var (machine, _) = running()
        #expect(machine.sleep("consumer") == nil)
        #expect(machine.driverEnded(ValidationError()) == "consumer")
        #expect(machine.ask().text == "fail")
        machine.arrive()
        #expect(machine.ask().text == "end")
    }

    @Test("cancelled before it began it ends without a driver")
    func cancelledIdle() {
        var machine = Machine()
        #expect(!machine.cancel().cancelsDriver)
        machine.arrive()
        #expect(machine.ask().text == "end")
    }

    @Test("a cancelled consumer sleeps on until the driver has ended, and gets no failure")
    func cancelledAsleep() {
        var (machine, round) = running()
        #expect(machine.offer(1, in: round, by: "p").text == "hold")
        let action = machine.cancel()
        #expect(action.cancelsDriver)
        #expect(action.dropped == ["p"])
        #expect(action.wake == nil)
        #expect(machine.isStopping)
        #expect(!machine.cancel().cancelsDriver, "a second cancellation has no effect")
        #expect(machine.ask().text == "sleep")
        #expect(machine.sleep("consumer") == nil)
        #expect(machine.offer(2, in: round, by: "p").text == "drop")
        #expect(machine.driverEnded(ValidationError()) == "consumer")
        #expect(machine.ask().text == "end")
    }

    @Test("an answer wakes who asked, or keeps it awake, and comes before the end")
    func answer() {
        var (machine, _) = running()
        #expect(machine.ask().text == "sleep")
        #expect(machine.answer(1) == nil)
        #expect(machine.sleep("consumer") == "consumer")
        #expect(machine.ask().text == "take 1")
        machine.arrive()
        #expect(machine.ask().text == "sleep")
        #expect(machine.sleep("consumer") == nil)
        #expect(machine.answer(2) == "consumer")
        #expect(machine.driverEnded(ValidationError()) == nil)
        #expect(machine.ask().text == "take 2")
        machine.arrive()
        #expect(machine.ask().text == "fail")
        machine.arrive()
        #expect(machine.ask().text == "end")
    }

    @Test("an answer that comes when the driver has ended is still taken")
    func lateAnswer() {
        var (machine, _) = running()
        #expect(machine.driverEnded(nil) == nil)
        #expect(machine.answer(1) == nil)
        #expect(machine.ask().text == "take 1")
        machine.arrive()
        #expect(machine.ask().text == "end")
    }

    @Test("an answer to a cancelled iteration is dropped")
    func cancelledAnswer() {
        var (machine, _) = running()
        #expect(machine.answer(1) == nil)
        #expect(machine.cancel().released == 1)
        #expect(machine.answer(2) == nil)
        #expect(machine.ask().text == "sleep")
        #expect(machine.driverEnded(nil) == nil)
        #expect(machine.ask().text == "end")
    }

    @Test("a child's conclusion drops what waits, cancels the driver, and is delivered when that has ended")
    func concluded() {
        var (machine, round) = running()
        #expect(machine.offer(1, in: round, by: "p").text == "hold")
        let action = machine.conclude(ValidationError())
        #expect(action.cancelsDriver)
        #expect(action.dropped == ["p"])
        #expect(machine.isStopping)
        #expect(!machine.conclude(nil).cancelsDriver, "the first to say so is right")
        #expect(machine.offer(2, in: round, by: "p").text == "drop")
        #expect(machine.answer(3) == nil)
        #expect(machine.ask().text == "sleep")
        #expect(machine.sleep("consumer") == nil)
        #expect(machine.driverEnded(nil) == "consumer")
        #expect(machine.ask().text == "fail")
        machine.arrive()
        #expect(machine.ask().text == "end")
    }

    @Test("a cancellation after a conclusion is stronger: the iteration ends without a failure")
    func concludedAndCancelled() {
        var (machine, _) = running()
        #expect(machine.conclude(ValidationError()).cancelsDriver)
        #expect(!machine.cancel().cancelsDriver, "it is cancelled already")
        #expect(machine.driverEnded(nil) == nil)
        #expect(machine.ask().text == "end")
        var (other, _) = running()
        #expect(other.cancel().cancelsDriver)
        #expect(!other.conclude(ValidationError()).cancelsDriver)
        #expect(other.driverEnded(nil) == nil)
        #expect(other.ask().text == "end")
    }

    @Test("a failure that nobody took is dropped by a cancellation")
    func cancelledAfterEnd() {
        var (machine, _) = running()
        #expect(machine.driverEnded(ValidationError()) == nil)
        #expect(!machine.cancel().cancelsDriver)
        #expect(machine.ask().text == "end")
    }
}

extension HandoffStateMachine.AskAction where Element == Int, Producer == String {
    fileprivate var text: String {
        switch self {
        case .start: "start"
        case .deliver(let element, let producer): "deliver \(element) of \(producer)"
        case .take(let element): "take \(element)"
        case .fail: "fail"
        case .end: "end"
        case .sleep: "sleep"
        }
    }
}

extension HandoffStateMachine.OfferAction where Consumer == String {
    fileprivate var text: String {
        switch self {
        case .drop: "drop"
        case .hold(let wake): wake.map { "hold, wake \($0)" } ?? "hold"
        }
    }
}
