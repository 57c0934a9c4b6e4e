package import FreshetModel

/// Counts the requests of a pipeline within its budget.
///
/// The budget holds for every span of the period's length, wherever it begins: a day is not a calendar day, since then
/// two days' budgets could be used around midnight. Requests are stored one by one; many requests within a forty-eighth
/// of the period are stored together, as if all were made at the time of the last one.
package struct RequestMeter: Hashable, Sendable {
    package typealias Instant = BootInstant

    /// Requests that are stored together.
    package struct Spent: Hashable, Sendable {
        package var first: Instant
        package var last: Instant
        package var count: Int

        package init(first: Instant, last: Instant, count: Int) {
            self.first = first
            self.last = last
            self.count = count
        }
    }

    /// The most entries, without the newest one.
    static let slices = 48

    /// The entries, in the order of time.
    package private(set) var spent: [Spent]

    package init(_ spent: [Spent] = []) {
        self.spent = spent.sorted { $0.first < $1.first }
    }

    /// The number of requests within the last period.
    package func used(of budget: RequestBudget, at now: Instant) -> Int {
        let oldest = now.advanced(by: .zero - budget.period.duration)
        return spent.reduce(0) { $1.last > oldest ? $0 + $1.count : $0 }
    }

    /// When the budget allows the next request; nil: now.
    package func availability(in budget: RequestBudget, at now: Instant) -> Instant? {
        var excess = used(of: budget, at: now) - budget.limit
        let oldest = now.advanced(by: .zero - budget.period.duration)
        for entry in spent where entry.last > oldest && excess >= 0 {
            excess -= entry.count
            if excess < 0 { return entry.last.advanced(by: budget.period.duration) }
        }
        return nil
    }

    /// Counts a request.
    mutating func spend(of budget: RequestBudget, at now: Instant) {
        let period = budget.period.duration
        spent.removeAll { $0.last <= now.advanced(by: .zero - period) }
        if let entry = spent.last, now < entry.first.advanced(by: period / Self.slices) {
            spent[spent.count - 1].last = max(entry.last, now)
            spent[spent.count - 1].count += 1
        } else {
            spent.append(Spent(first: now, last: now, count: 1))
        }
    }

    /// The last request was not made.
    mutating func takeBack() {
        guard let entry = spent.last else { return }
        if entry.count > 1 { spent[spent.count - 1].count -= 1 } else { spent.removeLast() }
    }
}
