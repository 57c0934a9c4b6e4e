/// What a pipeline has spent of its budget.
///
/// No span as long as the budget's period has more requests than the budget allows, wherever it begins: a day is not
/// the calendar's, of which two halves could be spent around midnight. Requests are kept one by one, or where there
/// are many, those of a forty-eighth of the period together, as if all were made with the last of them.
package struct RequestMeter: Hashable, Sendable {
    package typealias Instant = ContinuousClock.Instant

    /// Requests that were made close together.
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

    /// How many entries there are at most, and one that is just beginning.
    static let slices = 48

    /// In the order of time.
    package private(set) var spent: [Spent]

    package init(_ spent: [Spent] = []) {
        self.spent = spent.sorted { $0.first < $1.first }
    }

    /// How many requests of the last period there were.
    package func used(of budget: RequestBudget, at now: Instant) -> Int {
        let oldest = now.advanced(by: .zero - budget.period.duration)
        return spent.reduce(0) { $1.last > oldest ? $0 + $1.count : $0 }
    }

    /// When the next request fits; nil: now.
    package func hasRoom(in budget: RequestBudget, at now: Instant) -> Instant? {
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

    /// The last request did not come about.
    mutating func takeBack() {
        guard let entry = spent.last else { return }
        if entry.count > 1 { spent[spent.count - 1].count -= 1 } else { spent.removeLast() }
    }
}
