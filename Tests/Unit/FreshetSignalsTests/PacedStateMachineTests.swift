import Testing

@testable import FreshetSignals

/// Instants are milliseconds, so that a dialogue reads as one.
struct Tick: InstantProtocol {
    let count: Int

    init(_ count: Int) {
        self.count = count
    }

    func advanced(by duration: Duration) -> Tick { Tick(count + Int(duration / .milliseconds(1))) }
    func duration(to other: Tick) -> Duration { .milliseconds(other.count - count) }
    static func < (left: Tick, right: Tick) -> Bool { left.count < right.count }
}

@Suite("When debounce lets elements out, element by element")
struct DebounceRuleTests {
    typealias Rule = DebounceRule<Tick>

    func rule(_ quiet: Int, atMost: Int? = nil, leading: Bool = false) -> Rule {
        Rule(quiet: .milliseconds(quiet), atMost: atMost.map { .milliseconds($0) }, leading: leading)
    }

    @Test("each element moves the end of the quiet; atMost is counted from the first that is held")
    func storm() {
        var rule = rule(10, atMost: 25)
        #expect(rule.arrival(at: Tick(0), isHolding: false) == .hold(until: Tick(10)))
        #expect(rule.arrival(at: Tick(9), isHolding: true) == .hold(until: Tick(19)))
        #expect(rule.arrival(at: Tick(18), isHolding: true) == .hold(until: Tick(25)))
        rule.delivered(at: Tick(25))
        // Still a storm: 25 is not 10 after 18 … and a new count from the first that is held.
        #expect(rule.arrival(at: Tick(27), isHolding: false) == .hold(until: Tick(37)))
        #expect(rule.arrival(at: Tick(36), isHolding: true) == .hold(until: Tick(46)))
        #expect(rule.arrival(at: Tick(45), isHolding: true) == .hold(until: Tick(52)))
    }

    @Test("in calm a leading element passes, and not at the instant at which calm begins")
    func leading() {
        var rule = rule(10, leading: true)
        #expect(rule.arrival(at: Tick(0), isHolding: false) == .pass)
        rule.delivered(at: Tick(0))
        #expect(rule.arrival(at: Tick(10), isHolding: false) == .hold(until: Tick(20)))
        rule.delivered(at: Tick(20))
        #expect(rule.arrival(at: Tick(20), isHolding: false) == .pass, "the timer has come before this one")
        rule.delivered(at: Tick(20))
        #expect(rule.arrival(at: Tick(31), isHolding: false) == .pass)
    }

    @Test("an element in calm begins a storm of its own, although an older one is still held")
    func untaken() {
        var rule = rule(10, atMost: 15)
        #expect(rule.arrival(at: Tick(0), isHolding: false) == .hold(until: Tick(10)))
        #expect(rule.arrival(at: Tick(100), isHolding: true) == .hold(until: Tick(110)))
        #expect(rule.arrival(at: Tick(109), isHolding: true) == .hold(until: Tick(115)))
    }

    @Test("a storm that nobody asks in has its atMost counted from the first all the same")
    func untakenStorm() {
        var rule = rule(10, atMost: 15)
        for instant in stride(from: 0, to: 90, by: 9) {
            let due = min(instant + 10, 15)
            #expect(rule.arrival(at: Tick(instant), isHolding: instant > 0) == .hold(until: Tick(due)))
        }
    }

    @Test("times of zero or less are no wait", arguments: [(0, nil), (-1, nil), (10, 0), (10, -1)] as [(Int, Int?)])
    func zero(_ quiet: Int, _ atMost: Int?) {
        var rule = rule(quiet, atMost: atMost)
        for instant in [0, 0, 1, 50] {
            #expect(rule.arrival(at: Tick(instant), isHolding: false) == .pass)
            rule.delivered(at: Tick(instant))
        }
    }

    @Test("the longest wait is some hundred years, so that no clock overflows")
    func longest() {
        #expect(Duration.seconds(Int64.max).asPace == .longestPace)
        #expect((.longestPace + .nanoseconds(1)).asPace == .longestPace)
        #expect((.longestPace - .nanoseconds(1)).asPace == .longestPace - .nanoseconds(1))
        #expect(Duration.nanoseconds(-1).asPace == .zero)
        #expect(Duration.longestPace > .seconds(100 * 365 * 86_400))
    }
}

@Suite("When throttle lets elements out, element by element")
struct ThrottleRuleTests {
    typealias Rule = ThrottleRule<Tick>

    @Test("the first passes; in an interval the others are held until its end, that instant included")
    func interval() {
        var rule = Rule(interval: .milliseconds(10), latest: true)
        #expect(rule.arrival(at: Tick(0), isHolding: false) == .pass)
        rule.delivered(at: Tick(1))
        #expect(rule.arrival(at: Tick(1), isHolding: false) == .hold(until: Tick(11)))
        #expect(rule.arrival(at: Tick(11), isHolding: true) == .hold(until: Tick(11)))
        rule.delivered(at: Tick(11))
        #expect(rule.arrival(at: Tick(22), isHolding: false) == .pass)
    }

    @Test("without `latest` an element that is held stays")
    func first() {
        var rule = Rule(interval: .milliseconds(10), latest: false)
        #expect(rule.arrival(at: Tick(0), isHolding: false) == .pass)
        #expect(rule.arrival(at: Tick(5), isHolding: true) == .drop)
        rule.delivered(at: Tick(6))
        #expect(rule.arrival(at: Tick(7), isHolding: false) == .hold(until: Tick(16)))
        #expect(rule.arrival(at: Tick(8), isHolding: true) == .drop)
    }

    @Test("an element that nobody has taken begins no interval")
    func untaken() {
        var rule = Rule(interval: .milliseconds(10), latest: true)
        #expect(rule.arrival(at: Tick(0), isHolding: false) == .pass)
        #expect(rule.arrival(at: Tick(5), isHolding: true) == .pass)
    }

    @Test("an interval of zero or less never lasts", arguments: [0, -1])
    func zero(_ interval: Int) {
        var rule = Rule(interval: .milliseconds(interval), latest: true)
        for _ in 0..<3 {
            #expect(rule.arrival(at: Tick(0), isHolding: false) == .pass)
            rule.delivered(at: Tick(0))
        }
    }
}

@Suite("What is held until it is due and asked for, event by event")
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

    @Test("a timer is set when an element is held and asked for, and what is due then is the answer")
    func timer() {
        var machine = machine()
        #expect(machine.asked(at: Tick(0)).text == "nothing")
        #expect(machine.element("a", at: Tick(1)).text == "wake t")
        #expect(machine.timeAction().text == "sleep until 11")
        #expect(machine.element("b", at: Tick(5)).text == "nothing", "the timer is not set anew")
        #expect(machine.timePassed(at: Tick(11)).text == "nothing", "too early for b")
        #expect(machine.timeAction().text == "sleep until 15")
        #expect(machine.timePassed(at: Tick(15)).text == "deliver b")
        #expect(machine.timeAction().text == "wait")
    }

    @Test("while nobody asks there is no timer; the question finds what is due, or sets it")
    func unasked() {
        var machine = machine()
        #expect(machine.element("a", at: Tick(0)).text == "nothing")
        #expect(machine.timeAction().text == "wait")
        #expect(machine.asked(at: Tick(5)).text == "wake t")
        #expect(machine.timeAction().text == "sleep until 10")
        #expect(machine.timePassed(at: Tick(10)).text == "deliver a")
        #expect(machine.element("b", at: Tick(20)).text == "nothing")
        #expect(machine.asked(at: Tick(30)).text == "deliver b")
        #expect(machine.asked(at: Tick(31)).text == "nothing")
    }

    @Test("one answer for a question, however often it is put")
    func oneAnswer() {
        var machine = machine(leading: true)
        #expect(machine.asked(at: Tick(0)).text == "nothing")
        #expect(machine.asked(at: Tick(0)).text == "nothing")
        #expect(machine.element("a", at: Tick(0)).text == "deliver a")
        #expect(machine.element("b", at: Tick(0)).text == "nothing", "nobody asks")
        #expect(machine.timePassed(at: Tick(10)).text == "nothing")
        #expect(machine.asked(at: Tick(11)).text == "deliver b")
    }

    @Test("a timer that is late does not hide what was due from a newer element")
    func lateTimer() {
        var machine = machine()
        #expect(machine.asked(at: Tick(0)).text == "nothing")
        #expect(machine.element("a", at: Tick(0)).text == "wake t")
        #expect(machine.element("b", at: Tick(11)).text == "deliver a")
        #expect(machine.asked(at: Tick(12)).text == "nothing", "the timekeeper is awake")
        #expect(machine.timePassed(at: Tick(21)).text == "deliver b")
    }

    @Test("at the end what debounce holds is due; the timekeeper finishes when it was taken")
    func debounceEnds() {
        var machine = machine()
        #expect(machine.element("a", at: Tick(0)).text == "nothing")
        #expect(machine.upstreamEnded(at: Tick(1)).text == "wake t")
        #expect(machine.timeAction().text == "wait")
        #expect(machine.timekeeperSleeps("t") == nil)
        #expect(machine.asked(at: Tick(2)).text == "deliver a, wake t")
        #expect(machine.timeAction().text == "finish")
        #expect(machine.timekeeperSleeps("t") == "t")
    }

    @Test("at the end what debounce holds is the answer of who asks")
    func debounceEndsAsked() {
        var machine = machine()
        #expect(machine.asked(at: Tick(0)).text == "nothing")
        #expect(machine.element("a", at: Tick(0)).text == "wake t")
        #expect(machine.upstreamEnded(at: Tick(1)).text == "deliver a")
        #expect(machine.timeAction().text == "finish")
    }

    @Test("at the end what throttle holds goes out at its time")
    func throttleEnds() {
        var machine = Throttling(rule: ThrottleRule(interval: .milliseconds(10), latest: true))
        machine.timekeeperArrived()
        #expect(machine.asked(at: Tick(0)).text == "nothing")
        #expect(machine.element("a", at: Tick(0)).text == "deliver a")
        #expect(machine.asked(at: Tick(1)).text == "nothing")
        #expect(machine.element("b", at: Tick(2)).text == "nothing", "the timekeeper is awake")
        #expect(machine.upstreamEnded(at: Tick(3)).text == "nothing")
        #expect(machine.timeAction().text == "sleep until 10")
        #expect(machine.timePassed(at: Tick(10)).text == "deliver b")
        #expect(machine.timeAction().text == "finish")
    }

    @Test("an end with nothing held is an end at once")
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
