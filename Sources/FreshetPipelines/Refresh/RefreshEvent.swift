package import FreshetModel

/// An event for a ``RefreshMachine``.
package enum RefreshEvent: Hashable, Sendable {
    /// Signals fired: one cause for each source. The signal `network` comes here only from a source without a
    /// ``NetworkFeed``, such as a program's own signal; the state of the network then stays as it is.
    case received([RunCause])
    /// The state of the network has changed, or the signal `network` has fired, or both. The state is the one that the
    /// signal announces.
    ///
    /// - Parameter cause: the firing; nil: the signal did not fire, as at a loss, or the pipeline does not subscribe to
    ///   it.
    case network(NetworkState, cause: RunCause? = nil)
    /// The directly connected networks on which the origin may be: a number that changes with them; nil: none.
    case directNetworks(UInt64?)
    /// Why runs wait that must not use a metered connection, such as `metered (guessed)`; nil: the connection is not
    /// metered, or nobody knows.
    case metered(String?)
    /// Why runs wait that must not run on battery, such as `on battery`; nil: the machine has mains power, or nobody
    /// knows.
    case power(String?)
    /// The operator requests a run. The identifier, if any, is answered once.
    ///
    /// - Parameter unconditional: the run sends no validators.
    case refresh(request: UInt64?, force: Bool, unconditional: Bool = false)
    /// A client waits for the end of the first run with a higher number than this one. It requests no run. The
    /// identifier is answered once.
    case awaitRun(request: UInt64, after: UInt64)
    /// A client requests one further page of the set of pages at this place. The identifier, if any, is answered
    /// once.
    case loadMore(request: UInt64?, place: [String])
    /// Another configuration is active from now on. This event starts a run only if one was in progress; a cause
    /// `reload`, which may follow it, requests a run.
    ///
    /// - Parameters:
    ///   - sameProduct: a run of the old configuration has the same result as one of the new configuration.
    ///   - parameters: the values of the parameters from now on.
    case reconfigured(RefreshSettings, sameProduct: Bool, parameters: ParameterValues = ParameterValues())
    /// Parameters were changed: all values from now on, and the quiet period before they take effect.
    case parameters(ParameterValues, quiet: Duration)
    case held(Bool)
    /// The operator accepted the content that a check rejected; `run` is nil if the run was before a restart of the
    /// daemon.
    case accepted(run: UInt64?)
    /// There is no copy any more; this requests a run.
    case lost
    /// The copy was withdrawn, and since it was damaged, it is not kept.
    case copyLost
    /// The state of the copy; nil: there is none. It comes before all other events of the same moment.
    case copy(CopyState?)
    /// When the content of the copy expires by its own statement; nil: it states nothing.
    case contentExpires(BootInstant?)
    /// The result of ``RefreshAction/withdraw`` or ``RefreshAction/putBack``.
    case copySettled(CopyChangeResult)
    /// The host is about to sleep, or is not any more.
    case goesToSleep(Bool)
    /// The host woke up. This event comes before everything that became due meanwhile, and before the signal
    /// `resume`.
    case woke
    /// The wall clock was stepped.
    ///
    /// - Parameters:
    ///   - memory: the state from before the restart, converted by the clock as it is now.
    ///   - calendar: the calendar times by the clock as it is now.
    case clockStepped(StoredRefreshState?, calendar: Shared<CalendarPlan>? = nil)
    /// The local time zone has changed.
    case zoneChanged(Shared<CalendarPlan>?)
    /// The permit that ``RefreshAction/requestPermit(_:)`` requested was granted.
    case permitGranted(UInt64)
    /// The result of the proof that ``RefreshAction/prove(_:)`` requested.
    case proof(ProofResult)
    /// All requests of the run wait for permits or memory, or do not any more.
    case stalled(run: UInt64, Bool)
    /// The run has ended completely.
    ///
    /// - Parameter requests: the number of requests that it made, including one that could not connect.
    case ended(run: UInt64, RunResult, requests: Int = 1)
    /// The instant of ``RefreshAction/wake(at:)`` has come.
    case timer
    /// No run is to start any more.
    case stopped

    var isWoke: Bool { if case .woke = self { true } else { false } }

    /// Whether the event grants a permit.
    var isGrant: Bool { if case .permitGranted = self { true } else { false } }
}

/// What a ``RefreshMachine`` requests.
package enum RefreshAction: Hashable, Sendable {
    /// Requests a permit for a run; the number comes back in ``RefreshEvent/permitGranted(_:)``.
    case requestPermit(UInt64)
    /// Releases the permit, or withdraws the request for it.
    case releasePermit(UInt64)
    /// Requests a proof of the network, instead of the previous request, until ``RefreshEvent/proof(_:)`` brings it;
    /// nil: withdraws the request.
    case prove(ProofRequest?)
    case start(RunOrder)
    /// Withdraws the copy from readers. ``RefreshEvent/copySettled(_:)`` reports the result.
    case withdraw
    /// Publishes the withdrawn copy again. ``RefreshEvent/copySettled(_:)`` reports the result.
    case putBack
    /// Cancels the run; ``RefreshEvent/ended(run:_:)`` reports its end.
    case cancel(run: UInt64)
    /// The next instant of ``RefreshEvent/timer``, which replaces the previous one; nil: never.
    case wake(at: BootInstant?)
    case answer(request: UInt64, RefreshAnswer)
    /// Stores the end of `Retry-After` across restarts; nil: there is none any more.
    case rememberRetryAfter(BootInstant?)
    /// Stores the used part of the budget across restarts, in full.
    case rememberRequests([RequestMeter.Spent])
    case report(EngineEvent)
}
