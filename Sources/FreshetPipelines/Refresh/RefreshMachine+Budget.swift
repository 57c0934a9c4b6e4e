/// What a budget of requests means for a pipeline: only force passes one that is spent.
extension RefreshMachine {
    /// When its budget has room for the next run; nil: now, or it has no budget.
    func hasRoomInBudget(at now: Instant) -> Instant? {
        guard let budget = settings.policy.budget, let meter else { return nil }
        return meter.hasRoom(in: budget, at: now)
    }

    /// What was spent of its budget; nil: it has none.
    package func budgetUse(at now: Instant) -> BudgetUse? {
        guard let budget = settings.policy.budget else { return nil }
        return BudgetUse(budget: budget, used: meter?.used(of: budget, at: now) ?? 0)
    }

    mutating func spend(_ count: Int, _ now: Instant) {
        guard let budget = settings.policy.budget else { return }
        var spending = meter ?? RequestMeter()
        for _ in 0..<count { spending.spend(of: budget, at: now) }
        meter = spending
        actions.append(.rememberRequests(spending.spent))
    }

    /// A run has ended for which one request was counted when it began. One that found no connection is taken back:
    /// the origin never heard of it, and a network that flaps would cost the whole budget.
    mutating func settleBudget(_ requests: Int, _ result: RunResult, _ now: Instant) {
        guard settings.policy.budget != nil else { return }
        var further = requests - 1
        if case .failed(let failure) = result, failure.kind == .connection { further -= 1 }
        if further > 0 { return spend(further, now) }
        guard further < 0, var spending = meter else { return }
        spending.takeBack()
        meter = spending
        actions.append(.rememberRequests(spending.spent))
    }
}
