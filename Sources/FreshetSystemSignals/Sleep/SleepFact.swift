/// Whether the machine is awake.
public struct SleepFact: Hashable, Sendable, CustomStringConvertible {
    /// Whether logind is available (systemd-logind.service(8)).
    public enum Availability: Hashable, Sendable {
        /// Its signals are received.
        case available
        /// Not known yet: the bus connection is being made.
        case pending
        /// Only the clocks show a resume. The reason is a sentence for people.
        case unavailable(reason: String)
    }

    /// Whether logind has announced a sleep, and the machine has not resumed since.
    public var isGoingToSleep: Bool
    /// When the machine last resumed; nil: it has not slept since the monitor began.
    public var awakeSince: ContinuousClock.Instant?
    /// The length of the last sleep according to the clocks; nil if they did not jump (a container, a failed suspend).
    public var lastSleep: Duration?
    /// When the wall clock was last set; nil: not since the monitor began.
    public var clockSteppedAt: ContinuousClock.Instant?
    /// Whether logind is available. Log once what is missing.
    public var logind: Availability

    /// Makes a fact, for tests.
    public init(
        isGoingToSleep: Bool = false, awakeSince: ContinuousClock.Instant? = nil, lastSleep: Duration? = nil,
        clockSteppedAt: ContinuousClock.Instant? = nil, logind: Availability = .pending
    ) {
        self.isGoingToSleep = isGoingToSleep
        self.awakeSince = awakeSince
        self.lastSleep = lastSleep
        self.clockSteppedAt = clockSteppedAt
        self.logind = logind
    }

    /// For people, such as `going to sleep`, or `awake, after 28800.4 s of sleep`.
    public var description: String {
        if isGoingToSleep { return "going to sleep" }
        guard awakeSince != nil else { return "awake" }
        return lastSleep.map { "awake, after \($0.inSeconds) of sleep" } ?? "awake again"
    }
}

extension Duration {
    /// In seconds with one decimal place, rounded, such as `28800.4 s`.
    var inSeconds: String {
        let rounded = self + .milliseconds(self < .zero ? -50 : 50)
        let tenths = rounded.components.seconds * 10 + rounded.components.attoseconds / 100_000_000_000_000_000
        let sign = tenths < 0 ? "-" : ""
        return "\(sign)\(tenths.magnitude / 10).\(tenths.magnitude % 10) s"
    }
}
