package import FreshetModel

/// The state of the refresh machine that survives a restart of the daemon, converted to boot time.
package struct StoredRefreshState: Hashable, Sendable {
    /// The last check that succeeded.
    package var lastCheck: BootInstant?
    /// When the copy was last confirmed, with any configuration; without a known check, when it was committed.
    package var confirmed: BootInstant?
    /// When the data of the last check stops being fresh, as its origin states.
    package var expires: BootInstant?
    /// The end of the origin's `Retry-After`.
    package var retryAfter: BootInstant?
    /// The number of the last run.
    package var lastRun: UInt64
    package var hasGeneration: Bool
    /// Nil: there is no copy.
    package var copy: CopyState?
    /// The used part of the budget.
    package var requests: [RequestMeter.Spent]
    /// Whether the operator holds the pipeline.
    package var isHeld = false

    package init(
        lastCheck: BootInstant? = nil, confirmed: BootInstant? = nil,
        expires: BootInstant? = nil, retryAfter: BootInstant? = nil, lastRun: UInt64 = 0,
        hasGeneration: Bool = false, copy: CopyState? = nil,
        requests: [RequestMeter.Spent] = []
    ) {
        self.lastCheck = lastCheck
        self.confirmed = confirmed
        self.expires = expires
        self.retryAfter = retryAfter
        self.lastRun = lastRun
        self.hasGeneration = hasGeneration
        self.copy = copy
        self.requests = requests
    }

    /// Converts stored wall-clock times to boot time.
    ///
    /// The wall clock may have been set since. A check that lies in the future by at most `tolerance` counts as a check
    /// of now; a later one is ignored, and the copy is checked. A `Retry-After` is limited to its longest allowed time.
    init(_ remembered: StoredTimes, now: BootInstant, wallNow: WallTime, tolerance: Duration) {
        self.init(lastRun: remembered.lastRun, hasGeneration: remembered.copy != nil)
        isHeld = remembered.isHeld
        copy = remembered.copy.map { $0.state(now: now, wallNow: wallNow) }
        confirmed = (remembered.lastCheck ?? remembered.copy?.committedAt).map { wall in
            now.advanced(by: .zero - max(.zero, wall.duration(to: wallNow)))
        }
        if !remembered.isOfOtherConfiguration, let wall = remembered.lastCheck {
            let age = wall.duration(to: wallNow)
            if age >= .zero {
                lastCheck = now.advanced(by: .zero - age)
            } else if .zero - age <= tolerance {
                lastCheck = now
            }
        }
        // The clock may have been set since: without a usable time of the check, the origin's statement is unusable
        // too.
        if lastCheck != nil, let wall = remembered.expires {
            expires = now.advanced(by: min(wallNow.duration(to: wall), DataExpiry.longest))
        }
        if let wall = remembered.retryAfter {
            let left = wallNow.duration(to: wall)
            if left > .zero { retryAfter = now.advanced(by: min(left, Backoff.longestRetryAfter)) }
        }
        // Requests in the future were made before the clock was set back: they count as requests of now.
        func instant(_ wall: WallTime) -> BootInstant {
            now.advanced(by: .zero - max(.zero, wall.duration(to: wallNow)))
        }
        requests = remembered.requests.map {
            RequestMeter.Spent(first: instant($0.first), last: instant($0.last), count: $0.count)
        }
    }
}
