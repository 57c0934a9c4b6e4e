internal import FreshetSignals

/// Notifies all pipelines whether the connection is metered, from any thread.
extension PipelineEngine {
    /// - Parameter obstacle: the fact for people, while runs wait that must not use a metered connection; nil: they do
    ///   not wait.
    package func meteredChanged(_ obstacle: String?) {
        let runners = state.withLock { state in
            defer { state.metered = obstacle }
            return state.metered == obstacle ? [] : state.inOrder
        }
        for runner in runners { runner.mailbox.post(.metered(obstacle)) }
    }
}
