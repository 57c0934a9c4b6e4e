import FreshetSignals

/// Runs the tasks of a replay one after the other on one thread, so that a replay has the same order of events each
/// time, and knows when no task is ready.
package final class ReplayExecutor: TaskExecutor {
    private struct State {
        var jobs: [UnownedJob] = []
        /// The task that moves the clock; it continues when no other task is ready.
        var idler: CheckedContinuation<Void, Never>?
    }

    private let state = Lock(State())

    package init() {}

    /// Adds a job; the runtime calls this.
    package func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        state.withLock { $0.jobs.append(job) }
    }

    /// Runs all jobs, and those that become ready meanwhile, on the calling thread. It returns when no task is ready.
    package func run() {
        while true {
            let jobs = state.withLock { state in
                defer { state.jobs = [] }
                return state.jobs
            }
            for job in jobs { job.runSynchronously(on: asUnownedTaskExecutor()) }
            guard jobs.isEmpty else { continue }
            let idler = state.withLock { $0.idler.take() }
            guard let idler else { return }
            idler.resume()
        }
    }

    /// Suspends the calling task, which must run on this executor, until no other task is ready. Only one task may call
    /// it.
    func idle() async {
        await withCheckedContinuation { continuation in state.withLock { $0.idler = continuation } }
    }
}
