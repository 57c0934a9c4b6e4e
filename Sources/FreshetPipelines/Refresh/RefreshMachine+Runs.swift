/// From something that is ready to a run, and from its end to what comes next.
extension RefreshMachine {
    /// What stands between now and the next run.
    enum RunDecision: Hashable, Sendable {
        case nothingWanted
        case waiting(Wait)
        /// Nothing is in the way but that a proof of the network is missing.
        case unproven
        case goes(RunReason)
    }

    func standing(at now: Instant) -> RunDecision {
        guard retry != nil || !ready.isEmpty else {
            if !gathered.isEmpty { return .waiting(Wait(.quiet, until: storm.deliversAt)) }
            if let due = parameters?.due { return .waiting(Wait(.quiet, until: due)) }
            if let splayedUntil { return .waiting(Wait(.splay, until: splayedUntil)) }
            return .nothingWanted
        }
        if goesToSleep { return .waiting(Wait(.sleep)) }
        let isUrgent = ready.urgency > .none
        var reason = reason
        if ready.urgency < .forced {
            if let retryAfter, now < retryAfter { return .waiting(Wait(.retryAfter, until: retryAfter)) }
            if let room = hasRoomInBudget(at: now) { return .waiting(Wait(.budget, until: room)) }
            if settings.needsNetwork, !network.isUsable {
                let overdue = overdueSince.map { network.attemptsAnyway(overdueSince: $0) }
                let attempt = [network.looksForOrigin, overdue].compactMap(\.self).min()
                guard let attempt, now >= attempt else { return .waiting(Wait(.network, until: attempt)) }
                reason = .routingSaysNo
            }
        }
        if !isUrgent {
            if let wait = retryWait(at: now) { return .waiting(wait) }
            if let next = lastStart?.advanced(by: settings.policy.minInterval), now < next {
                return .waiting(Wait(.interval, until: next))
            }
        }
        return ready.urgency == .forced || isProven(at: now) ? .goes(reason) : .unproven
    }

    private var reason: RunReason {
        if ready.urgency == .forced { return .forced }
        guard let retry, !retry.isCut else { return .signals }
        return retry.inGrace ? .networkSettling : .retry(failures: failing?.attempts ?? 0)
    }

    /// What a failed run still waits for; nil: nothing, or nothing has failed.
    private func retryWait(at now: Instant) -> Wait? {
        guard let retry else { return nil }
        if retry.isHeld { return Wait(.quiet, until: storm.deliversAt ?? splayedUntil) }
        if retry.isCut { return nil }
        if now < retry.due { return Wait(retry.inGrace ? .network : .backOff, until: retry.due) }
        // While a storm lasts the surroundings are not fit for another try; in grace that has been allowed for.
        if retry.kind == .connection, !retry.inGrace, storm.isStorm(at: now) {
            return Wait(.quiet, until: storm.calmAt)
        }
        return nil
    }

    /// Since when a check by the clock is overdue, or when it will be; nil: there are none.
    private var overdueSince: Instant? {
        guard settings.policy.every != nil else { return nil }
        // Never checked: overdue all along, so that only the time without a network counts.
        return plannedCheck(since: network.state.changedAt)
    }

    /// Asks for a slot when nothing else is in the way.
    mutating func proceed(_ now: Instant) {
        guard !isHeld, !isStopped else { return }
        refuseMore(now)
        if case .goes = standing(at: now) {
            // It replaces all pages.
            if run?.isLoadMore == true { interrupt(.restart) }
        } else if moreStanding(at: now) != .goes {
            return
        }
        guard run == nil, slotRequest == nil else { return }
        lastSlot += 1
        slotRequest = lastSlot
        actions.append(.requestSlot(lastSlot))
    }

    mutating func slotGranted(_ slot: UInt64, _ now: Instant) {
        guard slot == slotRequest else {
            // It was taken back, and the grant was under way already.
            actions.append(.releaseSlot(slot))
            return
        }
        slotRequest = nil
        if !isHeld, case .goes(let reason) = standing(at: now) {
            start(reason, slot: slot, now)
        } else if !isHeld, moreStanding(at: now) == .goes {
            startLoadMore(slot: slot, now)
        } else {
            actions.append(.releaseSlot(slot))
        }
    }

    private mutating func start(_ reason: RunReason, slot: UInt64, _ now: Instant) {
        // All that was heard goes along: a run that starts now answers it.
        var wanted = retry?.wanted ?? Wanted()
        retry = nil
        wanted.merge(ready.take())
        wanted.merge(gathered.take())
        wanted.merge(splayed.take())
        takeParameters(into: &wanted)
        wanted.isRelease = false
        wanted.causes.sort { $0.first < $1.first }
        if wanted.isUnconditional,
            let operation = wanted.causes.firstIndex(where: { $0.signal == SignalName.operation })
        {
            // Something that was raised later may have another detail.
            wanted.causes[operation].detail = RunOrder.unconditional
        }
        splayedUntil = nil
        storm.nothingIsHeld()
        plan = nil
        let startBefore = lastStart
        lastStart = now
        lastRunNumber += 1
        if reason == .routingSaysNo { network.attemptedAnyway(at: now) }
        let order = RunOrder(
            run: lastRunNumber, reason: reason, causes: wanted.causes, started: now, epoch: network.state.epoch,
            parameters: parameters?.values ?? ParameterValues(),
            allowance: reason == .forced ? nil : budgetUse(at: now).map { max(1, $0.budget.limit - $0.used) },
            isUnconditional: wanted.isUnconditional)
        let deadline = settings.policy.deadline
        run = Run(
            order: order, wanted: wanted, requests: requests, slot: slot, startBefore: startBefore,
            path: network.state.reachable ? network.state.path : nil,
            deadline: deadline > .zero ? now.advanced(by: deadline) : nil, direct: network.directRun(at: now))
        requests = []
        // Counted before it is made, so that one that ends with the daemon is counted too.
        spend(1, now)
        actions.append(.start(order))
        report(.runStarted(order))
    }

    /// Cancels the run under way, once.
    mutating func interrupt(_ interruption: Interruption) {
        guard var run else { return }
        if let interrupted = run.interruption {
            // It may still succeed, having committed: that does not count any more.
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
        parametersRan(run.wanted)
        settleBudget(requests, result, now)
        actions.append(.releaseSlot(run.slot))
        noteDirectNetworks(run, result)
        if run.isLoadMore { return loadMoreEnded(run, result, now) }
        switch (result, run.interruption) {
        case (_, .stopped?):
            finish(run, .cancelled, now)
        case (_, .configuration?), (_, .parameters?):
            // Even a success was one of the old configuration, or of the old values.
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
            // The whole service is being cancelled; what the run was for is wanted still.
            ready.merge(run.wanted.again)
            finish(run, .cancelled, now)
        }
    }

    /// What a run without a route to elsewhere says of the directly connected networks.
    private mutating func noteDirectNetworks(_ run: Run, _ result: RunResult) {
        guard let direct = run.direct else { return }
        switch result {
        case .succeeded: network.directRunEnded(direct, isThere: true)
        case .failed(let failure):
            // What failed before anything was asked says nothing, and neither does what was asked of another place.
            let isAnswer = [.transient, .certificateDate, .refused, .content].contains(failure.kind)
            network.directRunEnded(direct, isThere: isAnswer || failure.isRouted)
        case .cancelled: break
        }
    }

    private mutating func succeeded(
        _ run: Run, changed: Bool, generation: UInt64?, at success: Instant, _ now: Instant
    ) {
        superseded = 0
        lastSuccess = success
        lastRefusal = nil
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

    /// What the surroundings had asked for by then is done.
    private mutating func answered(until check: Instant) {
        gathered.dropEnvironment(until: check)
        if gathered.isEmpty { storm.nothingIsHeld() }
        splayed.dropEnvironment(until: check)
        if splayed.isEmpty { splayedUntil = nil }
        ready.dropEnvironment(until: check)
    }

    /// A check refused what the origin has. That is no failure of the origin, and asking again at once would not change it:
    /// the next check comes by the clock, at first sooner than after one that succeeded.
    private mutating func refused(_ run: Run, _ failure: RunFailure, _ now: Instant) {
        superseded = 0
        lastRefusal = now
        noteFailure(run, failure, now)
        failing?.tally.waitsAgain(since: run.order.started)
        answered(until: now)
        let due = plannedCheck(since: now)
        failing?.tally.due = due
        plan = due
        finish(run, .failed, failure: failure, now)
    }

    /// - Returns: how many of its kind there were since all was well.
    @discardableResult
    private mutating func noteFailure(
        _ run: Run, _ failure: RunFailure, isPartial: Bool = false, _ now: Instant
    ) -> Int {
        var tally = failing?.tally ?? FailureCounts()
        let attempts = tally.note(failure)
        var failing = OngoingFailure(
            failure: failure, since: failing?.since ?? now, attempts: attempts, isPartial: isPartial,
            run: run.order.run, ended: now)
        failing.tally = tally
        self.failing = failing
        return attempts
    }

    /// What a run brought is the copy by the operator's word. If that was the last one, it has not failed, and nothing is
    /// tried again.
    mutating func accepted(_ run: UInt64?) {
        hasGeneration = true
        guard let failing, failing.run == run, !failing.isPartial else { return }
        self.failing = nil
        lastSuccess = failing.ended
        lastRefusal = nil
        confirmed = failing.ended
        memory = nil
        // A run under way brings its own plan.
        guard isBetweenChecks else { return }
        // Those who wait for a run get one.
        if let given = retry, !requests.isEmpty { ready.merge(given.wanted) }
        retry = nil
        plan = plannedCheck(since: failing.ended)
    }

    /// Another run takes this one's place: what it was for is wanted still.
    private mutating func supersede(_ run: Run, _ interruption: Interruption, _ now: Instant) {
        var wanted = run.wanted
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
        // With something ready already, or somebody waiting, there is nothing to be gathered for.
        if isPassed || !ready.isEmpty || wanted.urgency > .none {
            wanted.merge(ready)
            ready = wanted
        } else {
            admit(wanted, now)
        }
        finish(run, .superseded, now)
    }

    /// - Parameter partial: what the run made in spite of it.
    private mutating func failed(
        _ run: Run, _ failure: RunFailure, partial: (outcome: RunOutcome, generation: UInt64?)? = nil, _ now: Instant
    ) {
        if failure.refusal != nil, settings.policy.every != nil,
            !failure.isTriedSoon || failing?.tally.mismatches ?? 0 >= Self.mostBriefRefusals
        {
            return refused(run, failure, now)
        }
        superseded = 0
        lastRefusal = nil
        if let asked = failure.retryAfter, asked > .zero { leaveAlone(for: asked, now) }
        // No attempt helps before the other pipeline has a copy, and then its signal comes.
        if failure.kind == .absent { return finish(run, .failed, failure: failure, counts: false, now) }
        var wanted = run.wanted.again
        // What answered was asked for without conditions, and of what failed no validators are kept.
        if partial != nil { wanted.isUnconditional = false }
        if failure.kind == .connection, settings.needsNetwork, partial == nil {
            if !network.isUsable {
                // Offline is a state, not a failure.
                ready.merge(wanted)
                return finish(run, .failed, failure: failure, counts: false, now)
            }
            if network.isGrace(at: now) {
                // It reached no origin that `min-interval` would have to spare.
                lastStart = run.startBefore
                retry = Retry(
                    wanted: wanted, kind: .connection, due: now.advanced(by: network.graceDelay()), inGrace: true)
                return finish(run, .failed, failure: failure, counts: false, now)
            }
        }
        let attempts = noteFailure(run, failure, isPartial: partial != nil, now)
        var delay = Backoff.delay(
            after: attempts, failure.kind, isPartial: partial != nil, policy: settings.policy, jitter: &jitter)
        // What is new of the rest is not missed for the sake of a branch.
        if partial != nil, let every = settings.policy.every { delay = min(delay, every + settings.plannedDelay) }
        var due = max(now.advanced(by: delay), run.order.started.advanced(by: settings.policy.minInterval))
        if let retryAfter { due = max(due, retryAfter) }
        retry = Retry(wanted: wanted, kind: failure.kind, due: due, inGrace: false)
        if ready.hasDemand || (ready.hasEnvironment && failure.kind == .connection) {
            // Passed the gate while the run was under way, and cuts the wait as if it came now.
            retry?.isCut = true
        }
        finish(run, partial?.outcome ?? .failed, generation: partial?.generation, failure: failure, now)
        report(.retryPlanned(at: due, failures: attempts, after: failure))
    }

    /// After so many since all was well it does not mend itself soon: each may fetch the whole content.
    static let mostBriefRefusals = 8

    /// The origin asked for that.
    mutating func leaveAlone(for asked: Duration, _ now: Instant) {
        // To the second is when all come back who were sent away.
        let wait = Backoff.spread(
            over: min(asked, Backoff.longestRetryAfter), after: (failing?.tally.failures ?? 0) + 1,
            policy: settings.policy.retry, &jitter)
        let until = now.advanced(by: wait)
        retryAfter = until
        actions.append(.rememberRetryAfter(until))
    }

    /// Tells what became of the run, and answers those who waited for it unless they go on waiting.
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
        case .failed where counts || run.wanted.urgency == .forced || failure?.kind == .absent:
            // Who forced a run wants to know what came of it, not to wait for the network.
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
