import Synchronization

/// The loop as an executor of tasks: those that prefer it run on its thread.
extension EventLoop: TaskExecutor {
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

    /// The loop as the executor of actors: they run on its thread. The loop must outlive them.
    public func asUnownedSerialExecutor() -> UnownedSerialExecutor {
        UnownedSerialExecutor(ordinary: actorExecutor)
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

/// The executor of actors on a loop. It is another object than the loop as an executor of tasks: the loop has to know
/// which of the two a job is for. A job of an actor that ran as a job of a task would be enqueued again for each call of
/// a method within the actor, because the runtime did not know that it is on the actor's executor.
final class LoopActorExecutor: SerialExecutor {
    /// The loop, which owns this object. It is set before the loop can be used.
    private let loop = Mutex<Loop?>(nil)

    private struct Loop {
        unowned let loop: EventLoop
    }

    func connect(to loop: EventLoop) { self.loop.withLock { $0 = Loop(loop: loop) } }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        loop.withLock { $0?.loop }?.enqueue(job: job, isOfActor: true)
    }

    func asUnownedSerialExecutor() -> UnownedSerialExecutor { UnownedSerialExecutor(ordinary: self) }

    func checkIsolated() { loop.withLock { $0?.loop }?.checkIsolated() }
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
