/// The number of requests that a pipeline may make within a period: `refresh.budget`, such as `500/day`.
package struct RequestBudget: Hashable, Sendable {
    package enum Period: String, CaseIterable, Hashable, Sendable {
        case hour, day

        package var duration: Duration {
            switch self {
            case .hour: .seconds(3_600)
            case .day: .seconds(86_400)
            }
        }
    }

    /// At least 1.
    package var limit: Int
    package var period: Period

    package init(_ limit: Int, per period: Period) {
        self.limit = limit
        self.period = period
    }
}

extension RequestBudget: CustomStringConvertible {
    /// As the configuration writes it.
    package var description: String { "\(limit)/\(period)" }
}
