import FreshetModel

/// The copy as readers have it: whether there is one, whether it has expired, and whether it is withdrawn.
struct PublishedCopy: Sendable {
    typealias Instant = BootInstant

    private(set) var expiry: CopyExpiry
    /// Nil for a pipeline that does not withdraw its copy, and never did.
    @Boxed private(set) var withdrawal: Withdrawal?

    /// - Parameters:
    ///   - memory: the state from before a restart.
    ///   - withdraws: an expired copy is withdrawn from readers.
    init(_ memory: StoredRefreshState, withdraws: Bool) {
        expiry = CopyExpiry(hasCopy: memory.hasGeneration)
        if withdraws || memory.copy?.isWithdrawn == true { withdrawal = Withdrawal(copy: memory.copy) }
    }

    /// Whether there is a copy, published or withdrawn.
    var exists: Bool { expiry.hasCopy }

    /// Whether readers do not have the copy, or cannot use it any more.
    func isGone(at now: Instant) -> Bool { withdrawal?.isWithdrawn == true || expiry.isContentExpired(at: now) }

    /// When the copy exceeds its `max-age`; nil: never, or there is no copy.
    ///
    /// - Parameter confirmed: when the copy was last confirmed.
    func expires(confirmed: Instant?, maxAge: Duration?) -> Instant? {
        guard exists, let maxAge else { return nil }
        return confirmed?.advanced(by: maxAge)
    }

    /// When the copy is to be withdrawn, or since when; nil: never.
    func withdrawsAt(confirmed: Instant?, maxAge: Duration?) -> Instant? {
        guard let maxAge, let expires = expires(confirmed: confirmed, maxAge: maxAge) else { return nil }
        return withdrawal?.due(expires: expires, maxAge: maxAge)
    }

    /// A run has made or confirmed the copy, or the operator has accepted another one.
    mutating func confirm() { expiry.hasCopy = true }

    /// A partly failed run has made or confirmed the copy.
    mutating func confirmInPart(at now: Instant) {
        expiry.hasCopy = true
        withdrawal?.copyMade(at: now)
    }

    /// There is no copy any more.
    mutating func lost() { expiry.hasCopy = false }

    /// The copy was withdrawn, and since it was damaged, it is not kept.
    mutating func withdrawnAndLost() {
        expiry.copyLost()
        withdrawal?.copyLost()
    }

    /// The state of the copy has changed; nil: there is none.
    ///
    /// - Parameters:
    ///   - confirmed: when the copy was last confirmed.
    ///   - causes: the causes of the check in progress; nil: there is none.
    /// - Returns: the event, if readers find the copy no more, or again.
    mutating func changed(_ copy: CopyState?, confirmed: Instant?, causes: [RunCause]?) -> EngineEvent? {
        var withdrawal = withdrawal ?? Withdrawal()
        let change = withdrawal.copyChanged(copy)
        self.withdrawal = withdrawal
        // Also after a loss of the previous copy: the operator may have chosen another one.
        if copy != nil { expiry.hasCopy = true }
        return switch change {
        case .withdrawn: .withdrawn(checked: confirmed)
        case .returned(let isSame): .returned(isSame: isSame, causes: causes)
        case nil: nil
        }
    }

    /// When the content of the copy expires by its own statement; nil: it states nothing.
    mutating func contentExpires(at instant: Instant?) { expiry.contentExpires(at: instant) }

    /// The result of a requested withdrawal or return.
    mutating func settled(_ result: CopyChangeResult, _ now: Instant) { withdrawal?.settled(result, now) }

    /// A run has ended: a failed change is retried.
    mutating func runEnded() { withdrawal?.runEnded() }

    /// The wall clock was stepped: the write time is converted again.
    mutating func clockStepped(from old: CopyState?, to new: CopyState?) {
        withdrawal?.clockStepped(from: old, to: new)
    }

    /// Requests that the copy is withdrawn or published again, if it is to be, and reports its expiry.
    ///
    /// - Parameters:
    ///   - confirmed: when the copy was last confirmed.
    ///   - expires: when the copy exceeds its `max-age`; nil: never.
    ///   - withdrawsAt: when it is to be withdrawn; nil: never.
    ///   - isRunning: a run is in progress.
    ///   - isStopped: no run starts any more.
    mutating func settle(
        confirmed: Instant?, expires: Instant?, withdrawsAt: Instant?, isRunning: Bool, isStopped: Bool, _ now: Instant,
        into output: inout RefreshOutput
    ) {
        let isDue = withdrawsAt.map { now >= $0 } ?? false
        if !isStopped, exists, let withdraws = withdrawal?.request(isDue: isDue, now) {
            output.add(withdraws ? .withdraw : .putBack)
        }
        let checked = expires.flatMap { now >= $0 ? confirmed : nil }
        let isTakenAway = withdrawal?.takesAway(isDue: isDue, isRunning: isRunning) ?? false
        if let event = expiry.ageEvent(checked: checked, isTakenAway: isTakenAway, isStopped: isStopped) {
            output.report(event)
        }
        guard !isStopped else { return }
        if let event = expiry.contentEvent(isWithdrawn: withdrawal?.isWithdrawn == true, at: now) {
            output.report(event)
        }
    }
}
