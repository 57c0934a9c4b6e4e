internal import FreshetSignals

/// Notifies all pipelines of the host's sleep and of its wall clock, from any thread.
extension PipelineEngine {
    /// The host is about to sleep, or is not any more. Before it sleeps, no run starts, not even a requested one. Runs
    /// in progress continue.
    package func goesToSleep(_ sleeps: Bool) {
        let runners = state.withLock { state in
            defer { state.goesToSleep = sleeps }
            return state.goesToSleep == sleeps ? [] : state.inOrder
        }
        for runner in runners { runner.mailbox.post(.goesToSleep(sleeps)) }
        if sleeps { world.store.willSleep() }
    }

    /// The host woke up. Call this before the signal `resume` fires and before a timer fires, so that the pipelines
    /// handle it before everything that became due meanwhile.
    package func woke() {
        let runners = state.withLock { state in
            state.goesToSleep = false
            return state.inOrder
        }
        for runner in runners { runner.mailbox.post(.woke) }
    }

    /// The wall clock was stepped: stored times are converted again, and backoffs for certificates with unfit dates
    /// end.
    package func clockStepped() {
        for runner in state.withLock({ $0.inOrder }) { runner.clockStepped() }
    }

    /// The local time zone has changed: calendar times are planned again.
    package func zoneChanged() {
        for runner in state.withLock({ $0.inOrder }) { runner.zoneChanged() }
    }
}
