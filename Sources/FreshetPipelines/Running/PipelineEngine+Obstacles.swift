internal import FreshetSignals

/// Notifies all pipelines of facts for which runs wait, from any thread.
extension PipelineEngine {
    /// - Parameter obstacle: the fact for people, while runs wait that must not use a metered connection; nil: they do
    ///   not wait.
    package func meteredChanged(_ obstacle: String?) { changed(\.metered, to: obstacle, event: .metered(obstacle)) }

    /// - Parameter obstacle: the fact for people, while runs wait that must not run on battery; nil: they do not wait.
    package func powerChanged(_ obstacle: String?) { changed(\.power, to: obstacle, event: .power(obstacle)) }

    private func changed(
        _ known: any WritableKeyPath<State, String?> & Sendable, to obstacle: String?, event: RefreshMachine.Event
    ) {
        let runners = state.withLock { state in
            defer { state[keyPath: known] = obstacle }
            return state[keyPath: known] == obstacle ? [] : state.inOrder
        }
        for runner in runners { runner.mailbox.post(event) }
    }
}
