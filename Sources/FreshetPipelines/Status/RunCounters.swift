package import FreshetModel

/// Counts the runs of a pipeline.
package struct RunCounters: Hashable, Sendable {
    /// The number of ended runs, by outcome.
    package private(set) var outcomes: [RunOutcome: Int] = [:]
    /// The total duration.
    package private(set) var duration: Duration = .zero
    /// The total number of requests.
    package private(set) var requests = 0
    /// The total bytes of the answers' bodies.
    package private(set) var bytes: UInt64 = 0

    package init() {}

    /// Adds a run that ended.
    mutating func record(_ summary: RunSummary, _ progress: RunProgress?) {
        outcomes[summary.outcome, default: 0] += 1
        duration += summary.duration
        requests += progress?.requests ?? 0
        bytes &+= progress?.loaded.bytes ?? 0
    }
}
