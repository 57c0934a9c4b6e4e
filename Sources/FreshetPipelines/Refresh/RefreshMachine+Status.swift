/// What can be seen of the machine.
extension RefreshMachine {
    /// What goes on. Bytes are for the runner to fill in.
    package func activity(at now: Instant) -> PipelineActivity {
        if isHeld, run == nil { return .held }
        if run != nil { return .loading(LoadProgress()) }
        if let wait = waitsFor(at: now) {
            switch wait.reason {
            // Asked for just now, and had in a moment if all is well.
            case .network where proof?.isAwaited == true: break
            case .network, .slot, .memory, .splay, .sleep, .fileSystem: return .waiting(wait)
            case .quiet, .interval, .backOff, .retryAfter, .budget: if failing == nil { return .waiting(wait) }
            }
        }
        if let failing, !failing.isPartial {
            return .failed(failing.failure, since: failing.since, attempts: failing.attempts)
        }
        return hasGeneration ? .loaded : .idle
    }

    /// What the next run waits for; nil: nothing wants to run.
    package func waitsFor(at now: Instant) -> Wait? {
        guard run == nil, !isHeld else { return nil }
        switch standing(at: now) {
        case .waiting(let wait): return wait
        case .unproven: return Wait(.network, detail: proof?.refusal)
        case .goes: return slotRequest == nil ? nil : Wait(.slot)
        case .nothingWanted:
            switch moreStanding(at: now) {
            case .goes where slotRequest != nil: return Wait(.slot)
            case .unproven: return Wait(.network)
            case .goes, .waits, .nothingWanted: break
            }
            // Without a network it could not run if it had to, and says so.
            return settings.needsNetwork && !network.isUsable && network.looksForOrigin == nil
                ? Wait(.network, until: nil) : nil
        }
    }

    /// The next run that is planned, if nothing is heard before.
    package func nextRun(at now: Instant) -> PlannedRun? {
        guard run == nil, !isHeld else { return nil }
        switch standing(at: now) {
        case .waiting(let wait):
            return wait.until.map { PlannedRun(at: $0, reason: ready.isEmpty && retry != nil ? .retry : .signals) }
        case .unproven: return nil
        case .goes: return PlannedRun(at: now, reason: ready.isEmpty ? .retry : .signals)
        case .nothingWanted: return plan.map { PlannedRun(at: $0, reason: .timer) }
        }
    }

    /// How good the copy is; nil: there is none.
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

    /// When the copy is older than its `max-age`; nil: never, or there is none.
    var expires: Instant? {
        guard hasGeneration, let maxAge = settings.maxAge else { return nil }
        return confirmed?.advanced(by: maxAge)
    }

    /// Tells once that the copy is too old, and once that it is not any more.
    mutating func reportExpiry(_ now: Instant) {
        let checked = expires.flatMap { now >= $0 ? confirmed : nil }
        if checked != nil, isTakenAway(at: now) {
            // That is told by itself.
            isExpired = false
            return
        }
        guard isExpired != (checked != nil), !isStopped else { return }
        isExpired = checked != nil
        report(checked.map(EngineEvent.expired) ?? .expiredNoMore)
    }

    /// The instant at which time alone changes something.
    func nextWake(_ now: Instant) -> Instant? {
        if isStopped { return nil }
        var instants = [storm.deliversAt, splayedUntil, parameters?.due]
        // What is past was told.
        instants += [expires, contentExpiryInstant, withdrawsAt, withdrawal?.retry].map {
            $0.flatMap { now < $0 ? $0 : nil }
        }
        if let run {
            if run.interruption == nil { instants.append(run.dueEnd) }
        }
        // What is due ends the loading of a further page.
        if isBetweenChecks, !isHeld, run?.interruption == nil {
            instants.append(plan)
            if slotRequest == nil, case .waiting(let wait) = standing(at: now) { instants.append(wait.until) }
        }
        return instants.compactMap(\.self).min()
    }

    /// Tells what changed of what can be seen.
    mutating func reportState(_ now: Instant) {
        // A place that was asked for just now may be granted at once: whether it is waited for is known next time.
        guard !actions.contains(where: { if case .requestSlot = $0 { true } else { false } }) else { return }
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
    /// Whether the two differ in nothing but an instant or the progress: no news.
    func isLike(_ other: PipelineActivity) -> Bool {
        switch (self, other) {
        case (.waiting(let one), .waiting(let other)): one.reason == other.reason && one.detail == other.detail
        case (.loading, .loading): true
        default: self == other
        }
    }

    /// What it waits for, if it is called waiting.
    package var wait: Wait? {
        if case .waiting(let wait) = self { wait } else { nil }
    }
}
