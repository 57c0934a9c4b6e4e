/// What sleep and the wall clock mean for a pipeline.
extension RefreshMachine {
    /// The machine is awake: what waited goes on, and what became due meanwhile is due now.
    ///
    /// Each check that is overdue comes after a random delay of its own, so that not all come at once; a run that the
    /// signal `resume` starts answers it before. The deadline of a run under way begins anew, since the run did nothing
    /// while the machine slept.
    mutating func woke(_ now: Instant) {
        goesToSleep = false
        network.settle(from: now)
        let deadline = now.advanced(by: settings.policy.deadline)
        if run?.deadline != nil { run?.deadline = deadline }
        if run?.stalledSince != nil { run?.stalledSince = now }
        // Whatever it was left to finish on is dead now.
        run?.isSpared = false
        spreadOverdue(now)
    }

    /// The wall clock shows another time: what was remembered by it is brought onto boot time anew, and a certificate
    /// that was not valid yet, or not any more, may be so now.
    mutating func clockStepped(_ new: StoredRefreshState, _ now: Instant) {
        if retry?.kind == .certificateDate { retry?.isCut = true }
        if lastRefusal != nil {
            // It may have been for the time that the clock showed.
            lastRefusal = nil
            if isBetweenChecks, plan != nil { plan = now.advanced(by: settings.plannedDelay) }
        }
        guard let old = memory else { return }
        memory = new
        if retryAfter == old.retryAfter { retryAfter = new.retryAfter }
        if confirmed == old.confirmed { confirmed = new.confirmed }
        if let copy = withdrawal?.copy, copy.number == old.copy?.number, copy.written == old.copy?.written {
            withdrawal?.copy?.written = new.copy?.written
        }
        guard lastSuccess != new.lastCheck else { return }
        lastSuccess = new.lastCheck
        originExpires = new.expires
        guard isBetweenChecks, retry == nil, plan != nil else { return }
        plan = plannedCheck(since: now)
        spreadOverdue(now)
    }

    private mutating func spreadOverdue(_ now: Instant) {
        guard let due = plan, due <= now else { return }
        plan = now.advanced(by: settings.plannedDelay)
    }
}
