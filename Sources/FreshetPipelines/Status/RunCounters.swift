/// What came of a pipeline's runs, counted.
package struct RunCounters: Hashable, Sendable {
    /// Runs that ended, by outcome.
    package private(set) var outcomes: [RunOutcome: Int] = [:]
    /// How long all of them took.
    package private(set) var duration: Duration = .zero
    /// Requests that they made.
    package private(set) var requests = 0
    /// Bytes of the answers' bodies.
    package private(set) var bytes: UInt64 = 0

    package init() {}

    /// - Parameter progress: that of the run that ended.
    mutating func note(_ summary: RunSummary, _ progress: RunProgress) {
        outcomes[summary.outcome, default: 0] += 1
        duration += summary.duration
        requests += progress.requests
        bytes &+= progress.loaded.bytes
    }
}
