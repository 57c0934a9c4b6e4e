/// Which paths are to be looked at, and when: bookkeeping, without a clock.
///
/// A path is looked at by one look at a time. What is heard of it meanwhile is for the next one. One that has an
/// obstacle is looked at again after a while, since the kernel does not say when there is room or leave again; all of
/// them together, so that however many there are, one timer is enough.
struct RetrySchedule: Sendable {
    typealias Instant = ContinuousClock.Instant
    typealias Follower = FileWatchTable.Follower

    /// How long a look may take until it counts as one that does not end. Disks that spin up are quicker.
    static let longestLook: Duration = .seconds(5)
    /// After what time a path with an obstacle is looked at again; doubled each time, up to ``longestPause``.
    static let firstPause: Duration = .seconds(1)
    /// A wake-up in five minutes, and only while there are obstacles.
    static let longestPause: Duration = .seconds(300)

    /// What was heard of paths that are being looked at.
    private var heard: [Follower: FileEvents] = [:]
    /// Since when; nil: it is told already that this takes long.
    private var running: [Follower: Instant?] = [:]
    private var blocked: Set<Follower> = []
    private var retry: (at: Instant, pause: Duration)?

    /// Something is being looked at.
    var isLooking: Bool { !running.isEmpty }
    /// A look is known not to end.
    var isHeldUp: Bool { running.values.contains { $0 == nil } }

    /// When ``due(at:)`` is to be asked; nil: nothing is waited for.
    var deadline: Instant? {
        let look = running.values.compactMap { $0 }.min().map { $0 + Self.longestLook }
        guard let retry else { return look }
        return look.map { min($0, retry.at) } ?? retry.at
    }

    /// Something was heard of a path.
    ///
    /// - Returns: whether a look begins for it now; else it is kept for the next one.
    mutating func hear(_ follower: Follower, _ events: FileEvents, at now: Instant) -> Bool {
        guard running[follower] == nil else {
            heard[follower, default: []].formUnion(events)
            return false
        }
        running[follower] = now
        return true
    }

    /// Something was heard that belongs to the look under way, or to none.
    mutating func keep(_ follower: Follower, _ events: FileEvents) {
        if running[follower] != nil { heard[follower, default: []].formUnion(events) }
    }

    /// A look takes too long, as somebody knows who waited for it.
    mutating func isSlow(_ follower: Follower) {
        if running[follower] != nil { running[follower] = .some(nil) }
    }

    /// A look has ended.
    ///
    /// - Parameter isBlocked: it found an obstacle.
    /// - Returns: what the next look is for, which begins now; nil: nothing.
    mutating func ended(_ follower: Follower, isBlocked: Bool, at now: Instant) -> FileEvents? {
        guard running.removeValue(forKey: follower) != nil else { return nil }
        if isBlocked {
            // A new obstacle may be as short as the first one was.
            if blocked.insert(follower).inserted { retry = (now + Self.firstPause, Self.firstPause) }
        } else {
            unblock(follower)
        }
        guard let next = heard.removeValue(forKey: follower) else { return nil }
        running[follower] = now
        return next
    }

    /// Nobody follows it any more.
    mutating func remove(_ follower: Follower, at now: Instant) {
        running[follower] = nil
        heard[follower] = nil
        unblock(follower)
        // There may be room now for what was refused.
        if let retry { self.retry = (now, retry.pause) }
    }

    private mutating func unblock(_ follower: Follower) {
        blocked.remove(follower)
        if blocked.isEmpty { retry = nil }
    }

    /// What has become due: looks that take too long, told once, and paths that are to be looked at again.
    mutating func due(at now: Instant) -> (slow: [Follower], again: [Follower]) {
        var due = (slow: [Follower](), again: [Follower]())
        for case (let follower, let since?) in running where since + Self.longestLook <= now {
            due.slow.append(follower)
        }
        for follower in due.slow { running[follower] = .some(nil) }
        if let retry, retry.at <= now {
            // Those that are being looked at too: what that look was refused may be allowed now.
            due.again = blocked.sorted()
            let pause = min(retry.pause * 2, Self.longestPause)
            self.retry = (now + pause, pause)
        }
        return due
    }
}
