import FreshetModel
internal import FreshetSignals

/// The part of a ``PipelineStatus`` that an overview of all pipelines needs. It is cheap enough to be read for
/// thousands of pipelines at a time, on the thread that serves everything else.
package struct PipelineSnapshot: Hashable, Sendable {
    /// The activity, without the progress of a run and the details of a wait.
    package var activity: PipelineActivity
    /// Whether the copy has expired.
    package var isExpired: Bool
    /// Whether the copy is withdrawn.
    package var isWithdrawn: Bool
    /// The next planned run; nil: none is planned, or a run is in progress.
    package var next: PlannedRun?
}

extension PipelineRunner {
    /// The current snapshot of the pipeline's status.
    package var snapshot: PipelineSnapshot {
        let now = world.clock.now
        // Read in place: copying the machine is the expensive part of the full status.
        return state.withLock { state in
            PipelineSnapshot(
                activity: state.machine.activity(at: now), isExpired: state.machine.freshness(at: now) == .expired,
                isWithdrawn: state.copy.generation?.withdrawnSince != nil,
                next: state.machine.nextRun(at: now))
        }
    }
}
