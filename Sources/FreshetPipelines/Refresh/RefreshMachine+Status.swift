/// The visible state of the machine.
extension RefreshMachine {
    /// The current activity. The runner adds the progress of a run.
    package func activity(at now: Instant) -> PipelineActivity {
        if isHeld, run == nil { return .held }
        if run != nil { return .loading(LoadProgress()) }
        if let wait = waitsFor(at: now) {
            switch wait.reason {
            // A proof was requested just now, and usually comes in a moment.
            case .network where proof?.isAwaited == true: break
            case .network, .permit, .memory, .splay, .sleep, .fileSystem: return .waiting(wait)
            case .quiet, .interval, .backoff, .retryAfter, .budget: if failing == nil { return .waiting(wait) }
            }
        }
        if let failing, !failing.isPartial {
            return .failed(failing.failure, since: failing.since, attempts: failing.attempts)
        }
        return hasGeneration ? .loaded : .idle
    }

    /// What the next run waits for; nil: no run waits.
    package func waitsFor(at now: Instant) -> Wait? {
        guard run == nil, !isHeld else { return nil }
        switch decision(at: now) {
        case .waiting(let wait): return wait
        case .unproven: return Wait(.network, detail: proof?.refusal)
        case .ready: return permitRequest == nil ? nil : Wait(.permit)
        case .nothingRequested:
            switch loadMoreDecision(at: now) {
            case .ready where permitRequest != nil: return Wait(.permit)
            case .unproven: return Wait(.network)
            case .ready, .waits, .nothingRequested: break
            }
            // Without a network a run could not start, which the status shows.
            return settings.needsNetwork && !network.isUsable && network.looksForOrigin == nil
                ? Wait(.network, until: nil) : nil
        }
    }

    /// The next planned run, if no signal comes before.
    package func nextRun(at now: Instant) -> PlannedRun? {
        guard run == nil, !isHeld else { return nil }
        switch decision(at: now) {
        case .waiting(let wait):
            return wait.until.map { PlannedRun(at: $0, reason: ready.isEmpty && retry != nil ? .retry : .signals) }
        case .unproven: return nil
        case .ready: return PlannedRun(at: now, reason: ready.isEmpty ? .retry : .signals)
        case .nothingRequested: return plan.map { PlannedRun(at: $0, reason: .timer) }
        }
    }

    /// The freshness of the copy; nil: there is none.
    package func freshness(at now: Instant) -> Freshness? {
        guard hasGeneration else { return nil }
        if let expires, now >= expires { return .expired }
        if isContentExpired(at: now) { return .expired }
        guard let freshUntil, parameters?.isUntried != true else { return .stale }
        if now < freshUntil { return .fresh }
        if settings.policy.honoursOrigin, originExpires != nil { return .stale }
        let isOverdue = plannedCheck(since: now).map { now > $0 } ?? false
        return isOverdue || failing != nil ? .stale : .fresh
    }

    /// When the copy exceeds its `max-age`; nil: never, or there is no copy.
    var expires: Instant? {
        guard hasGeneration, let maxAge = settings.maxAge else { return nil }
        return confirmed?.advanced(by: maxAge)
    }

    /// Reports once that the copy has expired, and once that it is not expired any more.
    mutating func reportExpiry(_ now: Instant) {
        let checked = expires.flatMap { now >= $0 ? confirmed : nil }
        if checked != nil, isTakenAway(at: now) {
            // The withdrawal is reported instead.
            isExpired = false
            return
        }
        guard isExpired != (checked != nil), !isStopped else { return }
        isExpired = checked != nil
        report(checked.map(EngineEvent.expired) ?? .expiredNoMore)
    }

    /// The next instant at which time alone changes the state.
    func nextWake(_ now: Instant) -> Instant? {
        if isStopped { return nil }
        var instants = [burst.deliversAt, splayedUntil, parameters?.due]
        // Past instants are handled already.
        instants += [expires, contentExpiryInstant, withdrawsAt, withdrawal?.retry].map {
            $0.flatMap { now < $0 ? $0 : nil }
        }
        if let run {
            if run.interruption == nil { instants.append(run.dueEnd) }
        }
        // A due check ends the loading of a further page.
        if isBetweenChecks, !isHeld, run?.interruption == nil {
            instants.append(plan)
            if permitRequest == nil, case .waiting(let wait) = decision(at: now) { instants.append(wait.until) }
        }
        return instants.compactMap(\.self).min()
    }

    /// Reports changes of the visible state.
    mutating func reportState(_ now: Instant) {
        // A permit that was requested just now may be granted immediately: the next call knows whether the run waits for
        // it.
        guard !actions.contains(where: { if case .requestPermit = $0 { true } else { false } }) else { return }
        let activity = activity(at: now)
        guard !activity.isLike(lastActivity) else { return }
        let before = lastActivity.wait
        let after = activity.wait
        lastActivity = activity
        if before?.reason != after?.reason {
            if let before { report(.waitingEnded(before.reason)) }
            if let after { report(.waitingBegan(after)) }
        }
        report(.stateChanged(activity))
    }
}

extension PipelineActivity {
    /// Whether the two differ in at most an instant or the progress, so that no event is needed.
    func isLike(_ other: PipelineActivity) -> Bool {
        switch (self, other) {
        case (.waiting(let one), .waiting(let other)): one.reason == other.reason && one.detail == other.detail
        case (.loading, .loading): true
        default: self == other
        }
    }

    /// The wait, if the activity is waiting.
    package var wait: Wait? {
        if case .waiting(let wait) = self { wait } else { nil }
    }
}
