import Testing

@testable import FreshetSignals

@Suite("The hand-over of elements from a driver to next(), event by event")
struct HandoffStateMachineTests {
    struct ValidationError: Error, Equatable {}
    typealias Machine = HandoffStateMachine<Int, ValidationError, String, String>

    /// A machine whose driver runs, and its round.
    func running() -> (Machine, Machine.Round) {
        var machine = Machine()
        machine.arrive()
        #expect(machine.request().text == "start")
        let round = machine.beginRound().round
        return (machine, round)
    }

    @Test("the driver starts at the first next() and not before")
    func start() {
        var machine = Machine()
        machine.arrive()
        #expect(machine.request().text == "start")
        #expect(machine.request().text == "sleep")
        #expect(machine.sleep("consumer") == nil)
    }

    @Test("an offer wakes the consumer, which takes it and releases the producer")
    func offer() {
        var (machine, round) = running()
        #expect(machine.sleep("consumer") == nil)
        #expect(machine.offer(1, in: round, by: "p").text == "hold, wake consumer")
        #expect(machine.offer(2, in: round, by: "q").text == "hold")
        #expect(machine.request().text == "deliver 1 of p")
        machine.arrive()
        #expect(machine.request().text == "deliver 2 of q")
        machine.arrive()
        #expect(machine.request().text == "sleep")
    }

    @Test("an offer between the request and the sleep keeps the consumer awake")
    func offerBeforeSleep() {
        var (machine, round) = running()
        #expect(machine.request().text == "sleep")
        #expect(machine.offer(1, in: round, by: "p").text == "hold")
        #expect(machine.sleep("consumer") == "consumer")
    }

    @Test("a new round drops waiting and late offers")
    func rounds() {
        var (machine, old) = running()
        #expect(machine.offer(1, in: old, by: "p").text == "hold")
        let (new, dropped) = machine.beginRound()
        #expect(dropped == ["p"])
        #expect(machine.offer(2, in: old, by: "p").text == "drop")
        #expect(machine.request().text == "sleep")
        #expect(machine.offer(3, in: new, by: "p").text == "hold")
        #expect(machine.request().text == "deliver 3 of p")
    }

    @Test("the end and a failure are delivered once, then the end for ever")
    func ends() {
        var (machine, _) = running()
        #expect(machine.sleep("consumer") == nil)
        #expect(machine.driverEnded(ValidationError()) == "consumer")
        #expect(machine.request().text == "fail")
        machine.arrive()
        #expect(machine.request().text == "end")
    }

    @Test("an iteration that is cancelled before it began ends without a driver")
    func cancelledIdle() {
        var machine = Machine()
        #expect(!machine.cancel().cancelsDriver)
        machine.arrive()
        #expect(machine.request().text == "end")
    }

    @Test("a cancelled consumer sleeps until the driver has ended, and gets no failure")
    func cancelledAsleep() {
        var (machine, round) = running()
        #expect(machine.offer(1, in: round, by: "p").text == "hold")
        let action = machine.cancel()
        #expect(action.cancelsDriver)
        #expect(action.dropped == ["p"])
        #expect(action.wake == nil)
        #expect(machine.isStopping)
        #expect(!machine.cancel().cancelsDriver, "a second cancellation has no effect")
        #expect(machine.request().text == "sleep")
        #expect(machine.sleep("consumer") == nil)
        #expect(machine.offer(2, in: round, by: "p").text == "drop")
        #expect(machine.driverEnded(ValidationError()) == "consumer")
        #expect(machine.request().text == "end")
    }

    @Test("an answer wakes the consumer, or keeps it awake, and comes before the end")
    func answer() {
        var (machine, _) = running()
        #expect(machine.request().text == "sleep")
        #expect(machine.answer(1) == nil)
        #expect(machine.sleep("consumer") == "consumer")
        #expect(machine.request().text == "take 1")
        machine.arrive()
        #expect(machine.request().text == "sleep")
        #expect(machine.sleep("consumer") == nil)
        #expect(machine.answer(2) == "consumer")
        #expect(machine.driverEnded(ValidationError()) == nil)
        #expect(machine.request().text == "take 2")
        machine.arrive()
        #expect(machine.request().text == "fail")
        machine.arrive()
        #expect(machine.request().text == "end")
    }

    @Test("an answer after the driver's end is still taken")
    func lateAnswer() {
        var (machine, _) = running()
        #expect(machine.driverEnded(nil) == nil)
        #expect(machine.answer(1) == nil)
        #expect(machine.request().text == "take 1")
        machine.arrive()
        #expect(machine.request().text == "end")
    }

    @Test("an answer to a cancelled iteration is dropped")
    func cancelledAnswer() {
        var (machine, _) = running()
        #expect(machine.answer(1) == nil)
        #expect(machine.cancel().released == 1)
        #expect(machine.answer(2) == nil)
        #expect(machine.request().text == "sleep")
        #expect(machine.driverEnded(nil) == nil)
        #expect(machine.request().text == "end")
    }

    @Test("a child's conclusion drops waiting offers, cancels the driver, and is delivered when the driver has ended")
    func concluded() {
        var (machine, round) = running()
        #expect(machine.offer(1, in: round, by: "p").text == "hold")
        let action = machine.conclude(ValidationError())
        #expect(action.cancelsDriver)
        #expect(action.dropped == ["p"])
        #expect(machine.isStopping)
        #expect(!machine.conclude(nil).cancelsDriver, "only the first conclusion counts")
        #expect(machine.offer(2, in: round, by: "p").text == "drop")
        #expect(machine.answer(3) == nil)
        #expect(machine.request().text == "sleep")
        #expect(machine.sleep("consumer") == nil)
        #expect(machine.driverEnded(nil) == "consumer")
        #expect(machine.request().text == "fail")
        machine.arrive()
        #expect(machine.request().text == "end")
    }

    @Test("a cancellation overrides a conclusion: the iteration ends without a failure")
    func concludedAndCancelled() {
        var (machine, _) = running()
        #expect(machine.conclude(ValidationError()).cancelsDriver)
        #expect(!machine.cancel().cancelsDriver, "it is already cancelled")
        #expect(machine.driverEnded(nil) == nil)
        #expect(machine.request().text == "end")
        var (other, _) = running()
        #expect(other.cancel().cancelsDriver)
        #expect(!other.conclude(ValidationError()).cancelsDriver)
        #expect(other.driverEnded(nil) == nil)
        #expect(other.request().text == "end")
    }

    @Test("a cancellation drops a failure that was not taken")
    func cancelledAfterEnd() {
        var (machine, _) = running()
        #expect(machine.driverEnded(ValidationError()) == nil)
        #expect(!machine.cancel().cancelsDriver)
        #expect(machine.request().text == "end")
    }
}

extension HandoffStateMachine.RequestAction where Element == Int, Producer == String {
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
