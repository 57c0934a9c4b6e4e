package import FreshetModel

/// Decides when a pipeline runs. A state machine: events in, actions out. It reads no clock and performs no action
/// itself.
///
/// The way of a signal: *received* → (splay) → debouncer → *ready* → permit → run. ``RunQueue`` has the requests on
/// this way, ``RunConditions`` what a *ready* request may still wait for, ``CheckSchedule`` the checks by the clock,
/// and ``RunPhase`` the run. A run takes all signals that were received until it starts. If the run does not succeed,
/// its causes go back: to the retry after a failure, to *ready* or through the debouncer if the run was superseded.
package struct RefreshMachine: Sendable {
    package typealias Instant = BootInstant
    package typealias Event = RefreshEvent
    package typealias Action = RefreshAction

    /// After this number of superseded runs in a row, the next run may finish.
    static let supersededInARow = 2
    /// After this number of mismatches since the last success, retries are slow: each may fetch the whole content.
    static let mostBriefRejections = 8

    package internal(set) var settings: RefreshSettings
    var conditions: RunConditions
    var queue: RunQueue
    var schedule: CheckSchedule
    var phase = RunPhase.idle
    var runs: RunLog
    /// Nil for a pipeline without parameters.
    @Boxed var parameters: ParameterDebouncer?
    var copy: PublishedCopy
    /// Requests that wait for a run to start.
    var requests: [UInt64] = []
    var more = LoadMoreMachine()
    var jitter: Jitter
    var output = RefreshOutput(.idle)

    /// - Parameters:
    ///   - network: the current state of the network.
    ///   - memory: the state from before a restart.
    ///   - lastRun: the last run before a restart.
    ///   - parameters: the values of the parameters.
    ///   - jitter: the source of random delays.
    package init(
        _ settings: RefreshSettings, network: NetworkState, memory: StoredRefreshState = StoredRefreshState(),
        lastRun: RunSummary? = nil, parameters: ParameterValues = ParameterValues(), jitter: Jitter, now: Instant
    ) {
        self.settings = settings
        self.jitter = jitter
        conditions = RunConditions(settings, network: network, memory: memory, now: now)
        queue = RunQueue(settings.policy)
        schedule = CheckSchedule(memory)
        runs = RunLog(last: lastRun, lastNumber: memory.lastRun)
        copy = PublishedCopy(memory, withdraws: settings.withdraws)
        if parameters != ParameterValues() { self.parameters = ParameterDebouncer(parameters) }
        // An overdue check waits so that the signal `start` can come first, and respects this host's splay.
        schedule.plan = schedule.plannedCheck(since: now, settings)
            .map { max($0, now.advanced(by: settings.splay + settings.policy.quiet)) }
        output = RefreshOutput(activity(at: now))
    }

    /// Handles events that came together, in their order, and returns the actions.
    package mutating func handle(_ events: [Event], now: Instant) -> [Action] {
        if events.contains(where: \.isWoke) { woke(now) }
        elapse(now)
        for event in events { apply(event, now) }
        elapse(now)
        proceed(now)
        seekProof(now)
        if !output.requestsPermit { output.stateChanged(activity(at: now)) }
        copy.settle(
            confirmed: schedule.confirmed, expires: expires, withdrawsAt: withdrawsAt, isRunning: phase.run != nil,
            isStopped: phase.isStopped, now, into: &output)
        output.wake(at: nextWake(now))
        return output.take()
    }

    private mutating func apply(_ event: Event, _ now: Instant) {
        // After a stop only the end of the run matters.
        switch event {
        case .ended(let run, let result, let requests):
            ended(run, result, requests: requests, now)
            copy.runEnded()
        case .refresh(let request?, _, _) where phase.isStopped, .loadMore(let request?, _) where phase.isStopped,
            .awaitRun(let request, _) where phase.isStopped:
            output.answer([request], .stopped)
        case _ where phase.isStopped: break
        case .received(let causes): received(causes, now)
        case .network(let state, let cause): network(state, cause, now)
        case .directNetworks(let revision): conditions.network.directNetworks(revision)
        case .metered(let obstacle): conditions.metered = obstacle
        case .power(let obstacle): conditions.power = obstacle
        case .refresh(let request, let force, let unconditional):
            let detail = unconditional ? RunOrder.unconditional : nil
            refresh(
                request, force: force, unconditional: unconditional,
                RunCause(SignalName.operation, first: now, detail: detail), now)
        case .awaitRun(let request, let number): awaitRun(request, after: number, now)
        case .loadMore(let request, let place): loadMore(request, at: place, now)
        case .reconfigured(let new, let sameProduct, let values):
            reconfigured(new, sameProduct: sameProduct, now)
            parameters = ParameterDebouncer.reconfigured(parameters, values, sameProduct: sameProduct)
        case .parameters(let values, let quiet):
            var debouncer = parameters ?? ParameterDebouncer(ParameterValues())
            debouncer.set(values, quiet: quiet, at: now)
            parameters = debouncer
        case .held(let held): hold(held)
        case .accepted(let run): accepted(run)
        case .lost: lost(now)
        case .copyLost: copy.withdrawnAndLost()
        case .copy(let new):
            let check = phase.run.flatMap { $0.isLoadMore ? nil : $0 }
            let event = copy.changed(new, confirmed: schedule.confirmed, causes: check?.order.causes)
            if let event { output.report(event) }
        case .contentExpires(let instant): copy.contentExpires(at: instant)
        case .copySettled(let result): copy.settled(result, now)
        case .goesToSleep(let sleeps): conditions.goesToSleep = sleeps
        case .woke: conditions.goesToSleep = false  // handle(_:now:) has done the rest
        case .clockStepped(let memory, let calendar):
            settings.calendar = calendar
            clockStepped(memory, now)
            calendarChanged(now)
        case .zoneChanged(let calendar):
            settings.calendar = calendar
            calendarChanged(now)
        case .permitGranted(let permit): permitGranted(permit, now)
        case .proof(let result):
            if let refusal = conditions.proofCame(result, now) {
                output.answer(more.takeAll(), .refused(.network(refusal)))
            }
        case .stalled(let number, let isStalled):
            _ = phase.update { run in if run.order.run == number { run.stalled(isStalled, now) } }
        case .timer: break  // elapse(_:) has done everything
        case .stopped: stop()
        }
    }

    /// Readers find no copy, so a run is requested, unless a check in progress or a planned retry brings a copy anyway.
    private mutating func lost(_ now: Instant) {
        copy.lost()
        guard phase.isBetweenChecks, queue.retry == nil else { return }
        let cause = RunCause(SignalName.loss, first: now, detail: "no intact content is kept")
        output.report(.received(cause))
        admit(PendingRequest(causes: [cause]), now)
    }

    // MARK: Signals

    /// Applies everything that became due by time alone.
    private mutating func elapse(_ now: Instant) {
        if queue.elapseBurst(now) { restartCheck() }
        if let request = queue.elapseSplay(now) { admit(request, now) }
        if let due = schedule.plan, now >= due, phase.isBetweenChecks, !phase.isStopped {
            // The next check is planned when this one has ended.
            schedule.elapsed(settings)
            let cause = RunCause(SignalName.timer, first: due)
            output.report(.received(cause))
            let request = PendingRequest(causes: [cause])
            // A planned check does not mean that the environment is still changing.
            if !queue.join(request, isOffline: conditions.isOffline(settings), now) { admit(request, now) }
        }
        elapseParameters(now)
        if let deadline = phase.run?.dueEnd, now >= deadline { interrupt(.deadline) }
    }

    private mutating func received(_ causes: [RunCause], _ now: Instant) {
        let isIgnored = settings.policy.whenRunning == .ignore && phase.run?.isLoadMore == false
        var ignored: [RunCause] = []
        var skipped: [RunCause] = []
        var late = PendingRequest()
        var request = PendingRequest()
        for cause in causes {
            output.report(.received(cause))
            switch cause.signal {
            case SignalName.operation:
                refresh(nil, force: false, cause, now)
                continue
            case SignalName.network, SignalName.resume:
                conditions.network.settle(from: cause.last)
                conditions.proofMayHaveChanged(settings.policy, at: cause.last)
            default: break
            }
            if isIgnored {
                ignored.append(cause)
            } else if isFresh(for: cause, at: now) {
                skipped.append(cause)
            } else if settings.splay > .zero, [SignalName.start, SignalName.network].contains(cause.signal) {
                late.causes.add(cause)
            } else {
                request.causes.add(cause)
            }
        }
        if !ignored.isEmpty { ignore(ignored) }
        if !skipped.isEmpty, let until = schedule.skippedUntil(settings.policy) {
            output.report(.skipped(skipped, freshUntil: until))
        }
        if !late.isEmpty { queue.delay(late, for: settings.splay, now) }
        if !request.isEmpty { admit(request, now) }
    }

    /// Drops signals that fired during the check in progress, and counts them.
    private mutating func ignore(_ causes: [RunCause]) {
        _ = phase.update { run in for cause in causes { run.ignored += cause.count } }
        guard let run = phase.run else { return }
        output.report(.ignored(causes, run: run.order.run))
    }

    /// Whether the copy is fresh enough to skip this signal. It is not while a failed run is to be retried, since the
    /// copy is known to be out of date.
    private func isFresh(for cause: RunCause, at now: Instant) -> Bool {
        guard cause.kind == .environment, cause.signal != SignalName.timer, queue.retry == nil,
            !copy.isGone(at: now) || schedule.lastRejection != nil, let lastAnswer = schedule.lastAnswer
        else { return false }
        // The first condition: the signal fired before that check and arrived after it.
        return cause.last < lastAnswer || now < schedule.skippedUntil(settings.policy) ?? lastAnswer
    }

    /// Passes a request to the debouncer.
    mutating func admit(_ request: PendingRequest, _ now: Instant) {
        if queue.admit(request, isOffline: conditions.isOffline(settings), now) { restartCheck() }
    }

    /// Replaces the check in progress if that is configured; not while the pipeline is held, or waits for an unmetered
    /// connection or mains power, since no other run would start. A run for a further page ends only when a check may
    /// start, which ``proceed(_:)`` decides.
    private mutating func restartCheck() {
        guard settings.policy.whenRunning == .restart, !conditions.isHeld, phase.run?.isLoadMore == false,
            conditions.costWait(settings.policy, queue.ready.urgency) == nil
        else { return }
        interrupt(.restart)
    }

    /// The network has changed, the signal `network` has fired, or both. The signal is decided with the state that it
    /// announces.
    private mutating func network(_ state: NetworkState, _ cause: RunCause?, _ now: Instant) {
        let change = conditions.network.update(state, now: now)
        if settings.needsNetwork {
            if let interruption = phase.run?.interruption(by: state) { interrupt(interruption) }
            if change == .regained, queue.networkCameBack(splay: settings.splay, now) { restartCheck() }
        }
        if let cause { received([cause], now) }
    }

    private mutating func refresh(
        _ request: UInt64?, force: Bool, unconditional: Bool = false, _ cause: RunCause, _ now: Instant
    ) {
        if let refusal = refusal(force: force, at: now) {
            return output.answer(request.map { [$0] } ?? [], .refused(refusal))
        }
        let urgency = force ? PendingRequest.RunOverrides.forced : .operation
        if settings.policy.whenRunning == .ignore, let run = phase.run, run.answers(isUnconditional: unconditional) {
            _ = phase.update { $0.join(request, urgency) }
            return output.report(.joined(cause, run: run.order.run))
        }
        if let request { requests.append(request) }
        conditions.proofMayHaveChanged(settings.policy, at: now)
        queue.ready.merge(
            PendingRequest(causes: [cause], urgency: urgency, isUnconditional: unconditional))
        restartCheck()
    }

    /// Answers when the first run with a higher number has ended: immediately if it has. A refusal that prevents runs
    /// is the answer if no such run is in progress.
    private mutating func awaitRun(_ request: UInt64, after number: UInt64, _ now: Instant) {
        let isOver: Set<RunOutcome> = [.changed, .unchanged, .failed]
        if let last = runs.last, last.run > number, isOver.contains(last.outcome), !last.reason.isLoadMore {
            output.answer([request], .ended(last))
        } else if let run = phase.run, run.order.run > number, !run.isLoadMore {
            _ = phase.update { $0.requests.append(request) }
        } else if let refusal = refusal(force: false, at: now) {
            output.answer([request], .refused(refusal))
        } else {
            requests.append(request)
        }
    }

    /// Applies a change of parameters whose quiet period is over: it is a request, and ends a run with other values.
    private mutating func elapseParameters(_ now: Instant) {
        guard var debouncer = parameters, let due = debouncer.due, now >= due else { return }
        let cause = debouncer.pass()
        // An earlier change that could not run yet is merged with this one.
        if debouncer.isPassed { queue.ready.dropParameters() }
        debouncer.isPassed = cause != nil && !queue.ready.hasParameters
        parameters = debouncer
        guard let cause else { return }
        output.report(.received(cause))
        queue.passParameters(cause)
        interrupt(.parameters)
    }

    // MARK: Commands

    private mutating func reconfigured(_ new: RefreshSettings, sameProduct: Bool, _ now: Instant) {
        conditions.configure(from: settings.policy, to: new.policy)
        settings = new
        queue.configure(new.policy, splay: new.splay, now)
        if !sameProduct {
            // State about the old source says nothing about the new one.
            schedule.forget()
            schedule.originExpires = nil
            if conditions.retryAfter != nil {
                conditions.retryAfter = nil
                output.add(.rememberRetryAfter(nil))
            }
            if let old = queue.retry {
                queue.retry = nil
                admit(old.pendingRequest, now)
            }
            interrupt(.configuration)
            // The permit was requested for the old source's origin.
            if let permit = phase.requestedPermit {
                phase = .idle
                output.add(.releasePermit(permit))
            }
        }
        guard phase.isBetweenChecks, queue.retry == nil else { return }
        // A check that is due by the new configuration waits so that the cause `reload` can come first.
        schedule.plan = schedule.plannedCheck(since: now, settings)
            .map { max($0, sameProduct ? now : now.advanced(by: new.policy.quiet)) }
    }

    /// Holds or releases the pipeline. While it is held, no run starts and received signals are kept. A run in progress
    /// ends by itself.
    private mutating func hold(_ held: Bool) {
        conditions.isHeld = held
        guard held else { return }
        output.answer(requests, .refused(.held))
        requests = []
        output.answer(more.takeAll(), .refused(.held))
    }

    private mutating func stop() {
        schedule.plan = nil
        if let permit = phase.requestedPermit { output.add(.releasePermit(permit)) }
        phase = .stopped(phase.run)
        output.answer(requests, .stopped)
        requests = []
        output.answer(more.takeAll(), .stopped)
        interrupt(.stopped)
    }

    // MARK: Sleep and clocks

    /// The host is awake: waits continue, and everything that became due meanwhile is due now.
    ///
    /// Each overdue check gets its own random delay, so that not all start at the same time; a run for the signal
    /// `resume` answers it before.
    private mutating func woke(_ now: Instant) {
        conditions.goesToSleep = false
        conditions.network.settle(from: now)
        _ = phase.update { [limit = settings.policy.deadline] run in run.woke(now, limit: limit) }
        schedule.spreadOverdue(settings, now)
    }

    /// The wall clock was stepped: stored wall-clock times are converted to boot time again, and a certificate that was
    /// not valid at the old date may be valid now.
    private mutating func clockStepped(_ new: StoredRefreshState?, _ now: Instant) {
        if queue.retry?.kind == .certificateDate { queue.retry?.isCut = true }
        schedule.retryRejected(settings, isBetweenChecks: phase.isBetweenChecks, now)
        guard let old = schedule.memory, let new else { return }
        if conditions.retryAfter == old.retryAfter { conditions.retryAfter = new.retryAfter }
        copy.clockStepped(from: old.copy, to: new.copy)
        schedule.clockStepped(
            new, settings, isBetweenChecks: phase.isBetweenChecks, isRetried: queue.retry != nil, now)
    }

    /// Calendar times are at other instants. A run in progress, a retry and a request that waits plan the next check
    /// when they end.
    private mutating func calendarChanged(_ now: Instant) {
        guard settings.calendar != nil, phase.isBetweenChecks, queue.retry == nil,
            schedule.plan != nil || decision(at: now) == .nothingRequested
        else { return }
        schedule.calendarChanged(settings, now)
    }
}
