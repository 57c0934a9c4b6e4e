import FreshetModel

/// The conditions of a run besides its signals: hold, sleep, network and proof of the network, metered
/// connection, battery, `Retry-After`, budget.
struct RunConditions: Sendable {
    typealias Instant = BootInstant

    var network: NetworkGate
    /// Nil for a pipeline without a probe that never had one.
    @Boxed private(set) var proof: NetworkProof?
    /// The end of the origin's `Retry-After`.
    var retryAfter: Instant?
    var budget: SpentBudget
    var isHeld: Bool
    /// The host is about to sleep: no run starts until it is awake.
    var goesToSleep = false
    /// See ``RefreshEvent/metered(_:)``.
    @Boxed var metered: String?
    /// See ``RefreshEvent/power(_:)``.
    @Boxed var power: String?

    /// - Parameter memory: the state from before a restart.
    init(_ settings: RefreshSettings, network: NetworkState, memory: StoredRefreshState, now: Instant) {
        self.network = NetworkGate(network, now: now)
        retryAfter = memory.retryAfter.flatMap { $0 > now ? $0 : nil }
        budget = SpentBudget(settings.policy.budget == nil ? [] : memory.requests)
        isHeld = memory.isHeld
    }

    /// What prevents the run that is ready, besides backoff and intervals; nil: nothing.
    ///
    /// - Parameter overdueSince: since when the planned check is due; nil: no checks are planned.
    func wait(_ settings: RefreshSettings, overdueSince: Instant?, at now: Instant) -> Wait? {
        if let retryAfter, now < retryAfter { return Wait(.retryAfter, until: retryAfter) }
        if let available = budget.availability(in: settings.policy.budget, at: now) {
            return Wait(.budget, until: available)
        }
        guard isOffline(settings) else { return nil }
        let overdue = overdueSince.map { network.attemptsAnyway(overdueSince: $0) }
        let attempt = [network.looksForOrigin, overdue].compactMap(\.self).min()
        guard let attempt, now >= attempt else { return Wait(.network, until: attempt) }
        return nil
    }

    /// The wait of a run for an unmetered connection or mains power; nil: it may start. A run that a person requested
    /// may.
    func costWait(_ policy: RefreshPolicy, _ urgency: PendingRequest.RunOverrides) -> Wait? {
        guard urgency == .none else { return nil }
        if policy.whenMetered == .wait, let metered { return Wait(.metered, detail: metered) }
        if policy.onBattery == .wait, let power { return Wait(.power, detail: power) }
        return nil
    }

    /// Whether the network that a run needs is not usable.
    func isOffline(_ settings: RefreshSettings) -> Bool { settings.needsNetwork && !network.isUsable }

    /// Why a request of the operator is refused now; nil: it is allowed.
    func refusal(force: Bool, _ settings: RefreshSettings, at now: Instant) -> RefreshRefusal? {
        if isHeld { return .held }
        if force { return nil }
        if let retryAfter, retryAfter > now { return .retryAfter(until: retryAfter) }
        return budget.availability(in: settings.policy.budget, at: now).map { .budget(until: $0) }
    }

    // MARK: Proof

    /// Whether there is a proof of the network, or none is needed.
    func isProven(_ policy: RefreshPolicy, isStarting: Bool, at now: Instant) -> Bool {
        guard policy.needsNetwork.probe != nil else { return true }
        return proof?.holds(in: network.state.epoch, isStarting: isStarting, at: now) ?? false
    }

    /// An event may have changed the answer of the probe.
    mutating func proofMayHaveChanged(_ policy: RefreshPolicy, at instant: Instant) {
        guard policy.needsNetwork.probe != nil else { return }
        var proof = proof ?? NetworkProof()
        proof.mayHaveChanged(at: instant)
        self.proof = proof
    }

    /// Requests a proof if only a proof is missing, and withdraws the request otherwise.
    ///
    /// - Parameter isMissing: whether only a proof is missing for a run.
    /// - Returns: the new request or nil, if that is a change.
    mutating func seekProof(_ policy: RefreshPolicy, isMissing: Bool) -> ProofRequest?? {
        let probe = policy.needsNetwork.probe
        guard probe != nil || proof != nil else { return nil }
        var proof = proof ?? NetworkProof()
        var request: ProofRequest?
        if let probe, isMissing {
            request = ProofRequest(probe, epoch: network.state.epoch, since: proof.mayHaveChanged)
        }
        guard proof.seek(request) else { return nil }
        self.proof = proof
        return .some(request)
    }

    /// The result of a proof; returns why it was refused, if the request was not withdrawn meanwhile.
    mutating func proofCame(_ result: ProofResult, _ now: Instant) -> String? {
        let epoch = network.state.epoch
        guard proof?.received(result, current: epoch) == true else { return nil }
        // Without a route this was the attempt of ``NetworkGate/attemptAnyway``; the next one comes after that
        // interval.
        if !network.state.reachable { network.attemptedAnyway(at: now) }
        return proof?.refusal
    }

    /// Other settings are active.
    mutating func configure(from old: RefreshPolicy, to new: RefreshPolicy) {
        if old.needsNetwork.probe != new.needsNetwork.probe { proof?.expire() }
        if new.budget == nil { budget.forget() }
    }
}
