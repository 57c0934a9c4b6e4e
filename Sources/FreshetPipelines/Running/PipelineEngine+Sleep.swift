internal import FreshetSignals

/// What the daemon tells all pipelines of the machine's sleep and of its wall clock. From any thread.
extension PipelineEngine {
    /// The machine is about to sleep, or is not after all: until then no run starts, whoever asks for it. Runs under
    /// way go on.
    package func goesToSleep(_ sleeps: Bool) {
        let runners = state.withLock { state in
            defer { state.goesToSleep = sleeps }
            return state.goesToSleep == sleeps ? [] : state.inOrder
        }
        for runner in runners { runner.mailbox.post(.goesToSleep(sleeps)) }
    }

    /// The machine woke up. To be told before the signal `resume` fires and before a timer rings, so that what became
    /// due meanwhile comes after it.
    package func woke() {
        let runners = state.withLock { state in
            state.goesToSleep = false
            return state.inOrder
        }
        for runner in runners { runner.mailbox.post(.woke) }
    }

    /// The wall clock was stepped: what was remembered by it counts from anew, and back-offs for certificates whose
    /// dates did not fit end.
    package func clockStepped() {
        for runner in state.withLock({ $0.inOrder }) { runner.clockStepped() }
    }
}
