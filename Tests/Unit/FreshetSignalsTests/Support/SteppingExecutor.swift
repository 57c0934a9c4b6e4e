import FreshetSignals

/// An executor that runs one job when it is told to: the finest grain at which a test can interfere.
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

    /// Runs the job that has waited longest. Returns false if none waits.
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

    /// Runs jobs until none waits, at most `limit`. Returns false if some still wait.
    func run(limit: Int = 100_000) -> Bool {
        for _ in 0..<limit {
            guard step() else { return true }
        }
        return false
    }
}
