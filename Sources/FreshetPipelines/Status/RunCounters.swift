package import FreshetModel

/// Counts the runs of a pipeline.
package struct RunCounters: Hashable, Sendable {
    // Each pipeline keeps these; with a run each second, they suffice for 136 years.
    private var changed: UInt32 = 0
    private var unchanged: UInt32 = 0
    private var failed: UInt32 = 0
    private var superseded: UInt32 = 0
    private var cancelled: UInt32 = 0
    /// The total duration.
    package private(set) var duration: Duration = .zero
    /// The total number of requests.
    package private(set) var requests = 0
    /// The total bytes of the answers' bodies.
    package private(set) var bytes: UInt64 = 0

    package init() {}

    /// The number of runs that ended with this outcome.
    package func runs(_ outcome: RunOutcome) -> Int {
        switch outcome {
        case .changed: Int(changed)
        case .unchanged: Int(unchanged)
        case .failed: Int(failed)
        case .superseded: Int(superseded)
        case .cancelled: Int(cancelled)
        }
    }

    /// Adds a run that ended.
    mutating func record(_ summary: RunSummary, _ progress: RunProgress?) {
        switch summary.outcome {
        case .changed: changed &+= 1
        case .unchanged: unchanged &+= 1
        case .failed: failed &+= 1
        case .superseded: superseded &+= 1
        case .cancelled: cancelled &+= 1
        }
        duration += summary.duration
        requests += progress?.requests ?? 0
        bytes &+= progress?.loaded.bytes ?? 0
    }
}
