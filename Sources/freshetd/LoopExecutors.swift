import FreshetEventLoop
@_spi(ExperimentalCustomExecutors) @_spi(ExperimentalScheduling) import _Concurrency

/// Makes the event loop the main and the global executor of this process. So all tasks, also those of dependencies, run
/// on the loop's thread, and an idle daemon does not wake up; libdispatch's executor would wake it once a second.
///
/// This is the only file that uses the experimental entry point.
enum LoopExecutors: ExecutorFactory {
    /// The loop of the process, or the error of its creation.
    private static let adapter = Result { () throws(SystemCallError) in LoopExecutor(loop: try EventLoop()) }

    static var mainExecutor: any MainExecutor { installed }
    static var defaultExecutor: any TaskExecutor { installed }

    private static var installed: LoopExecutor {
        switch adapter {
        case .success(let adapter): return adapter
        // safe: `install()` registers this factory only if there is a loop.
        case .failure(let error): preconditionFailure("installed without a loop: \(error)")
        }
    }

    /// Makes a loop the executor of all tasks in this process. Call it in `main` before any task starts.
    ///
    /// - Returns: the loop, for `main` to run.
    static func install() throws(SystemCallError) -> EventLoop {
        let loop = try adapter.get().loop
        _createExecutors(factory: Self.self)
        return loop
    }
}

/// The executor protocols that the runtime needs. ``EventLoop`` is a public class and cannot conform to them, because
/// they are not public yet.
private final class LoopExecutor: MainExecutor, TaskExecutor, SchedulingExecutor {
    let loop: EventLoop

    init(loop: EventLoop) {
        self.loop = loop
        loop.serve(asUnownedTaskExecutor())
    }

    func run() throws { loop.run() }
    func stop() { loop.stop() }
    func checkIsolated() { loop.checkIsolated() }
    func asUnownedSerialExecutor() -> UnownedSerialExecutor { UnownedSerialExecutor(ordinary: self) }

    func enqueue(_ job: consuming ExecutorJob) { loop.enqueue(job, as: asUnownedTaskExecutor()) }

    func enqueue<C: Clock>(
        _ job: consuming ExecutorJob, after delay: C.Duration, tolerance: C.Duration?, clock: C
    ) {
        // The clocks of the standard library use `Duration`; the executor does not support other clocks.
        loop.enqueue(job, after: delay as? Duration ?? .zero)
    }

    func enqueue<C: Clock>(
        _ job: consuming ExecutorJob, at instant: C.Instant, tolerance: C.Duration?, clock: C
    ) {
        loop.enqueue(job, after: clock.now.duration(to: instant) as? Duration ?? .zero)
    }
}
