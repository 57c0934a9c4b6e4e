/// The request budget of a pipeline: only a forced run ignores a spent budget.
extension RefreshMachine {
    /// When the budget allows the next run; nil: now, or there is no budget.
    func budgetAvailable(at now: Instant) -> Instant? {
        guard let budget = settings.policy.budget, let meter else { return nil }
        return meter.availability(in: budget, at: now)
    }

    /// The used part of the budget; nil: there is no budget.
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

    /// Corrects the count after a run, for which one request was counted when it began. If the run could not connect,
    /// that request is not counted: it did not reach the origin, and a flapping network would use up the budget.
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
