internal import FreshetSignals

/// Notifies all pipelines whether the machine runs on battery, from any thread.
extension PipelineEngine {
    /// - Parameter obstacle: the fact for people, while runs wait that must not run on battery; nil: they do not wait.
    package func powerChanged(_ obstacle: String?) {
        let runners = state.withLock { state in
            defer { state.power = obstacle }
            return state.power == obstacle ? [] : state.inOrder
        }
        for runner in runners { runner.mailbox.post(.power(obstacle)) }
    }
}
