import FreshetModel

/// Starts runs for what is ready, and decides what follows when a run ends.
extension RefreshMachine {
    /// Whether the next run may start, and what prevents it.
    enum RunDecision: Hashable, Sendable {
        case nothingRequested
        case waiting(Wait)
        /// Only a proof of the network is missing.
        case unproven
        case ready(RunReason)

        var isReady: Bool { if case .ready = self { true } else { false } }
    }

    func decision(at now: Instant) -> RunDecision {
        guard queue.isReady else {
            return queue.wait(for: parameters?.due).map(RunDecision.waiting) ?? .nothingRequested
        }
        if conditions.goesToSleep { return .waiting(Wait(.sleep)) }
        let urgency = queue.ready.urgency
        var reason = queue.reason(after: schedule.failing?.attempts ?? 0)
        if urgency < .forced {
            // A pipeline that was never checked is overdue, so only the time without a network counts.
            let overdueSince = schedule.plannedCheck(since: conditions.network.state.changedAt, settings)
            if let wait = conditions.wait(settings, overdueSince: overdueSince, at: now) { return .waiting(wait) }
            if conditions.isOffline(settings) { reason = .noRoute }
        }
        if let wait = conditions.costWait(settings.policy, urgency) { return .waiting(wait) }
        if urgency == .none {
            if let wait = queue.retryWait(at: now) { return .waiting(wait) }
            if let next = runs.lastStart?.advanced(by: settings.policy.minInterval), now < next {
                return .waiting(Wait(.interval, until: next))
            }
        }
        return urgency == .forced || isProven(at: now) ? .ready(reason) : .unproven
    }

    /// The same for a further page.
    func loadMoreDecision(at now: Instant) -> RunDecision {
        more.decision(isFree: phase.run == nil && !conditions.goesToSleep, isProven: isProven(at: now))
    }

    private func isProven(at now: Instant) -> Bool {
        conditions.isProven(settings.policy, isStarting: phase.requestedPermit != nil, at: now)
    }

    /// Requests a permit when nothing else prevents a run.
    mutating func proceed(_ now: Instant) {
        guard !conditions.isHeld, !phase.isStopped else { return }
        if !more.isEmpty, let refusal = conditions.loadMoreRefusal(settings, at: now) {
            output.answer(more.takeAll(), .refused(refusal))
        }
        let isCheckReady = decision(at: now).isReady
        // A check replaces all pages.
        if isCheckReady, phase.run?.isLoadMore == true { interrupt(.restart) }
        guard phase.isIdle, isCheckReady || loadMoreDecision(at: now).isReady else { return }
        runs.lastPermit += 1
        phase = .requestingPermit(runs.lastPermit)
        output.add(.requestPermit(runs.lastPermit))
    }

    /// Requests a proof when nothing else prevents a run, and withdraws the request when something does.
    mutating func seekProof(_ now: Instant) {
        let isMissing =
            settings.policy.needsNetwork.probe != nil && phase.isIdle && !conditions.isHeld
            && (decision(at: now) == .unproven || loadMoreDecision(at: now) == .unproven)
        if let request = conditions.seekProof(settings.policy, isMissing: isMissing) { output.add(.prove(request)) }
    }

    mutating func permitGranted(_ permit: UInt64, _ now: Instant) {
        var granted: RunInProgress?
        // Otherwise the request was withdrawn while the grant was on the way.
        if permit == phase.requestedPermit {
            phase = .idle
            if !conditions.isHeld {
                if case .ready(let reason) = decision(at: now) {
                    granted = check(reason, permit: permit, now)
                } else if case .ready(let reason) = loadMoreDecision(at: now) {
                    granted = furtherPage(reason, permit: permit, now)
                }
            }
        }
        guard let run = granted else { return output.add(.releasePermit(permit)) }
        phase = .running(run)
        // The request is counted before it is made, so that it is counted even if the daemon ends during the run.
        output.remember(conditions.budget.spend(1, of: settings.policy.budget, at: now))
        output.add(.start(run.order))
        output.report(.runStarted(run.order))
    }

    /// The run that checks the source now. It takes all received signals and all changes of parameters so far.
    private mutating func check(_ reason: RunReason, permit: UInt64, _ now: Instant) -> RunInProgress {
        var request = queue.takeAll()
        if let debouncer = parameters {
            // State about other values says nothing about these.
            if debouncer.isUntried { schedule.forget() }
            if let cause = parameters?.start(with: &request) { output.report(.received(cause)) }
        }
        request.isRelease = false
        request.causes.sort { $0.first < $1.first }
        if request.isUnconditional,
            let operation = request.causes.firstIndex(where: { $0.signal == SignalName.operation })
        {
            // A later request of the operator may have another detail.
            request.causes[operation].detail = RunOrder.unconditional
        }
        schedule.plan = nil
        let startBefore = runs.lastStart
        runs.lastStart = now
        if reason == .noRoute { conditions.network.attemptedAnyway(at: now) }
        let budget = settings.policy.budget
        let order = RunOrder(
            run: runs.nextNumber(), reason: reason, causes: request.causes, started: now,
            epoch: conditions.network.state.epoch, parameters: parameters?.values ?? ParameterValues(),
            allowance: reason == .forced ? nil : conditions.budget.allowance(of: budget, at: now),
            isUnconditional: request.isUnconditional)
        defer { requests = [] }
        return RunInProgress(
            order, request, requests: requests, permit: permit, startBefore: startBefore,
            path: conditions.network.usedPath, direct: conditions.network.directRun(at: now),
            limit: settings.policy.deadline)
    }

    /// The run that loads the first requested page; nil: none is requested.
    private mutating func furtherPage(_ reason: RunReason, permit: UInt64, _ now: Instant) -> RunInProgress? {
        guard let request = more.takeFirst() else { return nil }
        let order = RunOrder(
            run: runs.nextNumber(), reason: reason, causes: [request.cause], started: now,
            epoch: conditions.network.state.epoch,
            // The values of the copy: other values make another copy, which has no pages yet.
            parameters: parameters?.tried ?? parameters?.values ?? ParameterValues(),
            allowance: conditions.budget.allowance(of: settings.policy.budget, at: now))
        return RunInProgress(
            order, requests: request.requests, permit: permit, startBefore: runs.lastStart,
            path: conditions.network.usedPath, limit: settings.policy.deadline)
    }

    /// Cancels the run in progress, once.
    mutating func interrupt(_ interruption: Interruption) {
        let mayFinish = runs.superseded >= Self.supersededInARow
        guard phase.update({ $0.interrupt(interruption, mayFinish: mayFinish) }) == true, let run = phase.run else {
            return
        }
        output.add(.cancel(run: run.order.run))
    }

    // MARK: The end of a run

    mutating func ended(_ number: UInt64, _ result: RunResult, requests: Int, _ now: Instant) {
        guard let run = phase.end(number) else { return }  // safe: the runner reports each run's end once
        // The causes of a run may wait again: then the waiting request has more than the change that was let through.
        if run.pendingRequest.hasParameters { parameters?.isPassed = false }
        output.remember(conditions.budget.settle(requests, result, of: settings.policy.budget, at: now))
        output.add(.releasePermit(run.permit))
        if let direct = run.direct { conditions.network.runEnded(direct, result) }
        let end = RunEnd(result, run.interruption)
        let deadline = settings.policy.deadline
        if run.isLoadMore {
            if case .failed(let failure) = end { backoff(after: failure, now) }
            let refusal = conditions.loadMoreRefusal(settings, at: now)
            return conclude(run, more.ended(run, end, refusal: refusal, deadline: deadline), now)
        }
        switch end {
        case .stopped: conclude(run, RunConclusion(.cancelled, .stopped), now)
        case .cancelled:
            // The causes of the run stay.
            queue.ready.merge(run.pendingRequest.again)
            conclude(run, RunConclusion(.cancelled, .stopped), now)
        case .superseded(let interruption): supersede(run, interruption, now)
        case .succeeded(let success): succeeded(run, success, now)
        case .failed(let failure): failed(run, failure, now)
        case .late:
            failed(run, RunFailure(.deadline, "the run took longer than its deadline of \(deadline)"), now)
        }
    }

    private mutating func succeeded(_ run: RunInProgress, _ success: RunSuccess, _ now: Instant) {
        if let flaw = success.flaw {
            copy.confirmInPart(at: now)
            return failed(run, flaw, partial: success, now)
        }
        let checked = success.at ?? now
        runs.superseded = 0
        schedule.originExpires = success.expires
        schedule.succeeded(at: checked)
        copy.confirm()
        if conditions.retryAfter != nil {
            conditions.retryAfter = nil
            output.add(.rememberRetryAfter(nil))
        }
        queue.answered(until: checked)
        schedule.plan = schedule.plannedCheck(since: checked, settings)
        conclude(run, RunConclusion(success.outcome, generation: success.generation, .answered), now)
    }

    /// The operator accepted the content of a run. If it was the last run, the run counts as a success, and there is no
    /// retry.
    mutating func accepted(_ run: UInt64?) {
        copy.confirm()
        guard let failing = schedule.failing, failing.run == run, !failing.isPartial else { return }
        schedule.succeeded(at: failing.ended)
        // A run in progress sets its own plan.
        guard phase.isBetweenChecks else { return }
        // Requests that wait for a run get one.
        if let given = queue.retry, !requests.isEmpty { queue.ready.merge(given.pendingRequest) }
        queue.retry = nil
        schedule.plan = schedule.plannedCheck(since: failing.ended, settings)
    }

    /// Another run replaces this one and takes its causes.
    private mutating func supersede(_ run: RunInProgress, _ interruption: Interruption, _ now: Instant) {
        if interruption.countsAsSuperseded { runs.superseded += 1 }
        // If something is ready already, or a request waits, the causes need no debouncing.
        if interruption.isDebounced, queue.ready.isEmpty, run.pendingRequest.urgency == .none {
            admit(run.pendingRequest, now)
        } else {
            queue.putBack(run.pendingRequest)
        }
        conclude(run, RunConclusion(.superseded, .kept), now)
    }

    /// - Parameter partial: the result of a run of which only a part failed.
    private mutating func failed(
        _ run: RunInProgress, _ failure: RunFailure, partial: RunSuccess? = nil, _ now: Instant
    ) {
        runs.superseded = 0
        // A forced request is answered with this result; it does not wait for the network.
        let isForced = run.pendingRequest.urgency == .forced
        let uncounted = RunConclusion(.failed, failure: failure, counts: false, isForced ? .answered : .kept)
        // A check rejected the origin's content. The origin did not fail, and an immediate retry would not change the
        // result: the next check comes by the clock.
        if failure.rejection != nil, settings.policy.isPlanned,
            !failure.isTriedSoon || schedule.failing?.tally.mismatches ?? 0 >= Self.mostBriefRejections
        {
            schedule.rejected(failure, of: run.order, settings, now)
            queue.answered(until: now)
            return conclude(run, RunConclusion(.failed, failure: failure, .answered), now)
        }
        schedule.clearRejection()
        backoff(after: failure, now)
        // A retry is useless until the other pipeline has a copy; then its signal fires. It may have fired during the
        // run, and been ignored.
        if failure.kind == .absent, run.ignored == 0 {
            return conclude(run, RunConclusion(.failed, failure: failure, counts: false, .answered), now)
        }
        var request = run.pendingRequest.again
        // The answered requests were unconditional, and the failed parts have no validators.
        if partial != nil { request.isUnconditional = false }
        if failure.kind == .connection, settings.needsNetwork, partial == nil {
            if !conditions.network.isUsable {
                // Being offline is a state, not a failure.
                queue.ready.merge(request)
                return conclude(run, uncounted, now)
            }
            if conditions.network.isGrace(at: now) {
                // The run did not reach the origin, so `min-interval` does not apply.
                runs.lastStart = run.startBefore
                let due = now.advanced(by: conditions.network.graceDelay())
                queue.retry = Retry(pendingRequest: request, kind: .connection, due: due, inGrace: true)
                return conclude(run, uncounted, now)
            }
        }
        let attempts = schedule.failed(failure, of: run.order.run, isPartial: partial != nil, now)
        var delay = Backoff.delay(
            after: attempts, failure.kind, isPartial: partial != nil, policy: settings.policy, jitter: &jitter)
        // A failing branch must not delay the check of the other branches.
        if partial != nil, let planned = schedule.nextCheck(after: now, settings) {
            delay = min(delay, now.duration(to: planned))
        }
        var due = max(now.advanced(by: delay), run.order.started.advanced(by: settings.policy.minInterval))
        if let retryAfter = conditions.retryAfter { due = max(due, retryAfter) }
        queue.scheduleRetry(Retry(pendingRequest: request, kind: failure.kind, due: due, inGrace: false))
        conclude(
            run,
            RunConclusion(partial?.outcome ?? .failed, generation: partial?.generation, failure: failure, .answered),
            now)
        output.report(.retryPlanned(at: due, failures: attempts, after: failure))
    }

    /// Applies the `Retry-After` of the origin, if the failure has one.
    private mutating func backoff(after failure: RunFailure, _ now: Instant) {
        guard let requested = failure.retryAfter, requested > .zero else { return }
        // Without jitter, all refused clients would return in the same second.
        let wait = Backoff.spread(
            over: min(requested, Backoff.longestRetryAfter), after: (schedule.failing?.tally.failures ?? 0) + 1,
            policy: settings.policy.retry, &jitter)
        let until = now.advanced(by: wait)
        conditions.retryAfter = until
        output.add(.rememberRetryAfter(until))
    }

    /// Reports the end of a run, and answers the requests for it unless they wait for another run.
    private mutating func conclude(_ run: RunInProgress, _ conclusion: RunConclusion, _ now: Instant) {
        let summary = RunSummary(
            run: run.order.run, reason: run.order.reason, causes: run.order.causes, started: run.order.started,
            ended: now, outcome: conclusion.outcome, failure: conclusion.failure, counts: conclusion.counts,
            generation: conclusion.generation, ignored: run.ignored)
        runs.ended(summary)
        output.report(.runEnded(summary, next: nextRun(at: now)))
        switch conclusion.requests {
        case .answered: output.answer(run.requests, .ended(summary))
        case .stopped: output.answer(run.requests, .stopped)
        case .refused(let refusal): output.answer(run.requests, .refused(refusal))
        // The machine of further pages keeps the requests for them.
        case .kept: if !run.isLoadMore { requests = run.requests + requests }
        }
    }

    // MARK: Further pages

    mutating func loadMore(_ request: UInt64?, at place: [String], _ now: Instant) {
        let requests = request.map { [$0] } ?? []
        let refusal = conditions.loadMoreRefusal(settings, at: now)
        switch more.requested(requests, at: place, refusal: refusal, during: phase.run, now) {
        case .joinsRun: _ = phase.update { $0.requests += requests }
        case .waits: conditions.proofMayHaveChanged(settings.policy, at: now)
        case .refused(let refusal): output.answer(requests, .refused(refusal))
        }
    }
}
