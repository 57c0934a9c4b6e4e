/// Sleep of the machine, and steps of the wall clock.
extension RefreshMachine {
    /// The machine is awake: waits continue, and everything that became due meanwhile is due now.
    ///
    /// Each overdue check gets its own random delay, so that not all start at the same time; a run for the signal
    /// `resume` answers it before. The deadline of a run in progress begins again, since the run made no progress while
    /// the machine slept.
    mutating func woke(_ now: Instant) {
        goesToSleep = false
        network.settle(from: now)
        let deadline = now.advanced(by: settings.policy.deadline)
        if run?.deadline != nil { run?.deadline = deadline }
        if run?.stalledSince != nil { run?.stalledSince = now }
        // The old path that the run was allowed to keep is gone.
        run?.isSpared = false
        spreadOverdue(now)
    }

    /// The wall clock was stepped: stored wall-clock times are converted to boot time again, and a certificate that was
    /// not valid at the old date may be valid now.
    mutating func clockStepped(_ new: StoredRefreshState, _ now: Instant) {
        if retry?.kind == .certificateDate { retry?.isCut = true }
        if lastRejection != nil {
            // The content may have been rejected because of the old time.
            lastRejection = nil
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
