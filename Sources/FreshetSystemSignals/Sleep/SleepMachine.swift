/// Decides from three sources whether the machine slept, resumed, or had its wall clock set.
///
/// | source | event | meaning |
/// | --- | --- | --- |
/// | the clocks, at each wake-up of the loop | the boot clock jumped ahead of the monotonic one | a resume |
/// | the wall clock's timer | the clock was set, or the machine resumed | a reason to read the clocks |
/// | logind | `PrepareForSleep(true)`, later `(false)` | going to sleep; a resume, also if the suspend failed |
///
/// **One resume, one firing.** A jump is always a resume. A `(false)` is the end of the sleep that a `(true)`
/// announced: it fires if there was no jump since the `(true)`; otherwise it is the same resume. The other cases:
///
/// | before | event | meaning |
/// | --- | --- | --- |
/// | nothing of logind yet | `(false)` | a resume whose `(true)` was missed: fires, if no jump within ``sameSleep`` |
/// | `(false)` fired without a jump | a jump within ``lateClock`` | the same resume: sets its length, does not fire |
/// | an unannounced jump within ``lateMessage`` | `(true)` | that sleep's late announcement: its `(false)` does not fire |
/// | awake, with earlier messages of logind | `(false)` | a repeated message: ignored |
/// | `(true)` | `PreparingForSleep` is false after a reconnect | the `(false)` was lost: handled as if it had arrived |
/// | awake | `PreparingForSleep` is true when read | the `(true)` was lost: handled as if it had arrived |
struct SleepMachine: Sendable {
    typealias Instant = ContinuousClock.Instant

    /// The shortest sleep that counts. The clocks differ by nothing but sleep, so there is no jitter to tolerate. But a
    /// suspend that is aborted at the last moment still shows as some milliseconds, some kernels measure sleep with the
    /// RTC in whole seconds, and less than a second harms no connection and no lease.
    static let shortestSleep: Duration = .seconds(1)
    /// The smallest step of the wall clock that counts. Certificates, `Date:` and ages of copies have a resolution of
    /// seconds.
    static let shortestStep: Duration = .seconds(1)
    /// The maximum slew rate of a wall clock: a tenth (chronyd's limit; the kernel's own is 1/2,000). Only used if the
    /// kernel does not report steps: a slower change is not a step.
    static let fastestSlew = 10
    /// How long a difference of the wall clock may wait for the kernel's report that the clock was set; without the
    /// report, the clock was slewed.
    static let stepNotice: Duration = .seconds(1)
    /// How long after `(true)` the machine is considered about to sleep. logind waits at most 5 s for inhibitors
    /// (InhibitDelayMaxSec=, logind.conf(5)), and then for hooks without a limit. After six times that, the `(false)`
    /// will not arrive, or work during the sleep preparation does no harm.
    static let longestPreparation: Duration = .seconds(30)
    /// How long after a jump a first `(false)` counts as the same resume: hooks of the resume run before it.
    static let sameSleep: Duration = .seconds(60)
    /// How long after a `(false)` without a jump a jump counts as the same resume. The clocks are read before logind's
    /// messages, so this is for a kernel that corrects its clocks late.
    static let lateClock: Duration = .seconds(1)

    /// How long after an unannounced jump a `(true)` counts as its announcement: it was in a queue while the machine
    /// slept.
    static let lateMessage: Duration = .seconds(2)

    /// The actions to perform, in this order.
    struct Outcome: Hashable, Sendable {
        /// Fire `resume`, with this detail.
        var resumed: String?
        /// Fire `clock-stepped`, with this detail.
        var stepped: String?
    }

    private enum Phase: Hashable, Sendable {
        case awake
        /// logind has announced a sleep. `hasSlept`: the clocks have jumped since.
        case preparing(hasSlept: Bool)
    }

    /// The current fact.
    private(set) var fact: SleepFact
    /// When to call ``deadlinePassed(at:)``.
    private(set) var deadline: Instant?
    /// The number of events that were not a resume: a sleep that is too short, a clock that was set, a `(false)` that
    /// logind repeats, a `(true)` without a sleep.
    private(set) var minor: UInt64 = 0

    private var phase = Phase.awake
    private var slept: ClosedRange<Duration>
    private var wall: ClosedRange<Duration>
    /// When ``wall`` was read.
    private var wallReadAt: Instant
    /// Since when the wall clock has differed without the kernel's report that it was set.
    private var wallDiffersSince: Instant?
    /// Whether the kernel reports that the wall clock was set: ``clockWasSet(_:at:)``.
    var receivesSteps = false
    /// When the clocks last jumped.
    private var jumpedAt: Instant?
    /// The same, if there was no `(true)` before.
    private var unannouncedJumpAt: Instant?
    /// When a `(false)` fired without a jump.
    private var wokeWithoutJumpAt: Instant?
    /// Whether logind has sent a message since it became available.
    private var hasSeenLogind = false

    /// - Parameter reading: The current clocks.
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

    /// The kernel reports that the wall clock was set, or that the machine resumed.
    mutating func clockWasSet(_ reading: ClockReading, at now: Instant) -> Outcome {
        var outcome = Outcome(resumed: lookForSleep(reading, at: now))
        outcome.stepped = lookForStep(reading, wasSet: true, at: now)
        return outcome
    }

    private mutating func lookForSleep(_ reading: ClockReading, at now: Instant) -> String? {
        let jump = reading.slept.distance(from: slept)
        guard jump == .zero else {
            // A boot clock that went back belongs to another time namespace (time_namespaces(7)); it is the new
            // reference.
            slept = reading.slept
            if jump >= Self.shortestSleep { return jumped(by: jump, at: now) }
            if jump > .zero { minor += 1 }
            return nil
        }
        // The difference is constant: each reading can only make it more exact.
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
        } else if receivesSteps {
            // The kernel reports a larger change than a slew, in this iteration of the loop or in the next.
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

    /// logind's signal `PrepareForSleep`, with the current clocks, which are checked first.
    mutating func prepareForSleep(_ begins: Bool, _ reading: ClockReading, at now: Instant) -> Outcome {
        var outcome = wokeUp(reading, at: now)
        let isFirst = !hasSeenLogind
        hasSeenLogind = true
        if begins {
            begin(at: now)
        } else if let detail = end(isFirst: isFirst, at: now) {
            outcome.resumed = detail
        }
        return outcome
    }

    /// logind's property `PreparingForSleep`, read when its signals became available (again).
    mutating func isPreparingForSleep(_ isPreparing: Bool, _ reading: ClockReading, at now: Instant) -> Outcome {
        var outcome = wokeUp(reading, at: now)
        switch (phase, isPreparing) {
        case (.awake, true): begin(at: now)
        case (.preparing, false):
            if let detail = end(isFirst: false, at: now) { outcome.resumed = detail }
        case (.awake, false), (.preparing, true): break  // no change
        }
        return outcome
    }

    private mutating func begin(at now: Instant) {
        phase = .preparing(hasSlept: unannouncedJumpAt.map { now - $0 <= Self.lateMessage } ?? false)
        unannouncedJumpAt = nil
        wokeWithoutJumpAt = nil
        fact.isGoingToSleep = true
        deadline = now + Self.longestPreparation
    }

    /// logind reports the end of the sleep. Returns the detail of the firing, if there is one.
    private mutating func end(isFirst: Bool, at now: Instant) -> String? {
        let before = phase
        phase = .awake
        fact.isGoingToSleep = false
        deadline = nil
        let isNew: Bool
        switch before {
        case .preparing(let hasSlept): isNew = !hasSlept
        case .awake:
            isNew = isFirst && !(jumpedAt.map { now - $0 <= Self.sameSleep } ?? false)
            if !isFirst { minor += 1 }
        }
        return isNew ? woke(after: nil, at: now, "awake again according to logind") : nil
    }

    /// logind became available or unavailable.
    mutating func logindBecame(_ availability: SleepFact.Availability) {
        if availability == .available { hasSeenLogind = false }
        fact.logind = availability
    }

    /// The ``deadline`` has passed: it is unknown whether the announced sleep will follow.
    mutating func deadlinePassed(at now: Instant) {
        guard let due = deadline, due <= now else { return }  // it was cancelled after it had expired
        deadline = nil
        fact.isGoingToSleep = false
        minor += 1
    }
}
