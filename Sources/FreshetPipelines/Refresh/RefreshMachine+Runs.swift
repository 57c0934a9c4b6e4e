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
        if urgency == .none {
            if let wait = queue.retryWait(at: now) { return .waiting(wait) }
            if let next = runs.lastStart?.advanced(by: settings.policy.minInterval), now < next {
                return .waiting(Wait(.interval, until: next))
            }
        }
        return urgency == .forced || isProven(at: now) ? .ready(reason) : .unproven
    }

    /// The same for a further page. Nothing is requested while it has to wait for the end of a run or of a sleep.
    func loadMoreDecision(at now: Instant) -> RunDecision {
        guard let request = more.waiting.first, phase.run == nil, !conditions.goesToSleep else {
            return .nothingRequested
        }
        return isProven(at: now) ? .ready(.loadMore(request.place)) : .unproven
    }

    private func isProven(at now: Instant) -> Bool {
        conditions.isProven(settings.policy, isStarting: phase.requestedPermit != nil, at: now)
    }

    /// Requests a permit when nothing else prevents a run.
    mutating func proceed(_ now: Instant) {
        guard !conditions.isHeld, !phase.isStopped else { return }
        if !more.isEmpty, let refusal = loadMoreRefusal(at: now) { output.answer(more.takeAll(), .refused(refusal)) }
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
        // Otherwise the request was withdrawn while the grant was on the way.
        if permit == phase.requestedPermit {
            phase = .idle
            if !conditions.isHeld, case .ready(let reason) = decision(at: now) {
                return start(reason, permit: permit, now)
            }
            if !conditions.isHeld, case .ready(let reason) = loadMoreDecision(at: now) {
                return startLoadMore(reason, permit: permit, now)
            }
        }
        output.add(.releasePermit(permit))
    }

    private mutating func start(_ reason: RunReason, permit: UInt64, _ now: Instant) {
        var request = queue.takeAll()
        takeParameters(into: &request)
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
        let run = RunInProgress(
            order, request, requests: requests, permit: permit, startBefore: startBefore,
            path: conditions.network.usedPath, direct: conditions.network.directRun(at: now),
            limit: settings.policy.deadline)
        requests = []
        begin(run, now)
    }

    private mutating func startLoadMore(_ reason: RunReason, permit: UInt64, _ now: Instant) {
        guard let request = more.takeFirst() else { return output.add(.releasePermit(permit)) }
        let order = RunOrder(
            run: runs.nextNumber(), reason: reason, causes: [request.cause], started: now,
            epoch: conditions.network.state.epoch,
            // The values of the copy: other values make another copy, which has no pages yet.
            parameters: parameters?.tried ?? parameters?.values ?? ParameterValues(),
            allowance: conditions.budget.allowance(of: settings.policy.budget, at: now))
        begin(
            RunInProgress(
                order, requests: request.requests, permit: permit, startBefore: runs.lastStart,
                path: conditions.network.usedPath, limit: settings.policy.deadline), now)
    }

    private mutating func begin(_ run: RunInProgress, _ now: Instant) {
        phase = .running(run)
        // The request is counted before it is made, so that it is counted even if the daemon ends during the run.
        output.remember(conditions.budget.spend(1, of: settings.policy.budget, at: now))
        output.add(.start(run.order))
        output.report(.runStarted(run.order))
    }

    /// A run starts and takes all changes of parameters so far. State about other values is cleared.
    private mutating func takeParameters(into request: inout PendingRequest) {
        guard var debouncer = parameters else { return }
        if debouncer.isUntried { schedule.forget() }
        let isPassed = debouncer.isPassed
        let cause = debouncer.start()
        parameters = debouncer
        guard let cause else { return }
        output.report(.received(cause))
        if isPassed { request.dropParameters() }
        request.causes.add(cause)
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
        if run.isLoadMore { return loadMoreEnded(run, result, now) }
        switch (result, run.interruption) {
        case (_, .stopped?):
            finish(run, .cancelled, now)
        case (_, .configuration?), (_, .parameters?):
            // Even a success belongs to the old configuration or the old values.
            supersede(run, .configuration, now)
        case (.succeeded(let changed, let generation, _, let flaw?, _), _):
            expiry.hasCopy = true
            withdrawal?.copyMade(at: now)
            failed(run, flaw, partial: (changed ? .changed : .unchanged, generation), now)
        case (.succeeded(let changed, let generation, let at, nil, let expires), _):
            schedule.originExpires = expires
            succeeded(run, changed ? .changed : .unchanged, generation: generation, at: at ?? now, now)
        case (_, .deadline?):
            let limit = settings.policy.deadline
            failed(run, RunFailure(.deadline, "the run took longer than its deadline of \(limit)"), now)
        case (_, let interruption?):
            supersede(run, interruption, now)
        case (.failed(let failure), nil):
            failed(run, failure, now)
        case (.cancelled, nil):
            // The whole service is being cancelled; the causes of the run stay.
            queue.ready.merge(run.pendingRequest.again)
            finish(run, .cancelled, now)
        }
    }

    private mutating func succeeded(
        _ run: RunInProgress, _ outcome: RunOutcome, generation: UInt64?, at success: Instant, _ now: Instant
    ) {
        runs.superseded = 0
        schedule.succeeded(at: success)
        expiry.hasCopy = true
        if conditions.retryAfter != nil {
            conditions.retryAfter = nil
            output.add(.rememberRetryAfter(nil))
        }
        queue.answered(until: success)
        schedule.plan = schedule.plannedCheck(since: success, settings)
        finish(run, outcome, generation: generation, now)
    }

    /// The operator accepted the content of a run. If it was the last run, the run counts as a success, and there is no
    /// retry.
    mutating func accepted(_ run: UInt64?) {
        expiry.hasCopy = true
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
        var isPassed = false
        switch interruption {
        case .restart:
            runs.superseded += 1
            isPassed = true
        case .pathChanged(early: true), .configuration, .parameters:
            isPassed = true
        case .pathChanged(early: false):
            runs.superseded += 1
        case .networkLost, .deadline, .stopped:
            break
        }
        // If something is ready already, or a request waits, the causes need no debouncing.
        if isPassed || !queue.ready.isEmpty || run.pendingRequest.urgency > .none {
            queue.putBack(run.pendingRequest)
        } else {
            admit(run.pendingRequest, now)
        }
        finish(run, .superseded, now)
    }

    /// - Parameter partial: the outcome and generation of a run of which only a part failed.
    private mutating func failed(
        _ run: RunInProgress, _ failure: RunFailure, partial: (outcome: RunOutcome, generation: UInt64?)? = nil,
        _ now: Instant
    ) {
        runs.superseded = 0
        // A check rejected the origin's content. The origin did not fail, and an immediate retry would not change the
        // result: the next check comes by the clock.
        if failure.rejection != nil, settings.policy.every != nil,
            !failure.isTriedSoon || schedule.failing?.tally.mismatches ?? 0 >= Self.mostBriefRejections
        {
            schedule.rejected(failure, of: run.order, settings, now)
            queue.answered(until: now)
            return finish(run, .failed, failure: failure, now)
        }
        schedule.clearRejection()
        if let requested = failure.retryAfter, requested > .zero { backoff(for: requested, now) }
        // A retry is useless until the other pipeline has a copy; then its signal fires.
        if failure.kind == .absent { return finish(run, .failed, failure: failure, counts: false, now) }
        var request = run.pendingRequest.again
        // The answered requests were unconditional, and the failed parts have no validators.
        if partial != nil { request.isUnconditional = false }
        if failure.kind == .connection, settings.needsNetwork, partial == nil {
            if !conditions.network.isUsable {
                // Being offline is a state, not a failure.
                queue.ready.merge(request)
                return finish(run, .failed, failure: failure, counts: false, now)
            }
            if conditions.network.isGrace(at: now) {
                // The run did not reach the origin, so `min-interval` does not apply.
                runs.lastStart = run.startBefore
                let due = now.advanced(by: conditions.network.graceDelay())
                queue.retry = Retry(pendingRequest: request, kind: .connection, due: due, inGrace: true)
                return finish(run, .failed, failure: failure, counts: false, now)
            }
        }
        let attempts = schedule.failed(failure, of: run.order.run, isPartial: partial != nil, now)
        var delay = Backoff.delay(
            after: attempts, failure.kind, isPartial: partial != nil, policy: settings.policy, jitter: &jitter)
        // A failing branch must not delay the check of the other branches.
        if partial != nil, let every = settings.policy.every { delay = min(delay, every + settings.plannedDelay) }
        var due = max(now.advanced(by: delay), run.order.started.advanced(by: settings.policy.minInterval))
        if let retryAfter = conditions.retryAfter { due = max(due, retryAfter) }
        queue.scheduleRetry(Retry(pendingRequest: request, kind: failure.kind, due: due, inGrace: false))
        finish(run, partial?.outcome ?? .failed, generation: partial?.generation, failure: failure, now)
        output.report(.retryPlanned(at: due, failures: attempts, after: failure))
    }

    /// Applies a `Retry-After` of the origin.
    private mutating func backoff(for requested: Duration, _ now: Instant) {
        // Without jitter, all refused clients would return in the same second.
        let wait = Backoff.spread(
            over: min(requested, Backoff.longestRetryAfter), after: (schedule.failing?.tally.failures ?? 0) + 1,
            policy: settings.policy.retry, &jitter)
        let until = now.advanced(by: wait)
        conditions.retryAfter = until
        output.add(.rememberRetryAfter(until))
    }

    /// Reports the end of a run, and answers the requests for it unless they wait for another run.
    private mutating func finish(
        _ run: RunInProgress, _ outcome: RunOutcome, generation: UInt64? = nil, failure: RunFailure? = nil,
        counts: Bool = true, _ now: Instant
    ) {
        let summary = close(run, outcome, generation: generation, failure: failure, counts: counts, now)
        switch outcome {
        case .changed, .unchanged:
            output.answer(run.requests, .ended(summary))
        case .failed where counts || run.pendingRequest.urgency == .forced || failure?.kind == .absent:
            // A forced request is answered with this result; it does not wait for the network.
            output.answer(run.requests, .ended(summary))
        case .cancelled:
            output.answer(run.requests, .stopped)
        case .failed, .superseded:
            requests = run.requests + requests
        }
    }

    private mutating func close(
        _ run: RunInProgress, _ outcome: RunOutcome, generation: UInt64?, failure: RunFailure?, counts: Bool,
        _ now: Instant
    ) -> RunSummary {
        let summary = RunSummary(
            run: run.order.run, reason: run.order.reason, causes: run.order.causes, started: run.order.started,
            ended: now, outcome: outcome, failure: failure, counts: counts, generation: generation)
        runs.last = summary
        output.report(.runEnded(summary, next: nextRun(at: now)))
        return summary
    }

    // MARK: Further pages

    /// Why a further page is refused now; nil: it is allowed.
    package func loadMoreRefusal(at now: Instant) -> RefreshRefusal? {
        refusal(force: false, at: now) ?? (conditions.isOffline(settings) ? .network(nil) : nil)
    }

    mutating func loadMore(_ request: UInt64?, at place: [String], _ now: Instant) {
        let requests = request.map { [$0] } ?? []
        if let refusal = loadMoreRefusal(at: now) { return output.answer(requests, .refused(refusal)) }
        // A request for the page that is being loaded gets the result of that run.
        if let run = phase.run, run.order.reason == .loadMore(place), run.interruption == nil {
            _ = phase.update { $0.requests += requests }
            return
        }
        conditions.proofMayHaveChanged(settings.policy, at: now)
        if !more.add(requests, at: place, now) {
            output.answer(requests, .refused(.tooManyRequests(limit: LoadMoreQueue.limit)))
        }
    }

    private mutating func loadMoreEnded(_ run: RunInProgress, _ result: RunResult, _ now: Instant) {
        let outcome: RunOutcome
        var (generation, failure) = (UInt64?.none, RunFailure?.none)
        switch (result, run.interruption) {
        case (_, .stopped?), (.cancelled, nil): outcome = .cancelled
        case (_, .configuration?), (_, .parameters?): outcome = .superseded
        case (.succeeded(let changed, let number, _, _, _), _):
            outcome = changed ? .changed : .unchanged
            generation = number
        case (_, .deadline?):
            outcome = .failed
            failure = RunFailure(
                .deadline, "the page took longer than the deadline of \(settings.policy.deadline)")
        case (_, .networkLost?), (_, .pathChanged?):
            _ = close(run, .superseded, generation: nil, failure: nil, counts: false, now)
            // The page is requested again by the current network, if there is one.
            guard let cause = run.order.causes.first, case .loadMore(let place) = run.order.reason else { return }
            if let refusal = loadMoreRefusal(at: now) { return output.answer(run.requests, .refused(refusal)) }
            return more.putBack(LoadMoreRequest(place: place, requests: run.requests, cause: cause))
        case (_, .restart?): outcome = .superseded
        case (.failed(let reason), nil):
            if let requested = reason.retryAfter, requested > .zero { backoff(for: requested, now) }
            outcome = .failed
            failure = reason
        }
        let summary = close(run, outcome, generation: generation, failure: failure, counts: false, now)
        output.answer(run.requests, outcome == .cancelled ? .stopped : .ended(summary))
    }
}
