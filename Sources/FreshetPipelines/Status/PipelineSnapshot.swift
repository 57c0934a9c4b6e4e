internal import FreshetSignals

/// The little of a ``PipelineStatus`` that a line about all pipelines needs: so cheap that it may be asked of thousands at
/// once, on the thread that everything else waits for.
package struct PipelineSnapshot: Hashable, Sendable {
    /// Without the progress of a run, and without what its wait is for in detail.
    package var activity: PipelineActivity
    /// The copy is older than its `max-age`.
    package var isExpired: Bool
    /// Readers do not find it for that.
    package var isWithdrawn: Bool
    /// When the next run is planned; nil: nothing is, or one is under way.
    package var next: ContinuousClock.Instant?
}

extension PipelineRunner {
    /// What is to be seen of the pipeline at a glance.
    package var glance: PipelineSnapshot {
        let now = world.clock.now
        // In its place: a copy of the machine is what makes the whole status dear.
        return state.withLock { state in
            PipelineSnapshot(
                activity: state.machine.activity(at: now), isExpired: state.machine.freshness(at: now) == .expired,
                isWithdrawn: state.generation?.withdrawnSince != nil,
                next: state.machine.nextRun(at: now)?.at)
        }
    }
}
