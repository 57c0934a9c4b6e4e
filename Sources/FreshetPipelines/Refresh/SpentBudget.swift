import FreshetModel

/// The used part of a pipeline's request budget. Only a forced run ignores a spent budget.
struct SpentBudget: Sendable {
    typealias Instant = BootInstant

    /// Nil as long as no request was counted.
    @Boxed private var meter: RequestMeter?

    /// - Parameter spent: what was stored before a restart.
    init(_ spent: [RequestMeter.Spent]) {
        if !spent.isEmpty { meter = RequestMeter(spent) }
    }

    /// When the budget allows the next run; nil: now, or there is no budget.
    func availability(in budget: RequestBudget?, at now: Instant) -> Instant? {
        guard let budget, let meter else { return nil }
        return meter.availability(in: budget, at: now)
    }

    /// The used part; nil: there is no budget.
    func use(of budget: RequestBudget?, at now: Instant) -> BudgetUse? {
        budget.map { BudgetUse(budget: $0, used: meter?.used(of: $0, at: now) ?? 0) }
    }

    /// The most requests that a run may make, at least one; nil: there is no budget.
    func allowance(of budget: RequestBudget?, at now: Instant) -> Int? {
        use(of: budget, at: now).map { max(1, $0.budget.limit - $0.used) }
    }

    /// Counts requests.
    ///
    /// - Returns: what has to be stored; nil: there is no budget.
    mutating func spend(_ count: Int, of budget: RequestBudget?, at now: Instant) -> [RequestMeter.Spent]? {
        guard let budget else { return nil }
        var spending = meter ?? RequestMeter()
        for _ in 0..<count { spending.spend(of: budget, at: now) }
        meter = spending
        return spending.spent
    }

    /// Corrects the count after a run, for which one request was counted when it began. If the run could not connect,
    /// that request is not counted: it did not reach the origin, and a flapping network would use up the budget.
    ///
    /// - Returns: what has to be stored; nil: nothing has changed.
    mutating func settle(
        _ requests: Int, _ result: RunResult, of budget: RequestBudget?, at now: Instant
    ) -> [RequestMeter.Spent]? {
        guard budget != nil else { return nil }
        var further = requests - 1
        if case .failed(let failure) = result, failure.kind == .connection { further -= 1 }
        if further > 0 { return spend(further, of: budget, at: now) }
        guard further < 0, var spending = meter else { return nil }
        spending.takeBack()
        meter = spending
        return spending.spent
    }

    /// There is no budget any more.
    mutating func forget() { meter = nil }
}
