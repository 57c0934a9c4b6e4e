import Testing

@testable import FreshetSystemSignals

/// The clocks of a machine that sleeps when a test says so, and the machine under test.
private struct Bench {
    var slept: Duration = .zero
    var wall: Duration = .seconds(1_700_000_000)
    let start = ContinuousClock.Instant.now
    /// Since the start, sleep included.
    var elapsed: Duration = .zero
    var machine: SleepMachine

    init(hearsSteps: Bool = true, logind: SleepFact.Availability = .available) {
        machine = SleepMachine(Self.reading(.zero, .seconds(1_700_000_000)), logind: logind, at: start)
        machine.hearsSteps = hearsSteps
    }

    /// Read in 200 ns.
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

@Suite("Sleep and wake, as a dialogue")
struct SleepMachineTests {
    @Test("what was heard and is no wake is counted; a second witness of a wake is not")
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
        // logind repeats itself.
        #expect(bench.prepare(false) == nothing)
        #expect(bench.machine.minor == 4)
        // A sleep that was announced and did not come.
        #expect(bench.prepare(true) == nothing)
        bench.pass(SleepMachine.longestPreparation)
        bench.machine.deadlinePassed(at: bench.now)
        #expect(bench.machine.minor == 5 && bench.machine.deadline == nil)
    }

    @Test("a boot clock that jumped is a wake, once")
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

    @Test("less than a second is no sleep, and many such are none either; a second is")
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

    @Test("a look that was interrupted, for however long, is not taken for sleep, and hides none")
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

    @Test("an announced sleep: nothing at (true), one firing at the jump, none at (false)")
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

    @Test("(false) before the loop has looked: the look comes first, and it is one wake")
    func falseFirst() {
        var bench = Bench()
        _ = bench.prepare(true)
        bench.sleep(.seconds(60))
        #expect(bench.prepare(false).resumed == "slept 60.0 s")
        #expect(bench.wake() == nothing)
    }

    @Test("a suspend that failed: (true), (false) and no jump is a wake without a length")
    func failed() {
        var bench = Bench()
        _ = bench.prepare(true)
        bench.pass(.milliseconds(30))
        #expect(bench.prepare(false).resumed == "awake again, says logind")
        #expect(bench.machine.fact.lastSleep == nil)
        #expect(bench.machine.fact.awakeSince == bench.now)
        #expect(!bench.machine.fact.isGoingToSleep)
    }

    @Test("clocks that are set right only after (false) give the length, and no second firing")
    func lateClock() {
        var bench = Bench()
        _ = bench.prepare(true)
        #expect(bench.prepare(false).resumed != nil)
        bench.sleep(.seconds(2))
        bench.elapsed -= .seconds(2)  // the machine's own time, as it reads it
        bench.pass(.milliseconds(500))
        #expect(bench.wake() == nothing)
        #expect(bench.machine.fact.lastSleep != nil)
        bench.sleep(.seconds(2))
        #expect(bench.wake().resumed != nil)
    }

    @Test("two in a row are two firings", arguments: [true, false])
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

    @Test("a second (false) without a (true) and without a jump is nothing")
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

    @Test("the first (false) after a reconnect is the wake of a jump a while before")
    func missedTrueWithJump() {
        var bench = Bench()
        bench.sleep(.seconds(60))
        #expect(bench.wake().resumed != nil)
        bench.machine.logindBecame(.unavailable(reason: "lost"))
        bench.machine.logindBecame(.available)
        bench.pass(SleepMachine.sameSleep - .seconds(1))
        #expect(bench.prepare(false) == nothing)
    }

    @Test("a (true) that lay in a queue during the sleep is late: the wake was told by the clocks")
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

    @Test("a (false) that was lost with the bus is found by asking")
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

    @Test("a (true) that was lost with the bus is found by asking, and its (false) fires")
    func lostTrue() {
        var bench = Bench()
        #expect(bench.property(true) == nothing)
        #expect(bench.machine.fact.isGoingToSleep)
        #expect(bench.property(true) == nothing)
        #expect(bench.prepare(false).resumed != nil)
    }

    @Test("a sleep that is announced and never comes is given up after a time; its (false) still fires")
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

    @Test("a wake takes the deadline back")
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

    @Test("a wall clock that was set is a step and no wake", arguments: [3_600, -3_600, 2, -2])
    func step(_ seconds: Int) {
        var bench = Bench()
        bench.wall += .seconds(seconds)
        #expect(bench.wake() == nothing)  // the kernel's word is still to come
        let outcome = bench.clockSet()
        #expect(outcome.resumed == nil)
        #expect(outcome.stepped?.hasPrefix("the clock was set \(seconds < 0 ? "back" : "forward") by ") == true)
        #expect(bench.machine.fact.clockSteppedAt == bench.now && bench.machine.fact.awakeSince == nil)
        #expect(bench.clockSet() == nothing)
    }

    @Test("a wall clock that is set by less than a second is none")
    func smallStep() {
        var bench = Bench()
        bench.wall += SleepMachine.shortestStep - .milliseconds(1)
        #expect(bench.clockSet() == nothing)
    }

    @Test("a wall clock that is slewed is none, however far it gets, whether or not the kernel tells of steps")
    func slew() {
        for hearsSteps in [true, false] {
            var bench = Bench(hearsSteps: hearsSteps)
            for _ in 0..<100 {
                bench.pass(.seconds(3_600))
                bench.wall += .milliseconds(1_800)  // 500 ppm
                #expect(bench.wake() == nothing)
            }
            // The last hour's slew may still be in it.
            bench.wall += .seconds(60)
            #expect((hearsSteps ? bench.clockSet() : bench.wake()).stepped != nil)
        }
    }

    @Test("a step and a sleep at once are both told")
    func stepAndSleep() {
        var bench = Bench()
        bench.sleep(.seconds(60))
        bench.wall += .seconds(10)
        let outcome = bench.clockSet()
        #expect(outcome.resumed != nil && outcome.stepped != nil)
    }

    @Test("a sleep does not move the wall clock against the boot clock: it is no step")
    func sleepIsNoStep() {
        var bench = Bench()
        bench.sleep(.seconds(60))
        #expect(bench.wake().stepped == nil)
        #expect(bench.clockSet() == nothing)
    }

    @Test("a boot clock that is behind what it was is the new measure")
    func behind() {
        var bench = Bench()
        bench.slept -= .seconds(100)
        #expect(bench.wake() == nothing)
        bench.slept += .seconds(50)
        #expect(bench.wake().resumed != nil)
    }

    @Test("the fact has a line for people")
    func descriptions() {
        #expect(SleepFact().description == "awake")
        #expect(SleepFact(isGoingToSleep: true).description == "going to sleep")
        #expect(SleepFact(awakeSince: .now).description == "awake again")
        #expect(
            SleepFact(awakeSince: .now, lastSleep: .milliseconds(1_250)).description == "awake, after 1.3 s of sleep")
    }

    @Test("the real clocks are read in an order that holds")
    func realClocks() {
        let first = ClockReading.now()
        let second = ClockReading.now()
        #expect(first.slept.upperBound >= .zero)
        #expect(second.slept.distance(from: first.slept) == .zero)
    }
}
