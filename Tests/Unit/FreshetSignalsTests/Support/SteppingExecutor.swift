import FreshetSignals

/// An executor that runs one job at a time on request, so that a test can interfere between any two jobs.
final class SteppingExecutor: TaskExecutor {
    private struct Queue {
        var jobs: [UnownedJob] = []
        var next = 0
    }

    private let queue = Lock(Queue())

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        queue.withLock { $0.jobs.append(job) }
    }

    /// Runs the job that has waited longest. Returns false if there is none.
    func step() -> Bool {
        let job = queue.withLock { queue -> UnownedJob? in
            guard queue.next < queue.jobs.count else {
                queue = Queue()
                return nil
            }
            defer { queue.next += 1 }
            return queue.jobs[queue.next]
        }
        guard let job else { return false }
        job.runSynchronously(on: asUnownedTaskExecutor())
        return true
    }

    /// Runs jobs until there are none, at most `limit`. Returns false if some are left.
    func run(limit: Int = 100_000) -> Bool {
        for _ in 0..<limit {
            guard step() else { return true }
        }
        return false
    }
}
