import Testing

@testable import FreshetSystemSignals

/// The clocks of a machine that sleeps on request, and the machine under test.
private struct Bench {
    var slept: Duration = .zero
    var wall: Duration = .seconds(1_700_000_000)
    let start = ContinuousClock.Instant.now
    /// Since the start, including sleep.
    var elapsed: Duration = .zero
    var machine: SleepMachine

    init(receivesSteps: Bool = true, logind: SleepFact.Availability = .available) {
        machine = SleepMachine(Self.reading(.zero, .seconds(1_700_000_000)), logind: logind, at: start)
        machine.receivesSteps = receivesSteps
    }

    /// A reading that took 200 ns.
    private static func reading(_ slept: Duration, _ wall: Duration) -> ClockReading {
        let monotonic: Duration = .seconds(1_000)
        let boot = monotonic + slept
        return ClockReading(
            monotonic: monotonic, boot: boot + .nanoseconds(50), realtime: boot + wall + .nanoseconds(100),
            boot: boot + .nanoseconds(150), monotonic: monotonic + .nanoseconds(200))
    }

    var now: ContinuousClock.Instant { start + elapsed }
    var reading: ClockReading { Self.reading(slept, wall) }

    mutating func sleep(_ duration: Duration) {
        slept += duration
        elapsed += duration
    }
    mutating func pass(_ duration: Duration) { elapsed += duration }
    mutating func wake() -> SleepMachine.Outcome { machine.wokeUp(reading, at: now) }
    mutating func clockSet() -> SleepMachine.Outcome { machine.clockWasSet(reading, at: now) }
    mutating func prepare(_ begins: Bool) -> SleepMachine.Outcome {
        machine.prepareForSleep(begins, reading, at: now)
    }
    mutating func property(_ isPreparing: Bool) -> SleepMachine.Outcome {
        machine.isPreparingForSleep(isPreparing, reading, at: now)
    }
}

private let nothing = SleepMachine.Outcome()

@Suite("Sleep and resume, event by event")
struct SleepMachineTests {
    @Test("events that are not a resume are counted; a second source of a resume is not")
    func minor() {
        var bench = Bench()
        #expect(bench.prepare(true) == nothing)
        bench.sleep(.seconds(60))
        #expect(bench.wake().resumed != nil)
        #expect(bench.clockSet() == nothing)
        #expect(bench.prepare(false) == nothing)
        #expect(bench.machine.minor == 0)
        // A sleep that is too short.
        bench.sleep(.milliseconds(20))
        #expect(bench.wake() == nothing)
        #expect(bench.machine.minor == 1)
        // A clock that was set, by much and by little.
        bench.wall += .seconds(90)
        #expect(bench.clockSet().stepped != nil)
        #expect(bench.machine.minor == 2)
        bench.wall += .milliseconds(50)
        #expect(bench.clockSet() == nothing)
        #expect(bench.machine.minor == 3)
        // logind repeats its message.
        #expect(bench.prepare(false) == nothing)
        #expect(bench.machine.minor == 4)
        // An announced sleep that did not follow.
        #expect(bench.prepare(true) == nothing)
        bench.pass(SleepMachine.longestPreparation)
        bench.machine.deadlinePassed(at: bench.now)
        #expect(bench.machine.minor == 5 && bench.machine.deadline == nil)
    }

    @Test("a jump of the boot clock is one resume")
    func jump() {
        var bench = Bench(logind: .unavailable(reason: "no bus"))
        #expect(bench.wake() == nothing)
        bench.sleep(.seconds(28_800))
        #expect(bench.wake().resumed == "slept 28800.0 s")
        #expect(bench.machine.fact.awakeSince == bench.now)
        #expect(bench.machine.fact.lastSleep.map { $0 > .seconds(28_799) } == true)
        #expect(bench.clockSet() == nothing)
        #expect(bench.wake() == nothing)
    }

    @Test("less than a second is not a sleep, even repeatedly; a second is")
    func shortSleep() {
        var bench = Bench()
        for _ in 0..<10 {
            bench.sleep(SleepMachine.shortestSleep - .milliseconds(1))
            #expect(bench.wake() == nothing)
        }
        #expect(bench.machine.fact.awakeSince == nil)
        bench.sleep(SleepMachine.shortestSleep + .milliseconds(1))
        #expect(bench.wake().resumed == "slept 1.0 s")
    }

    @Test("a reading that was interrupted, for however long, is not a sleep, and hides no sleep")
    func preempted() {
        var bench = Bench()
        let monotonic: Duration = .seconds(1_000)
        let after = monotonic + .seconds(60)
        // Preempted for a minute between the first two reads, and then between the last two.
        let early = ClockReading(
            monotonic: monotonic, boot: after, realtime: after + bench.wall, boot: after, monotonic: after)
        let late = ClockReading(
            monotonic: monotonic, boot: monotonic, realtime: monotonic + bench.wall, boot: monotonic, monotonic: after)
        // And around the wall clock.
        let middle = ClockReading(
            monotonic: monotonic, boot: monotonic, realtime: after + bench.wall, boot: after, monotonic: after)
        for reading in [early, late, middle] {
            #expect(bench.machine.wokeUp(reading, at: bench.now) == nothing)
            #expect(bench.machine.clockWasSet(reading, at: bench.now) == nothing)
            #expect(bench.wake() == nothing)
        }
        bench.sleep(.seconds(5))
        #expect(bench.wake().resumed == "slept 5.0 s")
    }

    @Test("an announced sleep fires nothing at (true), once at the jump, and nothing at (false)")
    func announced() {
        var bench = Bench()
        #expect(bench.prepare(true) == nothing)
        #expect(bench.machine.fact.isGoingToSleep)
        bench.sleep(.seconds(60))
        #expect(bench.wake().resumed != nil)
        #expect(!bench.machine.fact.isGoingToSleep)
        let fact = bench.machine.fact
        bench.pass(.seconds(3))
        #expect(bench.prepare(false) == nothing)
        #expect(bench.machine.fact == fact)
    }

    @Test("(false) before the loop has read the clocks: the clocks are read first, and it is one resume")
    func falseFirst() {
        var bench = Bench()
        _ = bench.prepare(true)
        bench.sleep(.seconds(60))
        #expect(bench.prepare(false).resumed == "slept 60.0 s")
        #expect(bench.wake() == nothing)
    }

    @Test("a failed suspend, with (true), (false) and no jump, is a resume without a length")
    func failed() {
        var bench = Bench()
        _ = bench.prepare(true)
        bench.pass(.milliseconds(30))
        #expect(bench.prepare(false).resumed == "awake again according to logind")
        #expect(bench.machine.fact.lastSleep == nil)
        #expect(bench.machine.fact.awakeSince == bench.now)
        #expect(!bench.machine.fact.isGoingToSleep)
    }

    @Test("clocks that are corrected after (false) set the length, and do not fire again")
    func lateClock() {
        var bench = Bench()
        _ = bench.prepare(true)
        #expect(bench.prepare(false).resumed != nil)
        bench.sleep(.seconds(2))
        bench.elapsed -= .seconds(2)  // the machine's own clock
        bench.pass(.milliseconds(500))
        #expect(bench.wake() == nothing)
        #expect(bench.machine.fact.lastSleep != nil)
        bench.sleep(.seconds(2))
        #expect(bench.wake().resumed != nil)
    }

    @Test("two sleeps in a row are two firings", arguments: [true, false])
    func twice(_ jumps: Bool) {
        var bench = Bench()
        var fired = 0
        for _ in 0..<2 {
            if bench.prepare(true).resumed != nil { fired += 1 }
            if jumps { bench.sleep(.seconds(10)) }
            if bench.wake().resumed != nil { fired += 1 }
            if bench.prepare(false).resumed != nil { fired += 1 }
        }
        #expect(fired == 2)
    }

    @Test("a second (false) without a (true) and without a jump is ignored")
    func falseAgain() {
        var bench = Bench()
        _ = bench.prepare(true)
        _ = bench.prepare(false)
        bench.pass(.seconds(300))
        #expect(bench.prepare(false) == nothing)
    }

    @Test("the first (false) after a reconnect fires: its (true) was missed")
    func missedTrue() {
        var bench = Bench()
        _ = bench.prepare(true)
        _ = bench.prepare(false)
        bench.machine.logindBecame(.unavailable(reason: "lost"))
        bench.machine.logindBecame(.available)
        bench.pass(.seconds(300))
        #expect(bench.prepare(false).resumed != nil)
        #expect(bench.prepare(false) == nothing)
    }

    @Test("the first (false) after a reconnect belongs to the resume of an earlier jump")
    func missedTrueWithJump() {
        var bench = Bench()
        bench.sleep(.seconds(60))
        #expect(bench.wake().resumed != nil)
        bench.machine.logindBecame(.unavailable(reason: "lost"))
        bench.machine.logindBecame(.available)
        bench.pass(SleepMachine.sameSleep - .seconds(1))
        #expect(bench.prepare(false) == nothing)
    }

    @Test("a (true) that was queued during the sleep is late: the clocks have shown the resume")
    func lateTrue() {
        var bench = Bench()
        bench.sleep(.seconds(60))
        #expect(bench.wake().resumed != nil)
        #expect(bench.prepare(true) == nothing)
        #expect(bench.prepare(false) == nothing)
        #expect(!bench.machine.fact.isGoingToSleep)
        // And the next one counts again.
        _ = bench.prepare(true)
        #expect(bench.prepare(false).resumed != nil)
    }

    @Test("a (false) that was lost with the bus is found in the property")
    func lostFalse() {
        var bench = Bench()
        _ = bench.prepare(true)
        bench.machine.logindBecame(.unavailable(reason: "lost"))
        bench.machine.logindBecame(.available)
        #expect(bench.machine.fact.isGoingToSleep)
        #expect(bench.property(false).resumed != nil)
        #expect(!bench.machine.fact.isGoingToSleep)
        #expect(bench.property(false) == nothing)
    }

    @Test("a (true) that was lost with the bus is found in the property, and its (false) fires")
    func lostTrue() {
        var bench = Bench()
        #expect(bench.property(true) == nothing)
        #expect(bench.machine.fact.isGoingToSleep)
        #expect(bench.property(true) == nothing)
        #expect(bench.prepare(false).resumed != nil)
    }

    @Test("an announced sleep that does not follow is given up after a time; its (false) still fires")
    func deadline() throws {
        var bench = Bench()
        _ = bench.prepare(true)
        let deadline = try #require(bench.machine.deadline)
        #expect(deadline == bench.now + SleepMachine.longestPreparation)
        bench.machine.deadlinePassed(at: deadline - .milliseconds(1))
        #expect(bench.machine.fact.isGoingToSleep)
        bench.machine.deadlinePassed(at: deadline)
        #expect(!bench.machine.fact.isGoingToSleep && bench.machine.deadline == nil)
        #expect(bench.prepare(false).resumed != nil)
    }

    @Test("a resume cancels the deadline")
    func deadlineTakenBack() {
        var bench = Bench()
        _ = bench.prepare(true)
        bench.sleep(.seconds(3_600))
        _ = bench.wake()
        #expect(bench.machine.deadline == nil)
        _ = bench.prepare(true)
        _ = bench.prepare(false)
        #expect(bench.machine.deadline == nil)
    }

    @Test("a wall clock that was set is a step and not a resume", arguments: [3_600, -3_600, 2, -2])
    func step(_ seconds: Int) {
        var bench = Bench()
        bench.wall += .seconds(seconds)
        #expect(bench.wake() == nothing)  // the kernel has not reported the step yet
        let outcome = bench.clockSet()
        #expect(outcome.resumed == nil)
        #expect(outcome.stepped?.hasPrefix("the clock was set \(seconds < 0 ? "back" : "forward") by ") == true)
        #expect(bench.machine.fact.clockSteppedAt == bench.now && bench.machine.fact.awakeSince == nil)
        #expect(bench.clockSet() == nothing)
    }

    @Test("a wall clock that is set by less than a second is not a step")
    func smallStep() {
        var bench = Bench()
        bench.wall += SleepMachine.shortestStep - .milliseconds(1)
        #expect(bench.clockSet() == nothing)
    }

    @Test("a slewed wall clock is not a step, however far it gets, whether or not the kernel reports steps")
    func slew() {
        for receivesSteps in [true, false] {
            var bench = Bench(receivesSteps: receivesSteps)
            for _ in 0..<100 {
                bench.pass(.seconds(3_600))
                bench.wall += .milliseconds(1_800)  // 500 ppm
                #expect(bench.wake() == nothing)
            }
            // The slew of the last hour may still be included.
            bench.wall += .seconds(60)
            #expect((receivesSteps ? bench.clockSet() : bench.wake()).stepped != nil)
        }
    }

    @Test("a step and a sleep at the same time are both reported")
    func stepAndSleep() {
        var bench = Bench()
        bench.sleep(.seconds(60))
        bench.wall += .seconds(10)
        let outcome = bench.clockSet()
        #expect(outcome.resumed != nil && outcome.stepped != nil)
    }

    @Test("a sleep does not move the wall clock against the boot clock, so it is not a step")
    func sleepIsNoStep() {
        var bench = Bench()
        bench.sleep(.seconds(60))
        #expect(bench.wake().stepped == nil)
        #expect(bench.clockSet() == nothing)
    }

    @Test("a boot clock that went back is the new reference")
    func behind() {
        var bench = Bench()
        bench.slept -= .seconds(100)
        #expect(bench.wake() == nothing)
        bench.slept += .seconds(50)
        #expect(bench.wake().resumed != nil)
    }

    @Test("the fact has a description for people")
    func descriptions() {
        #expect(SleepFact().description == "awake")
        #expect(SleepFact(isGoingToSleep: true).description == "going to sleep")
        #expect(SleepFact(awakeSince: .now).description == "awake again")
        #expect(
            SleepFact(awakeSince: .now, lastSleep: .milliseconds(1_250)).description == "awake, after 1.3 s of sleep")
    }

    @Test("the real clocks are read in a consistent order")
    func realClocks() {
        let first = ClockReading.now()
        let second = ClockReading.now()
        #expect(first.slept.upperBound >= .zero)
        #expect(second.slept.distance(from: first.slept) == .zero)
    }
}
