/// Processes signals until they are ready for a run.
extension RefreshMachine {
    /// Applies everything that became due by time alone.
    mutating func elapse(_ now: Instant) {
        if burst.elapse(at: now) { deliver(gathered.take(), now) }
        if let until = splayedUntil, now >= until {
            splayedUntil = nil
            admit(splayed.take(), now)
        }
        if let due = plan, now >= due, isBetweenChecks, !isStopped {
            // The next check is planned when this one has ended.
            plan = nil
            let cause = RunCause(SignalName.timer, first: due)
            report(.received(cause))
            admit(PendingRequest(causes: [cause]), now)
        }
        elapseParameters(now)
        if let deadline = run?.dueEnd, now >= deadline { interrupt(.deadline) }
    }

    mutating func received(_ causes: [RunCause], _ now: Instant) {
        var skipped: [RunCause] = []
        var late = PendingRequest()
        var pendingRequest = PendingRequest()
        for cause in causes {
            report(.received(cause))
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
                skipped.append(cause)
            } else if settings.splay > .zero, [SignalName.start, SignalName.network].contains(cause.signal) {
                late.causes.add(cause)
            } else {
                pendingRequest.causes.add(cause)
            }
        }
        if !skipped.isEmpty, let skippedUntil {
            report(.skipped(skipped, freshUntil: skippedUntil))
        }
        if !late.isEmpty { delay(late, now) }
        if !pendingRequest.isEmpty { admit(pendingRequest, now) }
    }

    /// Whether the copy is fresh enough to skip this signal. It is not while a failed run is to be retried, since the
    /// copy is known to be out of date.
    private func isFresh(for cause: RunCause, at now: Instant) -> Bool {
        guard cause.kind == .environment, cause.signal != SignalName.timer, retry == nil,
            !(isWithdrawn || isContentExpired(at: now)) || lastRejection != nil, let lastAnswer
        else {
            return false
        }
        // The first condition: the signal fired before that check and arrived after it.
        return cause.last < lastAnswer || now < skippedUntil ?? lastAnswer
    }

    /// Until when environment signals are skipped. Rejected content is not requested again sooner than accepted
    /// content.
    private var skippedUntil: Instant? { lastRejection?.advanced(by: settings.policy.freshFor) ?? freshUntil }

    /// Until when the copy is fresh: for `fresh-for` after the last check, or as long as the origin states, if that is
    /// longer and configured.
    var freshUntil: Instant? {
        guard let own = lastSuccess?.advanced(by: settings.policy.freshFor) else { return nil }
        guard settings.policy.honoursOrigin, let originExpires else { return own }
        return max(own, originExpires)
    }

    /// Holds a request for this host's share of the splay; later requests do not prolong it.
    private mutating func delay(_ pendingRequest: PendingRequest, _ now: Instant) {
        splayed.merge(pendingRequest)
        splayedUntil = splayedUntil ?? now.advanced(by: settings.splay)
    }

    /// Passes a request to the debouncer. Without a network it waits in front of the debouncer, so that the network's
    /// return is not part of a burst.
    mutating func admit(_ pendingRequest: PendingRequest, _ now: Instant) {
        if settings.needsNetwork, !network.isUsable {
            burst.touch(at: now)
            ready.merge(pendingRequest)
        } else if burst.receive(at: now) {
            deliver(pendingRequest, now)
        } else {
            gathered.merge(pendingRequest)
        }
    }

    /// Makes a request that has passed the debouncer ready; it ends backoffs, and may end the run in progress.
    private mutating func deliver(_ pendingRequest: PendingRequest, _ now: Instant) {
        if var retry {
            retry.isHeld = false
            if pendingRequest.hasRequest || (pendingRequest.hasEnvironment && retry.kind == .connection) {
                retry.isCut = true
            }
            self.retry = retry
        }
        guard !pendingRequest.causes.isEmpty else { return }
        var pendingRequest = pendingRequest
        pendingRequest.isRelease = false
        ready.merge(pendingRequest)
        restartCheck()
    }

    /// Replaces the check in progress if that is configured; not while the pipeline is held, since no other run would
    /// start. A run for a further page ends only when a check may start, which ``proceed(_:)`` decides.
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
            // The network is back on the run's path after a change that the run was allowed to survive: its connections
            // are not lost.
            interrupt(run.isSpared ? .pathChanged(early: false) : .networkLost)
        }
        if change == .regained { releaseFromNetwork(now) }
    }

    /// The network came back: waiting requests pass through the debouncer, where a burst holds them.
    private mutating func releaseFromNetwork(_ now: Instant) {
        let retryWaits = retry.map { $0.kind == .connection || $0.due <= now } ?? false
        guard retryWaits || !ready.isEmpty else { return }
        if ready.urgency > .none {
            // A run of the operator is not debounced, and takes everything else along.
            _ = burst.receive(at: now)
            return
        }
        if retryWaits { retry?.isHeld = true }
        var released = ready.take()
        released.isRelease = true
        if settings.splay > .zero { delay(released, now) } else { admit(released, now) }
    }

    /// Why a request of the operator is refused now; nil: it is allowed.
    package func refusal(force: Bool, at now: Instant) -> RefreshRefusal? {
        if isHeld { return .held }
        if force { return nil }
        if let retryAfter, retryAfter > now { return .retryAfter(until: retryAfter) }
        if let available = budgetAvailable(at: now) { return .budget(until: available) }
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
            PendingRequest(causes: [cause], urgency: force ? .forced : .operation, isUnconditional: unconditional))
        restartCheck()
    }

    mutating func reconfigured(_ new: RefreshSettings, sameProduct: Bool, _ now: Instant) {
        if settings.policy.needsNetwork.probe != new.policy.needsNetwork.probe { proof?.until = nil }
        settings = new
        if new.policy.budget == nil { meter = nil }
        burst.quiet = new.policy.quiet
        burst.atMost = new.policy.atMost
        if let until = splayedUntil { splayedUntil = min(until, now.advanced(by: new.splay)) }
        if !sameProduct {
            // State about the old source says nothing about the new one.
            lastSuccess = nil
            lastRejection = nil
            originExpires = nil
            memory = nil
            failing = nil
            if retryAfter != nil {
                retryAfter = nil
                actions.append(.rememberRetryAfter(nil))
            }
            if let old = retry {
                retry = nil
                admit(old.pendingRequest, now)
            }
            interrupt(.configuration)
            // The permit was requested for the old source's origin.
            if let permit = permitRequest {
                permitRequest = nil
                actions.append(.releasePermit(permit))
            }
        }
        guard isBetweenChecks, retry == nil else { return }
        // A check that is due by the new configuration waits so that the signal `reload` can come first.
        let due = plannedCheck(since: now)
        plan = due.map { max($0, sameProduct ? now : now.advanced(by: new.policy.quiet)) }
    }

    /// Holds or releases the pipeline. While it is held, no run starts and received signals are kept. A run in progress
    /// ends by itself.
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
        if let permitRequest {
            actions.append(.releasePermit(permitRequest))
            self.permitRequest = nil
        }
        for request in requests { actions.append(.answer(request: request, .stopped)) }
        requests = []
        answerMore(.stopped)
        interrupt(.stopped)
    }
}
