import FreshetModel

/// When the last checks were and how they ended, and when the next planned check is due.
struct CheckSchedule: Sendable {
    typealias Instant = BootInstant

    /// The last successful check with the current configuration.
    private(set) var lastSuccess: Instant?
    /// The last check that rejected the content, since `lastSuccess`; nil: none, or another failure came after it.
    @Boxed private(set) var lastRejection: Instant?
    /// When the data of that check stops being fresh, as its origin states; nil: not known.
    @Boxed var originExpires: Instant?
    /// When the copy was last confirmed, with any configuration: its age counts from this instant.
    private(set) var confirmed: Instant?
    @Boxed private(set) var failing: OngoingFailure?
    /// The next planned check.
    var plan: Instant?
    /// When the last planned check was due, if there are calendar times: the next one is later, even if that check
    /// confirmed the state of an earlier moment.
    @Boxed private var lastPlan: Instant?
    /// The state from before the restart, converted to boot time; nil when it does not matter any more.
    @Boxed private(set) var memory: StoredRefreshState?

    /// - Parameter memory: the state from before a restart.
    init(_ memory: StoredRefreshState) {
        lastSuccess = memory.lastCheck
        originExpires = memory.expires
        confirmed = memory.confirmed
        if memory != StoredRefreshState() { self.memory = memory }
    }

    /// The last check that found content at the origin, accepted or rejected.
    var lastAnswer: Instant? { lastRejection ?? lastSuccess }

    /// When the next check by the clock is due; nil: never.
    ///
    /// - Parameter instant: when it is due if there was no check yet.
    func plannedCheck(since instant: Instant, _ settings: RefreshSettings) -> Instant? {
        guard let lastAnswer else { return settings.policy.isPlanned ? instant : nil }
        let planned = nextCheck(after: lastAnswer, settings)
        guard let planned, lastRejection != nil else { return planned }
        return lastAnswer.advanced(
            by: Backoff.afterRejection(
                failing?.tally.waits ?? 1, policy: settings.policy.retry, planned: lastAnswer.duration(to: planned)))
    }

    /// When the next check by the clock is due after a check; nil: never.
    func nextCheck(after check: Instant, _ settings: RefreshSettings) -> Instant? {
        let calendar = settings.calendar?.wrappedValue.next(after: max(check, lastPlan ?? check))
        let periodic = settings.policy.every.map { check.advanced(by: $0) }
        return [calendar, periodic].compactMap(\.self).min()?.advanced(by: settings.plannedDelay)
    }

    /// A planned check is due: the next one is planned when this one has ended.
    mutating func elapsed(_ settings: RefreshSettings) {
        if settings.calendar != nil { lastPlan = plan }
        plan = nil
    }

    /// The wall clock or the time zone has changed: plans the next check again.
    mutating func calendarChanged(_ settings: RefreshSettings, _ now: Instant) {
        lastPlan = nil
        plan = plannedCheck(since: now, settings)
        spreadOverdue(settings, now)
    }

    /// Until when the copy is fresh: for `fresh-for` after the last check, or as long as the origin states, if that is
    /// longer and configured.
    func freshUntil(_ policy: RefreshPolicy) -> Instant? {
        guard let own = lastSuccess?.advanced(by: policy.freshFor) else { return nil }
        guard policy.honoursOrigin, let originExpires else { return own }
        return max(own, originExpires)
    }

    /// Until when environment signals are skipped. Rejected content is not requested again sooner than accepted
    /// content.
    func skippedUntil(_ policy: RefreshPolicy) -> Instant? {
        lastRejection?.advanced(by: policy.freshFor) ?? freshUntil(policy)
    }

    /// A check succeeded, or the operator accepted the content of the last one.
    mutating func succeeded(at success: Instant) {
        lastSuccess = success
        lastRejection = nil
        confirmed = success
        memory = nil
        failing = nil
    }

    /// A run failed.
    ///
    /// - Returns: the number of failures of this kind since the last success.
    mutating func failed(
        _ failure: RunFailure, of run: UInt64, isPartial: Bool = false, _ now: Instant
    ) -> Int {
        var tally = failing?.tally ?? FailureCounts()
        let attempts = tally.record(failure)
        var failing = OngoingFailure(
            failure: failure, since: failing?.since ?? now, attempts: attempts, isPartial: isPartial, run: run,
            ended: now)
        failing.tally = tally
        self.failing = failing
        return attempts
    }

    /// A check rejected the origin's content; the next one comes by the clock, at first sooner than after a successful
    /// one.
    mutating func rejected(_ failure: RunFailure, of order: RunOrder, _ settings: RefreshSettings, _ now: Instant) {
        lastRejection = now
        _ = failed(failure, of: order.run, now)
        failing?.tally.waitsAgain(since: order.started)
        let due = plannedCheck(since: now, settings)
        failing?.tally.due = due
        plan = due
    }

    /// A run failed for another reason than its content.
    mutating func clearRejection() { lastRejection = nil }

    /// The next run has another product: what is known about the previous one does not matter.
    mutating func forget() {
        lastSuccess = nil
        lastRejection = nil
        memory = nil
        failing = nil
        lastPlan = nil
    }

    /// An overdue check gets a random delay, so that not all start at the same time.
    mutating func spreadOverdue(_ settings: RefreshSettings, _ now: Instant) {
        guard let due = plan, due <= now else { return }
        plan = now.advanced(by: settings.plannedDelay)
    }

    /// The wall clock was stepped: stored wall-clock times are converted to boot time again.
    ///
    /// - Parameters:
    ///   - isBetweenChecks: no check is in progress.
    ///   - isRetried: a retry is planned instead of a check.
    mutating func clockStepped(
        _ new: StoredRefreshState, _ settings: RefreshSettings, isBetweenChecks: Bool, isRetried: Bool, _ now: Instant
    ) {
        guard let old = memory else { return }
        memory = new
        if confirmed == old.confirmed { confirmed = new.confirmed }
        guard lastSuccess != new.lastCheck else { return }
        lastSuccess = new.lastCheck
        originExpires = new.expires
        guard isBetweenChecks, !isRetried, plan != nil else { return }
        plan = plannedCheck(since: now, settings)
        spreadOverdue(settings, now)
    }

    /// The wall clock was stepped: content may have been rejected because of the old time.
    mutating func retryRejected(_ settings: RefreshSettings, isBetweenChecks: Bool, _ now: Instant) {
        guard lastRejection != nil else { return }
        lastRejection = nil
        if isBetweenChecks, plan != nil { plan = now.advanced(by: settings.plannedDelay) }
    }
}
