/// Limits how often a path is checked: many times in a burst, and then at a rate that costs little processor time.
///
/// A user who may write to a directory on the path can change it as often as they like. Checking a path that changes
/// meanwhile, or that is circular, resolves up to ``PathResolution/mostLinks`` links ``FileMonitor/looksPerTurn``
/// times, which takes milliseconds; other checks take microseconds. A delay loses nothing: all events until the next
/// check are one.
struct LookAllowance: Hashable, Sendable {
    enum Look: Hashable, Sendable {
        /// The check succeeded.
        case cheap
        /// The check found an obstacle, or the path changed meanwhile.
        case costly
    }

    /// Fifty checks per second.
    static let cheap: Duration = .milliseconds(20)
    /// One check per second.
    static let costly: Duration = .seconds(1)
    /// The allowance without a pause: ten costly checks, or 500 cheap ones.
    static let burst: Duration = .seconds(10)

    /// The time that the checks so far have used up.
    private var paid: ContinuousClock.Instant

    init(at now: ContinuousClock.Instant) { paid = now }

    /// The earliest start of the next check; in the past: now.
    var next: ContinuousClock.Instant { paid - Self.burst }

    mutating func looked(_ look: Look, at now: ContinuousClock.Instant) {
        paid = max(paid, now) + (look == .cheap ? Self.cheap : Self.costly)
    }
}
