/// From a signal to something that is ready to run.
extension RefreshMachine {
    /// What time alone has brought.
    mutating func elapse(_ now: Instant) {
        if storm.elapse(at: now) { deliver(gathered.take(), now) }
        if let until = splayedUntil, now >= until {
            splayedUntil = nil
            admit(splayed.take(), now)
        }
        if let due = plan, now >= due, isBetweenChecks, !isStopped {
            // The next one is planned when this one has been answered.
            plan = nil
            let cause = RunCause(SignalName.timer, first: due)
            report(.heard(cause))
            admit(Wanted(causes: [cause]), now)
        }
        elapseParameters(now)
        if let deadline = run?.dueEnd, now >= deadline { interrupt(.deadline) }
    }

    mutating func heard(_ causes: [RunCause], _ now: Instant) {
        var suppressed: [RunCause] = []
        var late = Wanted()
        var wanted = Wanted()
        for cause in causes {
            report(.heard(cause))
            switch cause.signal {
            case SignalName.operation:
                refresh(nil, force: false, cause, now)
                continue
            case SignalName.network, SignalName.resume:
                network.settle(from: cause.last)
                proofMayHaveChanged(at: cause.last)
            default: break
            }
            if isFresh(for: cause, at: now) {
                suppressed.append(cause)
            } else if settings.splay > .zero, [SignalName.start, SignalName.network].contains(cause.signal) {
                late.causes.add(cause)
            } else {
                wanted.causes.add(cause)
            }
        }
        if !suppressed.isEmpty, let sparedUntil {
            report(.suppressed(suppressed, freshUntil: sparedUntil))
        }
        if !late.isEmpty { delay(late, now) }
        if !wanted.isEmpty { admit(wanted, now) }
    }

    /// Whether the copy is young enough for this signal to fetch nothing. Not while a failed run is to be tried again:
    /// then the copy is known to be wanting.
    private func isFresh(for cause: RunCause, at now: Instant) -> Bool {
        guard cause.kind == .environment, cause.signal != SignalName.timer, retry == nil,
            !(isWithdrawn || isContentExpired(at: now)) || lastRefusal != nil, let lastAnswer
        else {
            return false
        }
        // The first: it fired before that check, and is told of after it.
        return cause.last < lastAnswer || now < sparedUntil ?? lastAnswer
    }

    /// Until when signals of the surroundings fetch nothing. What was refused is not asked for sooner than what was
    /// accepted.
    private var sparedUntil: Instant? { lastRefusal?.advanced(by: settings.policy.freshFor) ?? freshUntil }

    /// Until when the copy is fresh: for `fresh-for` after the last check, or as long as the
    /// origin says if that is longer and is to be heard.
    var freshUntil: Instant? {
        guard let own = lastSuccess?.advanced(by: settings.policy.freshFor) else { return nil }
        guard settings.policy.honoursOrigin, let originExpires else { return own }
        return max(own, originExpires)
    }

    /// Keeps for this host's share of the splay; more that comes until then does not prolong it.
    private mutating func delay(_ wanted: Wanted, _ now: Instant) {
        splayed.merge(wanted)
        splayedUntil = splayedUntil ?? now.advanced(by: settings.splay)
    }

    /// Through the storm gate. What cannot run yet for want of a network waits in front of it, so that it is the
    /// network's return that finds calm.
    mutating func admit(_ wanted: Wanted, _ now: Instant) {
        if settings.needsNetwork, !network.isUsable {
            storm.touch(at: now)
            ready.merge(wanted)
        } else if storm.hear(at: now) {
            deliver(wanted, now)
        } else {
            gathered.merge(wanted)
        }
    }

    /// What has passed the gate is ready; it takes back waits, and may end the run under way.
    private mutating func deliver(_ wanted: Wanted, _ now: Instant) {
        if var retry {
            retry.isHeld = false
            if wanted.hasDemand || (wanted.hasEnvironment && retry.kind == .connection) { retry.isCut = true }
            self.retry = retry
        }
        guard !wanted.causes.isEmpty else { return }
        var wanted = wanted
        wanted.isRelease = false
        ready.merge(wanted)
        restartCheck()
    }

    /// What is ready takes the place of the check under way, if that is configured; not while it is held, when nothing
    /// would take its place. A further page ends only for a check that may start, which is seen when it may.
    private mutating func restartCheck() {
        guard settings.policy.whenRunning == .restart, !isHeld, run?.isLoadMore == false else { return }
        interrupt(.restart)
    }

    mutating func networkChanged(_ state: NetworkState, _ now: Instant) {
        let change = network.update(state, now: now)
        guard settings.needsNetwork else { return }
        if !state.reachable {
            if run?.path != nil { interrupt(.networkLost) }
        } else if let run, run.path != state.path {
            interrupt(.pathChanged(early: run.order.started >= state.changedAt))
        } else if let run, run.isOutlived(by: state) {
            // Back on its path after another one, which it was left to finish on: that is no loss of its own.
            interrupt(run.isSpared ? .pathChanged(early: false) : .networkLost)
        }
        if change == .regained { releaseFromNetwork(now) }
    }

    /// The network came back: what waited for it goes through the gate, where a storm gathers it.
    private mutating func releaseFromNetwork(_ now: Instant) {
        let retryWaits = retry.map { $0.kind == .connection || $0.due <= now } ?? false
        guard retryWaits || !ready.isEmpty else { return }
        if ready.urgency > .none {
            // The operator's run passes the gate, and takes all along.
            _ = storm.hear(at: now)
            return
        }
        if retryWaits { retry?.isHeld = true }
        var released = ready.take()
        released.isRelease = true
        if settings.splay > .zero { delay(released, now) } else { admit(released, now) }
    }

    /// Why the operator's request is refused now; nil: it is not.
    package func refusal(force: Bool, at now: Instant) -> RefreshRefusal? {
        if isHeld { return .held }
        if force { return nil }
        if let retryAfter, retryAfter > now { return .retryAfter(until: retryAfter) }
        if let room = hasRoomInBudget(at: now) { return .budget(until: room) }
        return nil
    }

    mutating func refresh(_ request: UInt64?, force: Bool, unconditional: Bool, _ now: Instant) {
        let detail = unconditional ? RunOrder.unconditional : nil
        refresh(
            request, force: force, unconditional: unconditional,
            RunCause(SignalName.operation, first: now, detail: detail), now)
    }

    private mutating func refresh(
        _ request: UInt64?, force: Bool, unconditional: Bool = false, _ cause: RunCause, _ now: Instant
    ) {
        if let refusal = refusal(force: force, at: now) {
            if let request { actions.append(.answer(request: request, .refused(refusal))) }
            return
        }
        if let request { requests.append(request) }
        proofMayHaveChanged(at: now)
        ready.merge(
            Wanted(causes: [cause], urgency: force ? .forced : .operation, isUnconditional: unconditional))
        restartCheck()
    }

    mutating func reconfigured(_ new: RefreshSettings, sameProduct: Bool, _ now: Instant) {
        if settings.policy.needsNetwork.probe != new.policy.needsNetwork.probe { proof?.until = nil }
        settings = new
        if new.policy.budget == nil { meter = nil }
        storm.quiet = new.policy.quiet
        storm.atMost = new.policy.atMost
        if let until = splayedUntil { splayedUntil = min(until, now.advanced(by: new.splay)) }
        if !sameProduct {
            // What was known of the old source says nothing about the new one.
            lastSuccess = nil
            lastRefusal = nil
            originExpires = nil
            memory = nil
            failing = nil
            if retryAfter != nil {
                retryAfter = nil
                actions.append(.rememberRetryAfter(nil))
            }
            if let old = retry {
                retry = nil
                admit(old.wanted, now)
            }
            interrupt(.configuration)
            // It was asked for at the old source's origin.
            if let slot = slotRequest {
                slotRequest = nil
                actions.append(.releaseSlot(slot))
            }
        }
        guard isBetweenChecks, retry == nil else { return }
        // A check that is due by the new configuration leaves the signal `reload` the time to come first.
        let due = plannedCheck(since: now)
        plan = due.map { max($0, sameProduct ? now : now.advanced(by: new.policy.quiet)) }
    }

    /// Nothing starts while it is held; what is heard is kept. A run under way ends by itself.
    mutating func hold(_ held: Bool) {
        isHeld = held
        guard held else { return }
        for request in requests { actions.append(.answer(request: request, .refused(.held))) }
        requests = []
        answerMore(.refused(.held))
    }

    mutating func stop(_ now: Instant) {
        isStopped = true
        plan = nil
        if let slotRequest {
            actions.append(.releaseSlot(slotRequest))
            self.slotRequest = nil
        }
        for request in requests { actions.append(.answer(request: request, .stopped)) }
        requests = []
        answerMore(.stopped)
        interrupt(.stopped)
    }
}
