/// Decides when a pipeline runs. A state machine: events in, actions out. It reads no clock and performs no action
/// itself.
///
/// The way of a signal: *received* → (splay) → debouncer → *ready* → permit → run. A *ready* request may still wait for
/// the network, a backoff, `min-interval` or `Retry-After`. A run takes all signals that were received until it starts.
/// If the run does not succeed, its causes go back: to `retry` after a failure, to `ready` or through the debouncer if
/// the run was superseded.
package struct RefreshMachine: Sendable {
    package typealias Instant = ContinuousClock.Instant

    package enum Event: Hashable, Sendable {
        /// Signals fired: one cause for each source.
        case received([RunCause])
        /// The current state of the network.
        case network(NetworkState)
        /// The directly connected networks on which the origin may be: a number that changes with them; nil: none.
        case directNetworks(UInt64?)
        /// The operator requests a run. The identifier, if any, is answered once.
        ///
        /// - Parameter unconditional: the run sends no validators.
        case refresh(request: UInt64?, force: Bool, unconditional: Bool = false)
        /// A client requests one further page of the set of pages at this place. The identifier, if any, is answered
        /// once.
        case loadMore(request: UInt64?, place: [String])
        /// Another configuration is active from now on. This event starts a run only if one was in progress; the signal
        /// `reload`, which follows it, requests a run.
        ///
        /// - Parameters:
        ///   - sameProduct: a run of the old configuration has the same result as one of the new configuration.
        ///   - parameters: the values of the parameters from now on.
        case reconfigured(RefreshSettings, sameProduct: Bool, parameters: ParameterValues = ParameterValues())
        /// Parameters were changed: all values from now on, and the quiet period before they take effect. acted on.
        case parameters(ParameterValues, quiet: Duration)
        case held(Bool)
        /// The operator accepted the content that a check rejected; `run` is nil if the run was before a restart of the
        /// daemon.
        case accepted(run: UInt64?)
        /// There is no copy any more.
        case lost
        /// The copy was withdrawn, and since it was damaged, it is not kept.
        case copyLost
        /// The state of the copy; nil: there is none. It comes before all other events of the same moment.
        case copy(CopyState?)
        /// When the content of the copy expires by its own statement; nil: it states nothing.
        case contentExpires(Instant?)
        /// The result of ``Action/withdraw`` or ``Action/putBack``.
        case copySettled(CopyChangeResult)
        /// The host is about to sleep, or is not any more.
        case goesToSleep(Bool)
        /// The host woke up. This event comes before everything that became due meanwhile, and before the signal
        /// `resume`.
        case woke
        /// The wall clock was stepped.
        ///
        /// - Parameter memory: the state from before the restart, converted by the clock as it is now.
        case clockStepped(StoredRefreshState)
        /// The permit that ``Action/requestPermit(_:)`` requested was granted.
        case permitGranted(UInt64)
        /// The result of the proof that ``Action/prove(_:)`` requested.
        case proof(ProofResult)
        /// All requests of the run wait for permits or memory, or do not any more.
        case stalled(run: UInt64, Bool)
        /// The run has ended completely.
        ///
        /// - Parameter requests: the number of requests that it made, including one that could not connect.
        case ended(run: UInt64, RunResult, requests: Int = 1)
        /// The instant of ``Action/wake(at:)`` has come.
        case timer
        /// No run is to start any more.
        case stopped

        /// Whether the event grants a permit.
        var isGrant: Bool { if case .permitGranted = self { true } else { false } }
    }

    package enum Action: Hashable, Sendable {
        /// Requests a permit for a run; the number comes back in ``Event/permitGranted(_:)``.
        case requestPermit(UInt64)
        /// Releases the permit, or withdraws the request for it.
        case releasePermit(UInt64)
        /// Requests a proof of the network, instead of the previous request, until ``Event/proof(_:)`` brings it; nil:
        /// withdraws the request.
        case prove(ProofRequest?)
        case start(RunOrder)
        /// Withdraws the copy from readers. ``Event/copySettled(_:)`` reports the result.
        case withdraw
        /// Publishes the withdrawn copy again. ``Event/copySettled(_:)`` reports the result.
        case putBack
        /// Cancels the run; ``Event/ended(run:_:)`` reports its end.
        case cancel(run: UInt64)
        /// The next instant of ``Event/timer``, which replaces the previous one; nil: never.
        case wake(at: Instant?)
        case answer(request: UInt64, RefreshAnswer)
        /// Stores the end of `Retry-After` across restarts; nil: there is none any more.
        case rememberRetryAfter(Instant?)
        /// Stores the used part of the budget across restarts, in full.
        case rememberRequests([RequestMeter.Spent])
        case report(EngineEvent)
    }

    /// After this number of superseded runs in a row, the next run may finish.
    static let supersededInARow = 2

    /// Why a run is ended early.
    enum Interruption: Hashable, Sendable {
        /// A signal came and `when-running` is `restart`.
        case restart
        /// The network was lost, or the host slept: the run's connections are dead.
        case networkLost
        /// The path changed. *Early*: the run started after the change, but before the event.
        case pathChanged(early: Bool)
        case configuration
        /// The run uses old values of the parameters.
        case parameters
        case deadline
        case stopped

        /// Whether this interruption decides what happens with the run's result if the run succeeds nevertheless.
        func outranks(_ other: Interruption) -> Bool {
            switch self {
            case .stopped: true
            case .configuration, .parameters: other != .stopped
            case .restart, .networkLost, .pathChanged, .deadline: false
            }
        }
    }

    struct Run: Hashable, Sendable {
        var order: RunOrder
        var pendingRequest: PendingRequest
        var requests: [UInt64]
        var permit: UInt64
        /// When the previous run started.
        var startBefore: Instant?
        /// The path that the run uses; nil: the network was not reachable.
        var path: String?
        var deadline: Instant?
        /// The revision of the directly connected networks that the run uses without a route to the target.
        var direct: UInt64?
        /// Since when the run is stalled by other runs, which does not count for its deadline.
        var stalledSince: Instant?
        var interruption: Interruption?
        /// The path changed and the run was allowed to finish: consequences of the change do not end it either.
        var isSpared = false

        /// Whether the run may have connections from before an epoch that did not change the path. A run that started
        /// later has none, although it does not know the epoch's number yet.
        func isOutlived(by network: NetworkState) -> Bool {
            order.epoch != network.epoch && order.started < network.changedAt
        }
    }

    var settings: RefreshSettings
    var network: NetworkGate
    var burst: Debouncer
    var jitter: Jitter

    /// Received, and held until this host's share of the splay has passed.
    var splayed = PendingRequest()
    var splayedUntil: Instant?
    /// Held by the debouncer.
    var gathered = PendingRequest()
    /// Ready for a run as soon as nothing prevents it.
    var ready = PendingRequest()
    /// The retry of a failed run.
    @Boxed var retry: Retry?

    /// Nil for a pipeline without a probe that never had one.
    @Boxed var proof: Proof?

    /// Nil for a pipeline without parameters.
    @Boxed var parameters: ParameterDebouncer?

    /// The permit that was requested and has not been granted yet.
    var permitRequest: UInt64?
    var lastPermit: UInt64 = 0
    @Boxed var run: Run?
    var lastRun: RunSummary?
    var lastRunNumber: UInt64
    var lastStart: Instant?
    /// Consecutive superseded runs.
    var superseded = 0

    /// The last successful check with the current configuration.
    var lastSuccess: Instant?
    /// The last check that rejected the content, since `lastSuccess`; nil: none, or another failure came after it.
    @Boxed var lastRejection: Instant?
    /// When the data of that check stops being fresh, as its origin states; nil: not known.
    @Boxed var originExpires: Instant?
    /// When the copy was last confirmed, with any configuration: its age counts from this instant.
    var confirmed: Instant?
    /// Whether the expiry of the copy was reported.
    var isExpired = false
    /// Nil for a copy whose content states no expiry.
    @Boxed var contentExpiry: ContentExpiry?
    /// Nil for a pipeline that does not withdraw its copy, and never did.
    @Boxed var withdrawal: Withdrawal?
    @Boxed var failing: OngoingFailure?
    var hasGeneration: Bool
    /// The next planned check.
    var plan: Instant?
    /// The end of the origin's `Retry-After`.
    var retryAfter: Instant?
    /// Nil as long as no request was counted for a budget.
    @Boxed var meter: RequestMeter?
    var isHeld = false
    /// The host is about to sleep: no run starts until it is awake.
    var goesToSleep = false
    var isStopped = false
    /// The state from before the restart, converted to boot time; nil when it does not matter any more.
    @Boxed var memory: StoredRefreshState?
    /// Requests that wait for a run to start.
    var requests: [UInt64] = []
    /// Requests for further pages that have not started yet.
    var more: [LoadMoreRequest] = []

    var actions: [Action] = []
    var lastWake: Instant?
    var lastActivity = PipelineActivity.idle

    /// - Parameters:
    ///   - network: the current state of the network.
    ///   - memory: the state from before a restart.
    ///   - parameters: the values of the parameters.
    ///   - jitter: the source of random delays.
    package init(
        _ settings: RefreshSettings, network: NetworkState, memory: StoredRefreshState = StoredRefreshState(),
        parameters: ParameterValues = ParameterValues(), jitter: Jitter, now: Instant
    ) {
        self.settings = settings
        self.network = NetworkGate(network, now: now)
        self.jitter = jitter
        burst = Debouncer(quiet: settings.policy.quiet, atMost: settings.policy.atMost)
        lastRunNumber = memory.lastRun
        lastSuccess = memory.lastCheck
        originExpires = memory.expires
        confirmed = memory.confirmed
        hasGeneration = memory.hasGeneration
        isHeld = memory.isHeld
        retryAfter = memory.retryAfter.flatMap { $0 > now ? $0 : nil }
        if settings.policy.budget != nil, !memory.requests.isEmpty { meter = RequestMeter(memory.requests) }
        self.memory = memory
        if settings.withdraws || memory.copy?.isWithdrawn == true { withdrawal = Withdrawal(copy: memory.copy) }
        if parameters != ParameterValues() { self.parameters = ParameterDebouncer(parameters) }
        // An overdue check waits so that the signal `start` can come first, and respects this host's splay.
        plan = plannedCheck(since: now).map { max($0, now.advanced(by: settings.splay + settings.policy.quiet)) }
        lastActivity = activity(at: now)
    }

    /// Handles events that came together, in their order, and returns the actions.
    package mutating func handle(_ events: [Event], now: Instant) -> [Action] {
        if events.contains(.woke) { woke(now) }
        elapse(now)
        for event in events { apply(event, now) }
        elapse(now)
        proceed(now)
        seekProof(now)
        reportState(now)
        settleWithdrawal(now)
        reportExpiry(now)
        reportContentExpiry(now)
        let wake = nextWake(now)
        if wake != lastWake {
            lastWake = wake
            actions.append(.wake(at: wake))
        }
        defer { actions.removeAll() }
        return actions
    }

    package mutating func handle(_ event: Event, now: Instant) -> [Action] {
        handle([event], now: now)
    }

    mutating func report(_ event: EngineEvent) {
        actions.append(.report(event))
    }

    private mutating func apply(_ event: Event, _ now: Instant) {
        // After a stop only the end of the run matters.
        switch event {
        case .ended(let run, let result, let requests):
            ended(run, result, requests: requests, now)
            withdrawal?.retry = nil
        case .refresh(let request?, _, _) where isStopped, .loadMore(let request?, _) where isStopped:
            actions.append(.answer(request: request, .stopped))
        case _ where isStopped: break
        case .received(let causes): received(causes, now)
        case .network(let state): networkChanged(state, now)
        case .directNetworks(let revision): network.directNetworks(revision)
        case .refresh(let request, let force, let unconditional):
            refresh(request, force: force, unconditional: unconditional, now)
        case .loadMore(let request, let place): loadMore(request, at: place, now)
        case .reconfigured(let new, let sameProduct, let values):
            reconfigured(new, sameProduct: sameProduct, now)
            parametersReconfigured(values, sameProduct: sameProduct)
        case .parameters(let values, let quiet): parametersChanged(values, quiet: quiet, now)
        case .held(let held): hold(held)
        case .accepted(let run): accepted(run)
        case .lost: hasGeneration = false
        case .copyLost: copyLost()
        case .copy(let copy): copyChanged(copy)
        case .contentExpires(let instant): contentExpires(at: instant)
        case .copySettled(let settlement): copySettled(settlement, now)
        case .goesToSleep(let sleeps): goesToSleep = sleeps
        case .woke: goesToSleep = false  // handle(_:now:) has done the rest
        case .clockStepped(let memory): clockStepped(memory, now)
        case .permitGranted(let permit): permitGranted(permit, now)
        case .proof(let result): proofCame(result, now)
        case .stalled(let run, let isStalled): stalled(run, isStalled, now)
        case .timer: break  // elapse(_:) has done everything
        case .stopped: stop(now)
        }
    }

    /// When the next check by the clock is due; nil: never.
    ///
    /// - Parameter instant: when it is due if there was no check yet.
    func plannedCheck(since instant: Instant) -> Instant? {
        guard let every = settings.policy.every else { return nil }
        let planned = every + settings.plannedDelay
        guard let lastRejection else { return lastSuccess?.advanced(by: planned) ?? instant }
        return lastRejection.advanced(
            by: Backoff.afterRejection(failing?.tally.waits ?? 1, policy: settings.policy.retry, planned: planned))
    }

    /// The last check that found content at the origin, accepted or rejected.
    var lastAnswer: Instant? { lastRejection ?? lastSuccess }
}
