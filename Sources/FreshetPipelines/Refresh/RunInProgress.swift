import FreshetModel

/// Why a run is ended early.
enum Interruption: Hashable, Sendable {
    /// A signal came and `when-running` is `restart`.
    case restart
    /// The network was lost, or the host slept: the run's connections are dead.
    case networkLost
    case pathChanged
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

    /// Whether a run may finish in spite of this, if too many runs in a row were superseded.
    var maySpare: Bool {
        switch self {
        case .restart, .pathChanged: true
        case .networkLost, .configuration, .parameters, .deadline, .stopped: false
        }
    }

    /// Whether a run that was ended by this counts for ``RefreshMachine/supersededInARow``.
    var countsAsSuperseded: Bool {
        switch self {
        case .restart, .pathChanged: true
        case .networkLost, .configuration, .parameters, .deadline, .stopped: false
        }
    }

    /// Whether the causes of a run that was ended by this pass through the debouncer again: the network may still be
    /// changing.
    var isDebounced: Bool {
        switch self {
        case .networkLost, .pathChanged, .deadline, .stopped: true
        case .restart, .configuration, .parameters: false
        }
    }
}

/// The run in progress.
struct RunInProgress: Hashable, Sendable {
    typealias Instant = BootInstant

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
    private(set) var stalledSince: Instant?
    private(set) var interruption: Interruption?
    /// The path changed and the run was allowed to finish: consequences of the change do not end it either.
    private(set) var isSpared = false
    /// The number of signals that were ignored during the run.
    var ignored = 0

    init(
        _ order: RunOrder, _ pendingRequest: PendingRequest = PendingRequest(), requests: [UInt64], permit: UInt64,
        startBefore: Instant?, path: String?, direct: UInt64? = nil, limit: Duration
    ) {
        self.order = order
        self.pendingRequest = pendingRequest
        self.requests = requests
        self.permit = permit
        self.startBefore = startBefore
        self.path = path
        self.direct = direct
        deadline = limit > .zero ? order.started.advanced(by: limit) : nil
    }

    /// Whether the run loads one further page.
    var isLoadMore: Bool { order.reason.isLoadMore }

    /// When the deadline ends the run; nil: it has none, or is stalled.
    var dueEnd: Instant? { stalledSince == nil ? deadline : nil }

    /// Why the run ends when this state of the network comes; nil: it goes on.
    func interruption(by network: NetworkState) -> Interruption? {
        guard network.reachable else { return path == nil ? nil : .networkLost }
        if path != network.path { return .pathChanged }
        // If the pipeline has got another target since its run started, the run may have started after that target's
        // epoch: it has no connections from before.
        guard order.epoch != network.epoch, order.started < network.changedAt else { return nil }
        // The network is back on the run's path after a change that the run was allowed to survive: its connections
        // are not lost.
        return isSpared ? .pathChanged : .networkLost
    }

    /// Ends the run early.
    ///
    /// - Parameter mayFinish: whether enough runs were superseded before, so that this one may finish.
    /// - Returns: whether the run has to be cancelled.
    mutating func interrupt(_ new: Interruption, mayFinish: Bool) -> Bool {
        if let interruption {
            // The run may still succeed because it has committed; the stronger interruption decides what that means.
            if new.outranks(interruption) { self.interruption = new }
            return false
        }
        if new.maySpare, mayFinish, !isLoadMore {
            if new != .restart { isSpared = true }
            return false
        }
        interruption = new
        return true
    }

    /// Whether a request of a person that comes now may get the result of this run, instead of another run.
    ///
    /// - Parameter isUnconditional: the source is to send its whole content.
    func answers(isUnconditional: Bool) -> Bool {
        !isLoadMore && interruption == nil && (order.isUnconditional || !isUnconditional)
    }

    /// A request of a person gets the result of this run.
    mutating func join(_ request: UInt64?, _ urgency: PendingRequest.RunOverrides) {
        if let request { requests.append(request) }
        pendingRequest.urgency = max(pendingRequest.urgency, urgency)
    }

    /// All its requests wait for permits or memory, or do not any more. The deadline is paused meanwhile, since other
    /// runs block the run.
    mutating func stalled(_ isStalled: Bool, _ now: Instant) {
        guard isStalled != (stalledSince != nil) else { return }
        if let since = stalledSince { deadline = deadline?.advanced(by: since.duration(to: now)) }
        stalledSince = isStalled ? now : nil
    }

    /// The host woke up. The deadline begins again, since the run made no progress meanwhile.
    mutating func woke(_ now: Instant, limit: Duration) {
        if deadline != nil { deadline = now.advanced(by: limit) }
        if stalledSince != nil { stalledSince = now }
        // The old path that the run was allowed to keep is gone.
        isSpared = false
    }
}

/// Whether a run is in progress, or about to start.
enum RunPhase: Hashable, Sendable {
    case idle
    /// The permit with this number was requested and has not been granted yet.
    case requestingPermit(UInt64)
    indirect case running(RunInProgress)
    /// No run starts any more. The last run may still end.
    indirect case stopped(RunInProgress?)

    var run: RunInProgress? {
        switch self {
        case .running(let run): run
        case .stopped(let run): run
        case .idle, .requestingPermit: nil
        }
    }

    var requestedPermit: UInt64? { if case .requestingPermit(let permit) = self { permit } else { nil } }
    var isIdle: Bool { self == .idle }
    var isStopped: Bool { if case .stopped = self { true } else { false } }
    /// Whether no check is in progress, so that the plan for the next one holds.
    var isBetweenChecks: Bool { run.map(\.isLoadMore) ?? true }

    /// Changes the run in progress, if there is one.
    mutating func update<Result>(_ change: (inout RunInProgress) -> Result) -> Result? {
        switch self {
        case .running(var run):
            defer { self = .running(run) }
            return change(&run)
        case .stopped(var run?):
            defer { self = .stopped(run) }
            return change(&run)
        case .stopped(nil), .idle, .requestingPermit: return nil
        }
    }

    /// The run with this number has ended.
    mutating func end(_ number: UInt64) -> RunInProgress? {
        guard let run, run.order.run == number else { return nil }
        self = isStopped ? .stopped(nil) : .idle
        return run
    }
}
