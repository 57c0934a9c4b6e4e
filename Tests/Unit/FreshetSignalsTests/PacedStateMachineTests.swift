import Testing

@testable import FreshetSignals

/// Instants in milliseconds, so that a sequence of events is easy to read.
struct Tick: InstantProtocol {
    let count: Int

    init(_ count: Int) {
        self.count = count
    }

    func advanced(by duration: Duration) -> Tick { Tick(count + Int(duration / .milliseconds(1))) }
    func duration(to other: Tick) -> Duration { .milliseconds(other.count - count) }
    static func < (left: Tick, right: Tick) -> Bool { left.count < right.count }
}

@Suite("When debounce delivers elements, element by element")
struct DebounceRuleTests {
    typealias Rule = DebounceRule<Tick>

    func rule(_ quiet: Int, atMost: Int? = nil, leading: Bool = false) -> Rule {
        Rule(quiet: .milliseconds(quiet), atMost: atMost.map { .milliseconds($0) }, leading: leading)
    }

    @Test("each element moves the end of the quiet period; atMost is counted from the first held element")
    func burst() {
        var rule = rule(10, atMost: 25)
        #expect(rule.arrival(at: Tick(0), isHolding: false) == .hold(until: Tick(10)))
        #expect(rule.arrival(at: Tick(9), isHolding: true) == .hold(until: Tick(19)))
        #expect(rule.arrival(at: Tick(18), isHolding: true) == .hold(until: Tick(25)))
        rule.delivered(at: Tick(25))
        // The burst continues: 25 comes before 10 after 18; then the count starts with the next held element.
        #expect(rule.arrival(at: Tick(27), isHolding: false) == .hold(until: Tick(37)))
        #expect(rule.arrival(at: Tick(36), isHolding: true) == .hold(until: Tick(46)))
        #expect(rule.arrival(at: Tick(45), isHolding: true) == .hold(until: Tick(52)))
    }

    @Test("after a quiet period a leading element passes, but not at the last instant of the period")
    func leading() {
        var rule = rule(10, leading: true)
        #expect(rule.arrival(at: Tick(0), isHolding: false) == .pass)
        rule.delivered(at: Tick(0))
        #expect(rule.arrival(at: Tick(10), isHolding: false) == .hold(until: Tick(20)))
        rule.delivered(at: Tick(20))
        #expect(rule.arrival(at: Tick(20), isHolding: false) == .pass, "the timer fired before this element")
        rule.delivered(at: Tick(20))
        #expect(rule.arrival(at: Tick(31), isHolding: false) == .pass)
    }

    @Test("an element after a quiet period begins a new burst, although an older one is still held")
    func untaken() {
        var rule = rule(10, atMost: 15)
        #expect(rule.arrival(at: Tick(0), isHolding: false) == .hold(until: Tick(10)))
        #expect(rule.arrival(at: Tick(100), isHolding: true) == .hold(until: Tick(110)))
        #expect(rule.arrival(at: Tick(109), isHolding: true) == .hold(until: Tick(115)))
    }

    @Test("in a burst without a waiting next(), atMost is still counted from the first element")
    func untakenBurst() {
        var rule = rule(10, atMost: 15)
        for instant in stride(from: 0, to: 90, by: 9) {
            let due = min(instant + 10, 15)
            #expect(rule.arrival(at: Tick(instant), isHolding: instant > 0) == .hold(until: Tick(due)))
        }
    }

    @Test("durations up to zero mean no delay", arguments: [(0, nil), (-1, nil), (10, 0), (10, -1)] as [(Int, Int?)])
    func zero(_ quiet: Int, _ atMost: Int?) {
        var rule = rule(quiet, atMost: atMost)
        for instant in [0, 0, 1, 50] {
            #expect(rule.arrival(at: Tick(instant), isHolding: false) == .pass)
            rule.delivered(at: Tick(instant))
        }
    }

    @Test("the longest delay is over a hundred years, so that no clock overflows")
    func longest() {
        #expect(Duration.seconds(Int64.max).asPace == .longestPace)
        #expect((.longestPace + .nanoseconds(1)).asPace == .longestPace)
        #expect((.longestPace - .nanoseconds(1)).asPace == .longestPace - .nanoseconds(1))
        #expect(Duration.nanoseconds(-1).asPace == .zero)
        #expect(Duration.longestPace > .seconds(100 * 365 * 86_400))
    }
}

@Suite("When throttle delivers elements, element by element")
struct ThrottleRuleTests {
    typealias Rule = ThrottleRule<Tick>

    @Test("the first element passes; others are held until the end of the interval, including its last instant")
    func interval() {
        var rule = Rule(interval: .milliseconds(10), latest: true)
        #expect(rule.arrival(at: Tick(0), isHolding: false) == .pass)
        rule.delivered(at: Tick(1))
        #expect(rule.arrival(at: Tick(1), isHolding: false) == .hold(until: Tick(11)))
        #expect(rule.arrival(at: Tick(11), isHolding: true) == .hold(until: Tick(11)))
        rule.delivered(at: Tick(11))
        #expect(rule.arrival(at: Tick(22), isHolding: false) == .pass)
    }

    @Test("without `latest` a held element stays")
    func first() {
        var rule = Rule(interval: .milliseconds(10), latest: false)
        #expect(rule.arrival(at: Tick(0), isHolding: false) == .pass)
        #expect(rule.arrival(at: Tick(5), isHolding: true) == .drop)
        rule.delivered(at: Tick(6))
        #expect(rule.arrival(at: Tick(7), isHolding: false) == .hold(until: Tick(16)))
        #expect(rule.arrival(at: Tick(8), isHolding: true) == .drop)
    }

    @Test("an element that was not taken begins no interval")
    func untaken() {
        var rule = Rule(interval: .milliseconds(10), latest: true)
        #expect(rule.arrival(at: Tick(0), isHolding: false) == .pass)
        #expect(rule.arrival(at: Tick(5), isHolding: true) == .pass)
    }

    @Test("with an interval of zero or less every element passes", arguments: [0, -1])
    func zero(_ interval: Int) {
        var rule = Rule(interval: .milliseconds(interval), latest: true)
        for _ in 0..<3 {
            #expect(rule.arrival(at: Tick(0), isHolding: false) == .pass)
            rule.delivered(at: Tick(0))
        }
    }
}

@Suite("An element is held until it is due and requested, event by event")
struct PacedStateMachineTests {
    typealias Machine = PacedStateMachine<String, DebounceRule<Tick>, String>
    typealias Throttling = PacedStateMachine<String, ThrottleRule<Tick>, String>

    /// A debouncing machine whose timekeeper waits.
    func machine(quiet: Int = 10, leading: Bool = false) -> Machine {
        var machine = Machine(rule: DebounceRule(quiet: .milliseconds(quiet), atMost: nil, leading: leading))
        machine.timekeeperArrived()
        #expect(machine.timekeeperSleeps("t") == nil)
        return machine
    }

    @Test("a timer is set when an element is held and requested, and answers with the element that is due then")
    func timer() {
        var machine = machine()
        #expect(machine.requested(at: Tick(0)).text == "nothing")
        #expect(machine.element("a", at: Tick(1)).text == "wake t")
        #expect(machine.timeAction().text == "sleep until 11")
        #expect(machine.element("b", at: Tick(5)).text == "nothing", "the timer is not set again")
        #expect(machine.timePassed(at: Tick(11)).text == "nothing", "too early for b")
        #expect(machine.timeAction().text == "sleep until 15")
        #expect(machine.timePassed(at: Tick(15)).text == "deliver b")
        #expect(machine.timeAction().text == "wait")
    }

    @Test("without a request there is no timer; a request gets a due element, or sets the timer")
    func unasked() {
        var machine = machine()
        #expect(machine.element("a", at: Tick(0)).text == "nothing")
        #expect(machine.timeAction().text == "wait")
        #expect(machine.requested(at: Tick(5)).text == "wake t")
        #expect(machine.timeAction().text == "sleep until 10")
        #expect(machine.timePassed(at: Tick(10)).text == "deliver a")
        #expect(machine.element("b", at: Tick(20)).text == "nothing")
        #expect(machine.requested(at: Tick(30)).text == "deliver b")
        #expect(machine.requested(at: Tick(31)).text == "nothing")
    }

    @Test("a request gets one answer, however often it is repeated")
    func oneAnswer() {
        var machine = machine(leading: true)
        #expect(machine.requested(at: Tick(0)).text == "nothing")
        #expect(machine.requested(at: Tick(0)).text == "nothing")
        #expect(machine.element("a", at: Tick(0)).text == "deliver a")
        #expect(machine.element("b", at: Tick(0)).text == "nothing", "there is no request")
        #expect(machine.timePassed(at: Tick(10)).text == "nothing")
        #expect(machine.requested(at: Tick(11)).text == "deliver b")
    }

    @Test("a newer element does not replace an element that was due before, even if the timer is late")
    func lateTimer() {
        var machine = machine()
        #expect(machine.requested(at: Tick(0)).text == "nothing")
        #expect(machine.element("a", at: Tick(0)).text == "wake t")
        #expect(machine.element("b", at: Tick(11)).text == "deliver a")
        #expect(machine.requested(at: Tick(12)).text == "nothing", "the timekeeper is awake")
        #expect(machine.timePassed(at: Tick(21)).text == "deliver b")
    }

    @Test("at the end the element that debounce holds is due; the timekeeper finishes when it was taken")
    func debounceEnds() {
        var machine = machine()
        #expect(machine.element("a", at: Tick(0)).text == "nothing")
        #expect(machine.upstreamEnded(at: Tick(1)).text == "wake t")
        #expect(machine.timeAction().text == "wait")
        #expect(machine.timekeeperSleeps("t") == nil)
        #expect(machine.requested(at: Tick(2)).text == "deliver a, wake t")
        #expect(machine.timeAction().text == "finish")
        #expect(machine.timekeeperSleeps("t") == "t")
    }

    @Test("at the end the element that debounce holds answers a request")
    func debounceEndsAsked() {
        var machine = machine()
        #expect(machine.requested(at: Tick(0)).text == "nothing")
        #expect(machine.element("a", at: Tick(0)).text == "wake t")
        #expect(machine.upstreamEnded(at: Tick(1)).text == "deliver a")
        #expect(machine.timeAction().text == "finish")
    }

    @Test("at the end the element that throttle holds is delivered at its time")
    func throttleEnds() {
        var machine = Throttling(rule: ThrottleRule(interval: .milliseconds(10), latest: true))
        machine.timekeeperArrived()
        #expect(machine.requested(at: Tick(0)).text == "nothing")
        #expect(machine.element("a", at: Tick(0)).text == "deliver a")
        #expect(machine.requested(at: Tick(1)).text == "nothing")
        #expect(machine.element("b", at: Tick(2)).text == "nothing", "the timekeeper is awake")
        #expect(machine.upstreamEnded(at: Tick(3)).text == "nothing")
        #expect(machine.timeAction().text == "sleep until 10")
        #expect(machine.timePassed(at: Tick(10)).text == "deliver b")
        #expect(machine.timeAction().text == "finish")
    }

    @Test("without a held element the end comes immediately")
    func endOfNothing() {
        var machine = machine()
        #expect(machine.upstreamEnded(at: Tick(0)).text == "wake t")
        #expect(machine.timeAction().text == "finish")
        machine.timekeeperLeft()
    }

    @Test("a cancelled timekeeper is woken, and does not fall asleep again")
    func cancelled() {
        var machine = machine()
        #expect(machine.cancelTimekeeper() == "t")
        #expect(machine.timekeeperSleeps("t") == "t")
        machine.timekeeperLeft()
    }
}

extension PacedStateMachine.Action where Element == String, Waiter == String {
    fileprivate var text: String {
        let parts = [delivery.map { "deliver \($0)" }, wake.map { "wake \($0)" }].compactMap { $0 }
        return parts.isEmpty ? "nothing" : parts.joined(separator: ", ")
    }
}

extension PacedStateMachine.TimeAction where Rule.Instant == Tick {
    fileprivate var text: String {
        switch self {
        case .sleep(let instant): "sleep until \(instant.count)"
        case .wait: "wait"
        case .finish: "finish"
        }
    }
}
