package import FreshetControl
package import FreshetModel
package import FreshetPipelines
import FreshetSignals

/// Runs the daemon's engine on a virtual clock with the signals and facts of a recording, to see what would have run
/// with another configuration. It touches neither files nor networks.
package struct Replay: Sendable {
    /// The configuration.
    package var pipelines: [ReplayedPipeline]
    package var limits: RequestLimiter.Limits
    /// This host's share of the daemon's `splay`.
    package var splay: Duration
    /// The rules of a time zone; nil is the local one.
    package var zones: @Sendable (String?) -> TimeZoneRules

    /// More runs than a recording of 31 days with a run each ten seconds. A configuration that makes more is an error.
    package static let mostRuns = 300_000

    /// Too many runs.
    package struct TooManyRuns: Error, CustomStringConvertible {
        package var description: String {
            "the configuration makes more than \(Replay.mostRuns) runs in the recorded time; replay a shorter recording"
        }
    }

    package init(
        _ pipelines: [ReplayedPipeline], limits: RequestLimiter.Limits, splay: Duration = .zero,
        zones: @escaping @Sendable (String?) -> TimeZoneRules = { _ in .utc }
    ) {
        self.pipelines = pipelines.sorted { $0.name < $1.name }
        self.limits = limits
        self.splay = splay
        self.zones = zones
    }

    /// Replays a recording. The calling task must run on the executor.
    package func run(_ recording: Recording, on executor: ReplayExecutor) async throws(TooManyRuns) -> ReplayResult {
        let history = RecordedHistory(recording)
        let session = ReplaySession(self, history, executor)
        let isComplete = await withTaskGroup(of: Void.self) { group in
            group.addTask { await session.engine.run() }
            let isComplete = await session.play()
            group.cancelAll()
            return isComplete
        }
        guard isComplete else { throw TooManyRuns() }
        return ReplayResult(history, self, session.log.runs)
    }
}
