/// Decides when paths are checked; it has no clock.
///
/// A path has one check at a time. Events during a check are for the next check. A path with an obstacle is retried
/// after a pause, because the kernel does not report when a limit or permissions change. All such paths are retried
/// together, so one timer is enough.
///
/// ``LookAllowance`` limits how often a path is checked, because a user who may write to a directory on the path can
/// change it as often as they like.
struct RetrySchedule: Sendable {
    typealias Instant = ContinuousClock.Instant
    typealias Follower = FileWatchTable.Follower

    /// How long a check may take before it counts as hanging. Disks that spin up are faster.
    static let longestLook: Duration = .seconds(5)
    /// The first pause before a path with an obstacle is retried; it doubles each time, up to ``longestPause``.
    static let firstPause: Duration = .seconds(1)
    /// One wake-up in five minutes, and only while there are obstacles.
    static let longestPause: Duration = .seconds(300)

    /// The events of paths during a check.
    private var received: [Follower: FileEvents] = [:]
    /// The start of each check; nil: it was already reported as slow.
    private var running: [Follower: Instant?] = [:]
    private var blocked: Set<Follower> = []
    private var retry: (at: Instant, pause: Duration)?
    private var allowances: [Follower: LookAllowance] = [:]
    /// The start of the next check of paths that are checked too often; ``received`` has the events.
    private var delayed: [Follower: Instant] = [:]

    /// Whether a check is in progress.
    var isLooking: Bool { !running.isEmpty }
    /// Whether a check is known to hang.
    var isHeldUp: Bool { running.values.contains { $0 == nil } }

    /// When to call ``due(at:)``; nil: never.
    var deadline: Instant? {
        let look = running.values.compactMap { $0 }.min().map { $0 + Self.longestLook }
        return [look, retry?.at, delayed.values.min()].compactMap { $0 }.min()
    }

    /// Adds events of a path.
    ///
    /// - Returns: Whether a check has to start now; otherwise the events are kept for the next check.
    mutating func receive(_ follower: Follower, _ events: FileEvents, at now: Instant) -> Bool {
        guard running[follower] == nil else {
            received[follower, default: []].formUnion(events)
            return false
        }
        if let next = allowances[follower]?.next, next > now {
            received[follower, default: []].formUnion(events)
            delayed[follower] = next
            return false
        }
        running[follower] = now
        return true
    }

    /// Adds events to the check in progress; without a check it does nothing.
    mutating func keep(_ follower: Follower, _ events: FileEvents) {
        if running[follower] != nil { received[follower, default: []].formUnion(events) }
    }

    /// Marks a check as slow, because its caller has waited too long.
    mutating func isSlow(_ follower: Follower) {
        if running[follower] != nil { running[follower] = .some(nil) }
    }

    /// A check has ended.
    ///
    /// - Parameters:
    ///   - isBlocked: Whether it found an obstacle.
    ///   - isSettled: Whether nothing changed during the check.
    /// - Returns: The events of the next check, which starts now; nil: there is none, or it starts later.
    mutating func ended(
        _ follower: Follower, isBlocked: Bool, isSettled: Bool = true, at now: Instant
    ) -> FileEvents? {
        guard running.removeValue(forKey: follower) != nil else { return nil }
        allowances[follower, default: LookAllowance(at: now)].looked(
            isBlocked || !isSettled ? .costly : .cheap, at: now)
        if isBlocked {
            // A new obstacle may be as short as the first one was.
            if blocked.insert(follower).inserted { retry = (now + Self.firstPause, Self.firstPause) }
        } else {
            unblock(follower)
        }
        guard received[follower] != nil else { return nil }
        if let next = allowances[follower]?.next, next > now {
            delayed[follower] = next
            return nil
        }
        running[follower] = now
        return received.removeValue(forKey: follower)
    }

    /// Removes a path.
    mutating func remove(_ follower: Follower, at now: Instant) {
        running[follower] = nil
        received[follower] = nil
        delayed[follower] = nil
        allowances[follower] = nil
        unblock(follower)
        // A limit may have free capacity now.
        if let retry { self.retry = (now, retry.pause) }
    }

    private mutating func unblock(_ follower: Follower) {
        blocked.remove(follower)
        if blocked.isEmpty { retry = nil }
    }

    /// Delayed checks that start now, with their events.
    mutating func delayedLooks(at now: Instant) -> [(follower: Follower, events: FileEvents)] {
        let due = delayed.filter { $0.value <= now }.keys.sorted()
        for follower in due { delayed[follower] = nil }
        return due.compactMap { follower in
            received.removeValue(forKey: follower).map { (follower, $0) }
        }
    }

    /// The checks that have become slow, once for each, and the paths to retry.
    mutating func due(at now: Instant) -> (slow: [Follower], again: [Follower]) {
        var due = (slow: [Follower](), again: [Follower]())
        for case (let follower, let since?) in running where since + Self.longestLook <= now {
            due.slow.append(follower)
        }
        for follower in due.slow { running[follower] = .some(nil) }
        if let retry, retry.at <= now {
            // Including paths with a check in progress: calls that this check failed to make may succeed now.
            due.again = blocked.sorted()
            let pause = min(retry.pause * 2, Self.longestPause)
            self.retry = (now + pause, pause)
        }
        return due
    }
}
