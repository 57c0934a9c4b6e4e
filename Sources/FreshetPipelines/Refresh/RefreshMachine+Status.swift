/// The visible state of the machine.
extension RefreshMachine {
    /// The current activity. The runner adds the progress of a run.
    package func activity(at now: Instant) -> PipelineActivity {
        if conditions.isHeld, phase.run == nil { return .held }
        if phase.run != nil { return .loading(LoadProgress()) }
        let failing = schedule.failing
        if let wait = waitsFor(at: now) {
            switch wait.reason {
            // A proof was requested just now, and usually comes in a moment.
            case .network where conditions.proof?.isAwaited == true: break
            case .network, .metered, .power, .permit, .memory, .splay, .sleep, .fileSystem: return .waiting(wait)
            case .quiet, .interval, .backoff, .retryAfter, .budget: if failing == nil { return .waiting(wait) }
            }
        }
        if let failing, !failing.isPartial {
            return .failed(failing.failure, since: failing.since, attempts: failing.attempts)
        }
        return copy.exists ? .loaded : .idle
    }

    /// What the next run waits for; nil: no run waits.
    package func waitsFor(at now: Instant) -> Wait? {
        guard phase.run == nil, !conditions.isHeld else { return nil }
        let isRequestingPermit = phase.requestedPermit != nil
        switch decision(at: now) {
        case .waiting(let wait): return wait
        case .unproven: return Wait(.network, detail: conditions.proof?.refusal)
        case .ready: return isRequestingPermit ? Wait(.permit) : nil
        case .nothingRequested:
            switch loadMoreDecision(at: now) {
            case .ready where isRequestingPermit: return Wait(.permit)
            case .unproven: return Wait(.network)
            case .ready, .waiting, .nothingRequested: break
            }
            // Without a network a run could not start, which the status shows.
            return conditions.isOffline(settings) && conditions.network.looksForOrigin == nil
                ? Wait(.network, until: nil) : nil
        }
    }

    /// The next planned run, if no signal comes before.
    package func nextRun(at now: Instant) -> PlannedRun? {
        guard phase.run == nil, !conditions.isHeld else { return nil }
        switch decision(at: now) {
        case .waiting(let wait):
            let isRetry = queue.ready.isEmpty && queue.retry != nil
            return wait.until.map { PlannedRun(at: $0, reason: isRetry ? .retry : .signals) }
        case .unproven: return nil
        case .ready: return PlannedRun(at: now, reason: queue.ready.isEmpty ? .retry : .signals)
        case .nothingRequested: return schedule.plan.map { PlannedRun(at: $0, reason: .timer) }
        }
    }

    /// The freshness of the copy; nil: there is none.
    package func freshness(at now: Instant) -> Freshness? {
        guard copy.exists else { return nil }
        if let expires, now >= expires { return .expired }
        if copy.expiry.isContentExpired(at: now) { return .expired }
        guard let freshUntil = schedule.freshUntil(settings.policy), parameters?.isUntried != true else {
            return .stale
        }
        if now < freshUntil { return .fresh }
        if settings.policy.honoursOrigin, schedule.originExpires != nil { return .stale }
        let isOverdue = schedule.plannedCheck(since: now, settings).map { now > $0 } ?? false
        return isOverdue || schedule.failing != nil ? .stale : .fresh
    }

    /// When the copy exceeds its `max-age`; nil: never, or there is no copy.
    var expires: Instant? { copy.expires(confirmed: schedule.confirmed, maxAge: settings.maxAge) }

    /// When the copy is to be withdrawn, or since when; nil: never.
    var withdrawsAt: Instant? {
        settings.withdraws ? copy.withdrawsAt(confirmed: schedule.confirmed, maxAge: settings.maxAge) : nil
    }

    /// The used part of the budget; nil: there is no budget.
    package func budgetUse(at now: Instant) -> BudgetUse? {
        conditions.budget.use(of: settings.policy.budget, at: now)
    }

    /// Why a request of the operator is refused now; nil: it is allowed.
    package func refusal(force: Bool, at now: Instant) -> RefreshRefusal? {
        conditions.refusal(force: force, settings, at: now)
    }

    /// The next instant at which time alone changes the state.
    func nextWake(_ now: Instant) -> Instant? {
        if phase.isStopped { return nil }
        var next: Instant?
        func add(_ instant: Instant?) {
            if let instant, next.map({ instant < $0 }) ?? true { next = instant }
        }
        add(queue.due)
        add(parameters?.due)
        // Past instants are handled already.
        func addFuture(_ instant: Instant?) {
            if let instant, now < instant { add(instant) }
        }
        addFuture(expires)
        addFuture(copy.expiry.contentInstant)
        addFuture(withdrawsAt)
        addFuture(copy.withdrawal?.retry)
        let run = phase.run
        if let run, run.interruption == nil { add(run.dueEnd) }
        // A due check ends the loading of a further page.
        if phase.isBetweenChecks, !conditions.isHeld, run?.interruption == nil {
            add(schedule.plan)
            if phase.requestedPermit == nil, case .waiting(let wait) = decision(at: now) { add(wait.until) }
        }
        return next
    }
}
