/// Decides when a pipeline runs. Events in, actions out: it reads no clock, performs nothing and forgets nothing.
///
/// A signal's way: *heard* → (splay) → the storm gate → *ready* → a slot → a run. What is *ready* may still be held up
/// by the network, a back-off, `min-interval` or `Retry-After`. A run takes along all that was heard until it starts.
/// What a run was for goes back when it did not succeed: to `retry` after a failure, to `ready` or through the gate
/// when it was superseded.
package struct RefreshMachine: Sendable {
    package typealias Instant = ContinuousClock.Instant

    package enum Event: Hashable, Sendable {
        /// Signals fired: each source once.
        case heard([RunCause])
        /// The network's state, again or new.
        case network(NetworkState)
        /// The directly connected networks on which the origin may be: another number for others; nil: none.
        case directNetworks(UInt64?)
        /// The operator asks for a run. The identifier, if any, is answered once.
        ///
        /// - Parameter unconditional: the run sends no validators.
        case refresh(request: UInt64?, force: Bool, unconditional: Bool = false)
        /// Somebody wants one further page of the set of pages at this place. The identifier, if any, is answered once.
        case loadMore(request: UInt64?, place: [String])
        /// Another configuration holds from now on. By itself it asks for nothing but what was under way; the signal
        /// `reload` that comes with it does.
        ///
        /// - Parameters:
        ///   - sameProduct: a run of the old configuration makes what the new one would.
        ///   - parameters: their values from now on.
        case reconfigured(RefreshSettings, sameProduct: Bool, parameters: ParameterValues = ParameterValues())
        /// Somebody changed parameters: all their values from now on, and how long it has to be quiet before that is
        /// acted on.
        case parameters(ParameterValues, quiet: Duration)
        case held(Bool)
        /// The operator has accepted the content that a check refused; of this run, if it was one of this life.
        case accepted(run: UInt64?)
        /// Nothing is offered any more.
        case lost
        /// The copy is withdrawn, and since it was not whole, it is not kept.
        case copyLost
        /// What is known of the copy; nil: there is none. It comes before all else that was told at the same time.
        case copy(CopyState?)
        /// When the content of the copy expires by what the content itself states; nil: it states nothing.
        case contentExpires(Instant?)
        /// What came of ``Action/withdraw`` or ``Action/putBack``.
        case copySettled(CopyChangeResult)
        /// The machine is about to sleep, or is not any more.
        case goesToSleep(Bool)
        /// The machine woke up. It comes before what became due meanwhile, and before the signal `resume`.
        case woke
        /// The wall clock was stepped.
        ///
        /// - Parameter memory: what is known from before the restart, by the clock as it is now.
        case clockStepped(StoredRefreshState)
        /// The slot that ``Action/requestSlot(_:)`` asked for is there.
        case slotGranted(UInt64)
        /// What came of asking for the proof that ``Action/prove(_:)`` wants.
        case proof(ProofResult)
        /// All that the run asks for waits for places, or does so no longer.
        case stalled(run: UInt64, Bool)
        /// The run has returned, and nothing of it goes on.
        ///
        /// - Parameter requests: how many it made, one that found no connection included.
        case ended(run: UInt64, RunResult, requests: Int = 1)
        /// Time went by.
        case timer
        /// Nothing is to start any more.
        case stopped

        /// It is the slot's grant.
        var isGrant: Bool { if case .slotGranted = self { true } else { false } }
    }

    package enum Action: Hashable, Sendable {
        /// Asks for a place among the runs; the number comes back in ``Event/slotGranted(_:)``.
        case requestSlot(UInt64)
        /// Gives the place back, or takes the request back.
        case releaseSlot(UInt64)
        /// Wants a proof of the network from now on, instead of the one before, until ``Event/proof(_:)`` brings it; nil:
        /// no longer.
        case prove(ProofRequest?)
        case start(RunOrder)
        /// Readers are not to find the copy any more. What comes of it is told as ``Event/copySettled(_:)``.
        case withdraw
        /// Readers are to find the withdrawn copy again. What comes of it is told as ``Event/copySettled(_:)``.
        case putBack
        /// Cancels the run; its end is awaited as ``Event/ended(run:_:)``.
        case cancel(run: UInt64)
        /// The instant at which ``Event/timer`` is due, instead of the one before; nil: never.
        case wake(at: Instant?)
        case answer(request: UInt64, RefreshAnswer)
        /// To be remembered across restarts; nil: no longer.
        case rememberRetryAfter(Instant?)
        /// To be remembered across restarts: what was spent of the budget, all of it.
        case rememberRequests([RequestMeter.Spent])
        case report(EngineEvent)
    }

    /// A run that was superseded twice in a row is left to finish the third time.
    static let supersededInARow = 2

    /// What ends a run before its time.
    enum Interruption: Hashable, Sendable {
        /// A signal came and `when-running` is `restart`.
        case restart
        /// The network is gone, or the machine slept: its connections are dead.
        case networkLost
        /// The path is another one. *Early*: the run started after the change, and before it was told of it.
        case pathChanged(early: Bool)
        case configuration
        /// It was made with other values.
        case parameters
        case deadline
        case stopped

        /// Of two the one that says what becomes of what the run made, should it have succeeded all the same.
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
        var wanted: Wanted
        var requests: [UInt64]
        var slot: UInt64
        /// When the run before started.
        var startBefore: Instant?
        /// The path it uses; nil: the network was not there.
        var path: String?
        var deadline: Instant?
        /// The directly connected networks that it uses for want of a route to elsewhere.
        var direct: UInt64?
        /// Since when it waits for nothing but others' requests to end, which counts for no deadline.
        var stalledSince: Instant?
        var interruption: Interruption?
        /// The path changed, and it was left to finish: what comes of that does not end it either.
        var isSpared = false

        /// Whether it may have connections from before an epoch that left the path as it was. A run that started later
        /// has none, although it does not know the epoch's number yet.
        func isOutlived(by network: NetworkState) -> Bool {
            order.epoch != network.epoch && order.started < network.changedAt
        }
    }

    var settings: RefreshSettings
    var network: NetworkGate
    var storm: Debouncer
    var jitter: Jitter

    /// Heard, and not acted on before this host's share of the splay has passed.
    var splayed = Wanted()
    var splayedUntil: Instant?
    /// Held by the storm gate.
    var gathered = Wanted()
    /// Wants a run as soon as nothing is in the way.
    var ready = Wanted()
    /// What a failed run left to do.
    @Boxed var retry: Retry?

    /// Nil for a pipeline without a probe that never had one.
    @Boxed var proof: Proof?

    /// Nil for a pipeline that has none.
    @Boxed var parameters: ParameterDebouncer?

    /// The slot that was asked for and has not been granted yet.
    var slotRequest: UInt64?
    var lastSlot: UInt64 = 0
    @Boxed var run: Run?
    var lastRun: RunSummary?
    var lastRunNumber: UInt64
    var lastStart: Instant?
    /// Runs in a row that were superseded.
    var superseded = 0

    /// The last successful check of what is configured now.
    var lastSuccess: Instant?
    /// The last check that refused what it found, since that check; nil: there was none, or another failure came after it.
    @Boxed var lastRefusal: Instant?
    /// When what was checked then stops being fresh by its origin's word; nil: not known.
    @Boxed var originExpires: Instant?
    /// When the copy was last confirmed, whatever was configured then: from this its age counts.
    var confirmed: Instant?
    /// It was told that the copy is too old.
    var isExpired = false
    /// Nil for a copy whose content states no expiry.
    @Boxed var contentExpiry: ContentExpiry?
    /// Nil for a pipeline that withdraws nothing, and never did.
    @Boxed var withdrawal: Withdrawal?
    @Boxed var failing: OngoingFailure?
    var hasGeneration: Bool
    /// The next check by the clock.
    var plan: Instant?
    /// Until when the origin asked to be left alone.
    var retryAfter: Instant?
    /// Nil as long as nothing was spent of a budget.
    @Boxed var meter: RequestMeter?
    var isHeld = false
    /// The machine is about to sleep: nothing starts until it is awake.
    var goesToSleep = false
    var isStopped = false
    /// What is known from before the restart, as it was brought onto boot time; nil once none of it counts any more.
    @Boxed var memory: StoredRefreshState?
    /// Requests that a run has to start for.
    var requests: [UInt64] = []
    /// Further pages that are wanted, and not asked for yet.
    var more: [LoadMoreRequest] = []

    var actions: [Action] = []
    var lastWake: Instant?
    var lastActivity = PipelineActivity.idle

    /// - Parameters:
    ///   - network: the present state of the network.
    ///   - memory: what is known from before a restart.
    ///   - parameters: the values of its parameters.
    ///   - jitter: where random delays come from.
    package init(
        _ settings: RefreshSettings, network: NetworkState, memory: StoredRefreshState = StoredRefreshState(),
        parameters: ParameterValues = ParameterValues(), jitter: Jitter, now: Instant
    ) {
        self.settings = settings
        self.network = NetworkGate(network, now: now)
        self.jitter = jitter
        storm = Debouncer(quiet: settings.policy.quiet, atMost: settings.policy.atMost)
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
        // An overdue check leaves the signal `start` the time to come first, and keeps this host's splay.
        plan = plannedCheck(since: now).map { max($0, now.advanced(by: settings.splay + settings.policy.quiet)) }
        lastActivity = activity(at: now)
    }

    /// Takes events that came together, in their order, and says what is to be done.
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
        // After the stop only the end of the run is awaited.
        switch event {
        case .ended(let run, let result, let requests):
            ended(run, result, requests: requests, now)
            withdrawal?.retry = nil
        case .refresh(let request?, _, _) where isStopped, .loadMore(let request?, _) where isStopped:
            actions.append(.answer(request: request, .stopped))
        case _ where isStopped: break
        case .heard(let causes): heard(causes, now)
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
        case .woke: goesToSleep = false  // the rest was done before time was let pass
        case .clockStepped(let memory): clockStepped(memory, now)
        case .slotGranted(let slot): slotGranted(slot, now)
        case .proof(let verdict): proofCame(verdict, now)
        case .stalled(let run, let isStalled): stalled(run, isStalled, now)
        case .timer: break  // what time alone brings has been done before
        case .stopped: stop(now)
        }
    }

    /// When the next check by the clock is due; nil: never.
    ///
    /// - Parameter instant: from when it is due if nothing was ever checked.
    func plannedCheck(since instant: Instant) -> Instant? {
        guard let every = settings.policy.every else { return nil }
        let planned = every + settings.plannedDelay
        guard let lastRefusal else { return lastSuccess?.advanced(by: planned) ?? instant }
        return lastRefusal.advanced(
            by: Backoff.afterRefusal(failing?.tally.waits ?? 1, policy: settings.policy.retry, planned: planned))
    }

    /// When the origin was last found to have something, whether that was accepted or refused.
    var lastAnswer: Instant? { lastRefusal ?? lastSuccess }
}
