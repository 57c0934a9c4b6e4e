/// Decides from what three witnesses say whether the machine slept, woke up, or had its wall clock set.
///
/// | witness | says | |
/// | --- | --- | --- |
/// | the clocks, at each wake-up of the loop | the boot clock jumped ahead of the monotonic one | a wake |
/// | the wall clock's timer | the clock was set, or the machine resumed | a reason to look |
/// | logind | `PrepareForSleep(true)`, later `(false)` | going to sleep; a wake, also if the suspend failed |
///
/// **One wake, one firing.** A jump is a wake, always. A `(false)` is the end of the sleep that a `(true)` announced: it
/// fires if no jump has been seen since that, and is the same wake otherwise. Of the rest:
///
/// | before | then | |
/// | --- | --- | --- |
/// | nothing since the bus was connected | `(false)` | a wake whose `(true)` was missed: fires, unless a jump was seen within ``sameSleep`` |
/// | `(false)` fired without a jump | a jump within ``lateClock`` | the same wake, late: gives its length, does not fire |
/// | a jump that nothing announced, ``lateWord`` ago or less | `(true)` | the announcement of that sleep, heard late: its `(false)` does not fire |
/// | awake, heard logind before | `(false)` | logind repeats itself: nothing |
/// | `(true)` | `PreparingForSleep` is false when asked after a reconnect | the `(false)` was lost: as if it were said |
/// | awake | `PreparingForSleep` is true when asked | the `(true)` was lost: as if it were said |
struct SleepMachine: Sendable {
    typealias Instant = ContinuousClock.Instant

    /// The least sleep that counts. The clocks differ by nothing but sleep, so no jitter has to be allowed for; but a
    /// suspend that is broken off at the last moment still shows as some milliseconds, kernels that measure sleep by
    /// the RTC know it by the second only, and for less than a second no connection and no lease suffers.
    static let shortestSleep: Duration = .seconds(1)
    /// The least step of the wall clock that counts. Certificates, `Date:` and ages of copies are given in seconds.
    static let shortestStep: Duration = .seconds(1)
    /// How fast a wall clock may be slewed: at most a tenth (chronyd's limit; the kernel's own is 1/2,000). Only used
    /// where the kernel does not tell of steps: slower than this is no step.
    static let fastestSlew = 10
    /// How long a difference of the wall clock is kept for the kernel's word that it was set; without it, it was slewed.
    static let stepNotice: Duration = .seconds(1)
    /// How long after `(true)` the machine is taken to be about to sleep. logind waits at most 5 s for those who
    /// inhibit (InhibitDelayMaxSec=, logind.conf(5)), and then for hooks that have no limit; six times that is a
    /// `(false)` that will not come, or a sleep in which work does no harm.
    static let longestPreparation: Duration = .seconds(30)
    /// How long after a jump a first `(false)` is taken for the same wake: hooks of the resume come before it.
    static let sameSleep: Duration = .seconds(60)
    /// How long after a `(false)` without a jump a jump is taken for the same wake. The clocks are read before logind is
    /// heeded; so this is for a kernel that sets its clocks right late.
    static let lateClock: Duration = .seconds(1)

    /// How long after a jump that nothing announced a `(true)` is taken for its announcement: it lay in a queue while
    /// the machine slept.
    static let lateWord: Duration = .seconds(2)

    /// What is to be done, in this order.
    struct Outcome: Hashable, Sendable {
        /// Fire `resume`, with this detail.
        var resumed: String?
        /// Fire `clock-stepped`, with this detail.
        var stepped: String?
    }

    private enum Phase: Hashable, Sendable {
        case awake
        /// logind said that the machine is about to sleep. `hasSlept`: the clocks have jumped since.
        case preparing(hasSlept: Bool)
    }

    /// What is known.
    private(set) var fact: SleepFact
    /// When ``deadlinePassed(at:)`` is to be called.
    private(set) var deadline: Instant?
    /// What a witness said that was no wake: a sleep that is too short, a clock that was set, a `(false)` that logind
    /// repeats, a `(true)` after which nothing came.
    private(set) var minor: UInt64 = 0

    private var phase = Phase.awake
    private var slept: ClosedRange<Duration>
    private var wall: ClosedRange<Duration>
    /// When ``wall`` was read.
    private var wallReadAt: Instant
    /// Since when the wall clock has differed without the kernel's word that it was set.
    private var wallDiffersSince: Instant?
    /// Whether the kernel tells when the wall clock is set: ``clockWasSet(_:at:)``.
    var hearsSteps = false
    /// When the clocks jumped last.
    private var jumpedAt: Instant?
    /// The same, if no `(true)` had come before.
    private var unannouncedJumpAt: Instant?
    /// When a `(false)` fired without a jump.
    private var wokeWithoutJumpAt: Instant?
    /// logind has said something since it could be heard.
    private var hasHeardLogind = false

    /// - Parameter reading: the clocks as they are.
    init(_ reading: ClockReading, logind: SleepFact.Availability, at now: Instant) {
        slept = reading.slept
        wall = reading.wall
        wallReadAt = now
        fact = SleepFact(logind: logind)
    }

    // MARK: The clocks

    /// The loop woke up.
    mutating func wokeUp(_ reading: ClockReading, at now: Instant) -> Outcome {
        var outcome = Outcome(resumed: lookForSleep(reading, at: now))
        outcome.stepped = lookForStep(reading, wasSet: false, at: now)
        return outcome
    }

    /// The kernel says that the wall clock was set, or that the machine was resumed.
    mutating func clockWasSet(_ reading: ClockReading, at now: Instant) -> Outcome {
        var outcome = Outcome(resumed: lookForSleep(reading, at: now))
        outcome.stepped = lookForStep(reading, wasSet: true, at: now)
        return outcome
    }

    private mutating func lookForSleep(_ reading: ClockReading, at now: Instant) -> String? {
        let jump = reading.slept.distance(from: slept)
        guard jump == .zero else {
            // A clock behind what it was is another time name space's (time_namespaces(7)); it is the new measure.
            slept = reading.slept
            if jump >= Self.shortestSleep { return jumped(by: jump, at: now) }
            if jump > .zero { minor += 1 }
            return nil
        }
        // The difference stands still: each look can only tell more exactly where.
        slept = slept.clamped(to: reading.slept)
        return nil
    }

    private mutating func jumped(by jump: Duration, at now: Instant) -> String? {
        jumpedAt = now
        unannouncedJumpAt = phase == .awake ? now : nil
        if phase != .awake { phase = .preparing(hasSlept: true) }
        if let woke = wokeWithoutJumpAt, phase == .awake, now - woke <= Self.lateClock {
            wokeWithoutJumpAt = nil
            fact.lastSleep = jump
            return nil
        }
        return woke(after: jump, at: now, "slept \(jump.inSeconds)")
    }

    private mutating func woke(after jump: Duration?, at now: Instant, _ detail: String) -> String {
        wokeWithoutJumpAt = jump == nil ? now : nil
        fact.isGoingToSleep = false
        fact.awakeSince = now
        fact.lastSleep = jump
        deadline = nil
        return detail
    }

    private mutating func lookForStep(_ reading: ClockReading, wasSet: Bool, at now: Instant) -> String? {
        let step = reading.wall.distance(from: wall)
        let size = step < .zero ? .zero - step : step
        let isStep: Bool
        if wasSet {
            isStep = size >= Self.shortestStep
        } else if hearsSteps {
            // What is more than a slew is the kernel's to tell of, in this turn of the loop or in the next.
            if size >= Self.shortestStep {
                let since = wallDiffersSince ?? now
                wallDiffersSince = since
                if now - since < Self.stepNotice { return nil }
            }
            isStep = false
        } else {
            isStep = size >= Self.shortestStep + (now - wallReadAt) / Self.fastestSlew
        }
        wall = reading.wall
        wallReadAt = now
        wallDiffersSince = nil
        if isStep || wasSet && step != .zero { minor += 1 }
        guard isStep else { return nil }
        fact.clockSteppedAt = now
        return "the clock was set \(step < .zero ? "back" : "forward") by \(size.inSeconds)"
    }

    // MARK: logind

    /// logind's signal `PrepareForSleep`, with the clocks as they are: they are looked at first.
    mutating func prepareForSleep(_ begins: Bool, _ reading: ClockReading, at now: Instant) -> Outcome {
        var outcome = wokeUp(reading, at: now)
        let isFirst = !hasHeardLogind
        hasHeardLogind = true
        if begins {
            begin(at: now)
        } else if let detail = end(isFirst: isFirst, at: now) {
            outcome.resumed = detail
        }
        return outcome
    }

    /// logind's property `PreparingForSleep`, asked for when its signals could be heard, or heard again.
    mutating func isPreparingForSleep(_ isPreparing: Bool, _ reading: ClockReading, at now: Instant) -> Outcome {
        var outcome = wokeUp(reading, at: now)
        switch (phase, isPreparing) {
        case (.awake, true): begin(at: now)
        case (.preparing, false):
            if let detail = end(isFirst: false, at: now) { outcome.resumed = detail }
        case (.awake, false), (.preparing, true): break  // as was known
        }
        return outcome
    }

    private mutating func begin(at now: Instant) {
        phase = .preparing(hasSlept: unannouncedJumpAt.map { now - $0 <= Self.lateWord } ?? false)
        unannouncedJumpAt = nil
        wokeWithoutJumpAt = nil
        fact.isGoingToSleep = true
        deadline = now + Self.longestPreparation
    }

    /// The sleep is over, says logind. Returns the detail of the firing, if it is one.
    private mutating func end(isFirst: Bool, at now: Instant) -> String? {
        let before = phase
        phase = .awake
        fact.isGoingToSleep = false
        deadline = nil
        let isNews: Bool
        switch before {
        case .preparing(let hasSlept): isNews = !hasSlept
        case .awake:
            isNews = isFirst && !(jumpedAt.map { now - $0 <= Self.sameSleep } ?? false)
            if !isFirst { minor += 1 }
        }
        return isNews ? woke(after: nil, at: now, "awake again, says logind") : nil
    }

    /// logind can be heard, or not.
    mutating func logindBecame(_ availability: SleepFact.Availability) {
        if availability == .available { hasHeardLogind = false }
        fact.logind = availability
    }

    /// The ``deadline`` has passed: nobody knows what became of the sleep that was announced.
    mutating func deadlinePassed(at now: Instant) {
        guard let due = deadline, due <= now else { return }  // it was taken back when it was on its way
        deadline = nil
        fact.isGoingToSleep = false
        minor += 1
    }
}
