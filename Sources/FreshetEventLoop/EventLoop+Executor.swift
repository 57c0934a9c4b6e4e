import Synchronization

/// The loop as an executor: tasks and actors that prefer it run on its thread.
extension EventLoop: TaskExecutor, SerialExecutor {
    public func enqueue(_ job: consuming ExecutorJob) {
        enqueue(job: UnownedJob(job))
    }

    /// Runs a job that the runtime gave to another executor, which uses this loop.
    ///
    /// A call from one function without isolation to another continues in the same job if the job runs as the executor
    /// that the runtime selects for the task. If it ran as the loop, the runtime would enqueue a new job for each such
    /// call and for each return.
    package func enqueue(_ job: consuming ExecutorJob, as executor: UnownedTaskExecutor) {
        enqueue(job: UnownedJob(job), as: executor)
    }

    public func asUnownedSerialExecutor() -> UnownedSerialExecutor {
        UnownedSerialExecutor(ordinary: self)
    }

    public func checkIsolated() {
        precondition(isCurrent, "not on the event loop's thread")  // safe: the caller's programming error
    }

    /// Runs a job after a delay, as a scheduling executor must. The delay counts from now, on the boot clock.
    public func enqueue(_ job: consuming ExecutorJob, after delay: Duration) {
        let job = UnownedJob(job)
        let box = TimerBox()
        let timer = LoopTimer(self) { [self] in
            box.release()
            enqueue(job: job)
        }
        box.hold(timer)
        timer.arm(at: .now + delay)
    }
}

/// Keeps a timer alive until it has expired.
private final class TimerBox: Sendable {
    private let timer = Mutex<LoopTimer?>(nil)

    func hold(_ timer: LoopTimer) { self.timer.withLock { $0 = timer } }

    func release() {
        let timer = self.timer.withLock { held -> LoopTimer? in
            defer { held = nil }
            return held
        }
        withExtendedLifetime(timer) {}
    }
}
