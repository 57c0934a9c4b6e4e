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
    }

    func decision(at now: Instant) -> RunDecision {
        guard retry != nil || !ready.isEmpty else {
            if !gathered.isEmpty { return .waiting(Wait(.quiet, until: burst.deliversAt)) }
            if let due = parameters?.due { return .waiting(Wait(.quiet, until: due)) }
            if let splayedUntil { return .waiting(Wait(.splay, until: splayedUntil)) }
            return .nothingRequested
        }
        if goesToSleep { return .waiting(Wait(.sleep)) }
        let isUrgent = ready.urgency > .none
        var reason = reason
        if ready.urgency < .forced {
            if let retryAfter, now < retryAfter { return .waiting(Wait(.retryAfter, until: retryAfter)) }
            if let available = budgetAvailable(at: now) { return .waiting(Wait(.budget, until: available)) }
            if settings.needsNetwork, !network.isUsable {
                let overdue = overdueSince.map { network.attemptsAnyway(overdueSince: $0) }
                let attempt = [network.looksForOrigin, overdue].compactMap(\.self).min()
                guard let attempt, now >= attempt else { return .waiting(Wait(.network, until: attempt)) }
                reason = .noRoute
            }
        }
        if !isUrgent {
            if let wait = retryWait(at: now) { return .waiting(wait) }
            if let next = lastStart?.advanced(by: settings.policy.minInterval), now < next {
                return .waiting(Wait(.interval, until: next))
            }
        }
        return ready.urgency == .forced || isProven(at: now) ? .ready(reason) : .unproven
    }

    private var reason: RunReason {
        if ready.urgency == .forced { return .forced }
        guard let retry, !retry.isCut else { return .signals }
        return retry.inGrace ? .networkSettling : .retry(failures: failing?.attempts ?? 0)
    }

    /// What the retry of a failed run still waits for; nil: nothing, or no run has failed.
    private func retryWait(at now: Instant) -> Wait? {
        guard let retry else { return nil }
        if retry.isHeld { return Wait(.quiet, until: burst.deliversAt ?? splayedUntil) }
        if retry.isCut { return nil }
        if now < retry.due { return Wait(retry.inGrace ? .network : .backoff, until: retry.due) }
        // During a burst the environment is still changing, so a retry would fail again; the grace period allows for
        // that.
        if retry.kind == .connection, !retry.inGrace, burst.isBurst(at: now) {
            return Wait(.quiet, until: burst.quietAt)
        }
        return nil
    }

    /// The instant since or at which the planned check is due; nil: no checks are planned.
    private var overdueSince: Instant? {
        guard settings.policy.every != nil else { return nil }
        // A pipeline that was never checked is overdue, so only the time without a network counts.
        return plannedCheck(since: network.state.changedAt)
    }

    /// Requests a permit when nothing else prevents a run.
    mutating func proceed(_ now: Instant) {
        guard !isHeld, !isStopped else { return }
        refuseLoadMore(now)
        if case .ready = decision(at: now) {
            // A check replaces all pages.
            if run?.isLoadMore == true { interrupt(.restart) }
        } else if loadMoreDecision(at: now) != .ready {
            return
        }
        guard run == nil, permitRequest == nil else { return }
        lastPermit += 1
        permitRequest = lastPermit
        actions.append(.requestPermit(lastPermit))
    }

    mutating func permitGranted(_ permit: UInt64, _ now: Instant) {
        guard permit == permitRequest else {
            // The request was withdrawn while the grant was on the way.
            actions.append(.releasePermit(permit))
            return
        }
        permitRequest = nil
        if !isHeld, case .ready(let reason) = decision(at: now) {
            start(reason, permit: permit, now)
        } else if !isHeld, loadMoreDecision(at: now) == .ready {
            startLoadMore(permit: permit, now)
        } else {
            actions.append(.releasePermit(permit))
        }
    }

    private mutating func start(_ reason: RunReason, permit: UInt64, _ now: Instant) {
        // The run takes all received signals: it starts after them, so it answers them.
        var pendingRequest = retry?.pendingRequest ?? PendingRequest()
        retry = nil
        pendingRequest.merge(ready.take())
        pendingRequest.merge(gathered.take())
        pendingRequest.merge(splayed.take())
        takeParameters(into: &pendingRequest)
        pendingRequest.isRelease = false
        pendingRequest.causes.sort { $0.first < $1.first }
        if pendingRequest.isUnconditional,
            let operation = pendingRequest.causes.firstIndex(where: { $0.signal == SignalName.operation })
        {
            // A later request of the operator may have another detail.
            pendingRequest.causes[operation].detail = RunOrder.unconditional
        }
        splayedUntil = nil
        burst.nothingIsHeld()
        plan = nil
        let startBefore = lastStart
        lastStart = now
        lastRunNumber += 1
        if reason == .noRoute { network.attemptedAnyway(at: now) }
        let order = RunOrder(
            run: lastRunNumber, reason: reason, causes: pendingRequest.causes, started: now, epoch: network.state.epoch,
            parameters: parameters?.values ?? ParameterValues(),
            allowance: reason == .forced ? nil : budgetUse(at: now).map { max(1, $0.budget.limit - $0.used) },
            isUnconditional: pendingRequest.isUnconditional)
        let deadline = settings.policy.deadline
        run = Run(
            order: order, pendingRequest: pendingRequest, requests: requests, permit: permit, startBefore: startBefore,
            path: network.state.reachable ? network.state.path : nil,
            deadline: deadline > .zero ? now.advanced(by: deadline) : nil, direct: network.directRun(at: now))
        requests = []
        // The request is counted before it is made, so that it is counted even if the daemon ends during the run.
        spend(1, now)
        actions.append(.start(order))
        report(.runStarted(order))
    }

    /// Cancels the run in progress, once.
    mutating func interrupt(_ interruption: Interruption) {
        guard var run else { return }
        if let interrupted = run.interruption {
            // The run may still succeed because it has committed; the stronger interruption decides what that means.
            if interruption.outranks(interrupted) {
                run.interruption = interruption
                self.run = run
            }
            return
        }
        switch interruption {
        case .restart, .pathChanged(early: false):
            guard superseded < Self.supersededInARow || run.isLoadMore else {
                if interruption != .restart { self.run?.isSpared = true }
                return
            }
        case .networkLost, .pathChanged(early: true), .configuration, .parameters, .deadline, .stopped:
            break
        }
        run.interruption = interruption
        self.run = run
        actions.append(.cancel(run: run.order.run))
    }

    mutating func ended(_ number: UInt64, _ result: RunResult, requests: Int, _ now: Instant) {
        guard let run, run.order.run == number else { return }  // safe: the runner reports each run's end once
        self.run = nil
        parametersRan(run.pendingRequest)
        settleBudget(requests, result, now)
        actions.append(.releasePermit(run.permit))
        recordDirectNetworks(run, result)
        if run.isLoadMore { return loadMoreEnded(run, result, now) }
        switch (result, run.interruption) {
        case (_, .stopped?):
            finish(run, .cancelled, now)
        case (_, .configuration?), (_, .parameters?):
            // Even a success belongs to the old configuration or the old values.
            supersede(run, .configuration, now)
        case (.succeeded(let changed, let generation, _, let flaw?, _), _):
            hasGeneration = true
            withdrawal?.made = now
            failed(run, flaw, partial: (changed ? .changed : .unchanged, generation), now)
        case (.succeeded(let changed, let generation, let at, nil, let expires), _):
            originExpires = expires
            succeeded(run, changed: changed, generation: generation, at: at ?? now, now)
        case (_, .deadline?):
            let limit = settings.policy.deadline
            failed(run, RunFailure(.deadline, "the run took longer than its deadline of \(limit)"), now)
        case (_, let interruption?):
            supersede(run, interruption, now)
        case (.failed(let failure), nil):
            failed(run, failure, now)
        case (.cancelled, nil):
            // The whole service is being cancelled; the causes of the run stay.
            ready.merge(run.pendingRequest.again)
            finish(run, .cancelled, now)
        }
    }

    /// Records whether a run without a route to the target has found the origin on a directly connected network.
    private mutating func recordDirectNetworks(_ run: Run, _ result: RunResult) {
        guard let direct = run.direct else { return }
        switch result {
        case .succeeded: network.directRunEnded(direct, isFound: true)
        case .failed(let failure):
            // A failure before the request, or at another host, says nothing about the origin.
            let isAnswer = [.transient, .certificateDate, .refused, .content].contains(failure.kind)
            network.directRunEnded(direct, isFound: isAnswer || failure.isRouted)
        case .cancelled: break
        }
    }

    private mutating func succeeded(
        _ run: Run, changed: Bool, generation: UInt64?, at success: Instant, _ now: Instant
    ) {
        superseded = 0
        lastSuccess = success
        lastRejection = nil
        confirmed = success
        memory = nil
        failing = nil
        hasGeneration = true
        if retryAfter != nil {
            retryAfter = nil
            actions.append(.rememberRetryAfter(nil))
        }
        answered(until: success)
        plan = plannedCheck(since: success)
        finish(run, changed ? .changed : .unchanged, generation: generation, now)
    }

    /// A check has answered the environment signals that fired until then.
    private mutating func answered(until check: Instant) {
        gathered.dropEnvironment(until: check)
        if gathered.isEmpty { burst.nothingIsHeld() }
        splayed.dropEnvironment(until: check)
        if splayed.isEmpty { splayedUntil = nil }
        ready.dropEnvironment(until: check)
    }

    /// A check rejected the origin's content. The origin did not fail, and an immediate retry would not change the
    /// result: the next check comes by the clock, at first sooner than after a successful one.
    private mutating func rejected(_ run: Run, _ failure: RunFailure, _ now: Instant) {
        superseded = 0
        lastRejection = now
        recordFailure(run, failure, now)
        failing?.tally.waitsAgain(since: run.order.started)
        answered(until: now)
        let due = plannedCheck(since: now)
        failing?.tally.due = due
        plan = due
        finish(run, .failed, failure: failure, now)
    }

    /// - Returns: the number of failures of this kind since the last success.
    @discardableResult
    private mutating func recordFailure(
        _ run: Run, _ failure: RunFailure, isPartial: Bool = false, _ now: Instant
    ) -> Int {
        var tally = failing?.tally ?? FailureCounts()
        let attempts = tally.record(failure)
        var failing = OngoingFailure(
            failure: failure, since: failing?.since ?? now, attempts: attempts, isPartial: isPartial,
            run: run.order.run, ended: now)
        failing.tally = tally
        self.failing = failing
        return attempts
    }

    /// The operator accepted the content of a run. If it was the last run, the run counts as a success, and there is no
    /// retry.
    mutating func accepted(_ run: UInt64?) {
        hasGeneration = true
        guard let failing, failing.run == run, !failing.isPartial else { return }
        self.failing = nil
        lastSuccess = failing.ended
        lastRejection = nil
        confirmed = failing.ended
        memory = nil
        // A run in progress sets its own plan.
        guard isBetweenChecks else { return }
        // Requests that wait for a run get one.
        if let given = retry, !requests.isEmpty { ready.merge(given.pendingRequest) }
        retry = nil
        plan = plannedCheck(since: failing.ended)
    }

    /// Another run replaces this one and takes its causes.
    private mutating func supersede(_ run: Run, _ interruption: Interruption, _ now: Instant) {
        var pendingRequest = run.pendingRequest
        var isPassed = false
        switch interruption {
        case .restart:
            superseded += 1
            isPassed = true
        case .pathChanged(early: true), .configuration, .parameters:
            isPassed = true
        case .pathChanged(early: false):
            superseded += 1
        case .networkLost, .deadline, .stopped:
            break
        }
        // If something is ready already, or a request waits, the causes need no debouncing.
        if isPassed || !ready.isEmpty || pendingRequest.urgency > .none {
            pendingRequest.merge(ready)
            ready = pendingRequest
        } else {
            admit(pendingRequest, now)
        }
        finish(run, .superseded, now)
    }

    /// - Parameter partial: the outcome and generation of a run of which only a part failed.
    private mutating func failed(
        _ run: Run, _ failure: RunFailure, partial: (outcome: RunOutcome, generation: UInt64?)? = nil, _ now: Instant
    ) {
        if failure.rejection != nil, settings.policy.every != nil,
            !failure.isTriedSoon || failing?.tally.mismatches ?? 0 >= Self.mostBriefRejections
        {
            return rejected(run, failure, now)
        }
        superseded = 0
        lastRejection = nil
        if let requested = failure.retryAfter, requested > .zero { backoff(for: requested, now) }
        // A retry is useless until the other pipeline has a copy; then its signal fires.
        if failure.kind == .absent { return finish(run, .failed, failure: failure, counts: false, now) }
        var pendingRequest = run.pendingRequest.again
        // The answered requests were unconditional, and the failed parts have no validators.
        if partial != nil { pendingRequest.isUnconditional = false }
        if failure.kind == .connection, settings.needsNetwork, partial == nil {
            if !network.isUsable {
                // Being offline is a state, not a failure.
                ready.merge(pendingRequest)
                return finish(run, .failed, failure: failure, counts: false, now)
            }
            if network.isGrace(at: now) {
                // The run did not reach the origin, so `min-interval` does not apply.
                lastStart = run.startBefore
                retry = Retry(
                    pendingRequest: pendingRequest, kind: .connection, due: now.advanced(by: network.graceDelay()),
                    inGrace: true)
                return finish(run, .failed, failure: failure, counts: false, now)
            }
        }
        let attempts = recordFailure(run, failure, isPartial: partial != nil, now)
        var delay = Backoff.delay(
            after: attempts, failure.kind, isPartial: partial != nil, policy: settings.policy, jitter: &jitter)
        // A failing branch must not delay the check of the other branches.
        if partial != nil, let every = settings.policy.every { delay = min(delay, every + settings.plannedDelay) }
        var due = max(now.advanced(by: delay), run.order.started.advanced(by: settings.policy.minInterval))
        if let retryAfter { due = max(due, retryAfter) }
        retry = Retry(pendingRequest: pendingRequest, kind: failure.kind, due: due, inGrace: false)
        if ready.hasRequest || (ready.hasEnvironment && failure.kind == .connection) {
            // A signal that passed the debouncer during the run ends the backoff as if it came now.
            retry?.isCut = true
        }
        finish(run, partial?.outcome ?? .failed, generation: partial?.generation, failure: failure, now)
        report(.retryPlanned(at: due, failures: attempts, after: failure))
    }

    /// After this number of mismatches since the last success, retries are slow: each may fetch the whole content.
    static let mostBriefRejections = 8

    /// Applies a `Retry-After` of the origin.
    mutating func backoff(for requested: Duration, _ now: Instant) {
        // Without jitter, all refused clients would return in the same second.
        let wait = Backoff.spread(
            over: min(requested, Backoff.longestRetryAfter), after: (failing?.tally.failures ?? 0) + 1,
            policy: settings.policy.retry, &jitter)
        let until = now.advanced(by: wait)
        retryAfter = until
        actions.append(.rememberRetryAfter(until))
    }

    /// Reports the end of a run, and answers the requests for it unless they wait for another run.
    private mutating func finish(
        _ run: Run, _ outcome: RunOutcome, generation: UInt64? = nil, failure: RunFailure? = nil, counts: Bool = true,
        _ now: Instant
    ) {
        let summary = RunSummary(
            run: run.order.run, reason: run.order.reason, causes: run.order.causes, started: run.order.started,
            ended: now, outcome: outcome, failure: failure, counts: counts, generation: generation)
        lastRun = summary
        report(.runEnded(summary, next: nextRun(at: now)))
        switch outcome {
        case .changed, .unchanged:
            answer(run.requests, .ended(summary))
        case .failed where counts || run.pendingRequest.urgency == .forced || failure?.kind == .absent:
            // A forced request is answered with this result; it does not wait for the network.
            answer(run.requests, .ended(summary))
        case .cancelled:
            answer(run.requests, .stopped)
        case .failed, .superseded:
            requests = run.requests + requests
        }
    }

    mutating func answer(_ requests: [UInt64], _ answer: RefreshAnswer) {
        for request in requests { actions.append(.answer(request: request, answer)) }
    }
}
